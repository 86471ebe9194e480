"""The queue of actions that have become ready: resumed handlers, peers' answers, commits.

Invariant: no action runs inside another. If a part waits for something, its callback only puts the
rest of the work on the queue. The node runs the whole queue, in order, before it returns from the
event that made the actions ready.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Ready: TypeAlias = tuple[Callable[..., None], tuple[Any, ...]]
"""An action and its arguments."""


class ReadyQueue:
    """Runs actions in order. After a `fatal` exception, such as a failed disk, no more run."""

    __slots__ = ("_actions", "_fatal", "_is_running", "add")

    def __init__(self, *fatal: type[Exception]) -> None:
        self._fatal = fatal
        self._actions: deque[Ready] = deque()
        self._is_running = False
        self.add = self._actions.append
        """Adds an action. This is the deque's own method, because every request calls it."""

    def later(self, action: Callable[[T], None]) -> Callable[[T], None]:
        """Returns a callback that puts the action on the queue, with the callback's argument."""
        return lambda argument: self.add((action, (argument,)))

    def run(self, action: Callable[..., None], *arguments: Any) -> None:
        """Run an action and all actions that become ready; raises the first exception at the end.

        An exception that is not fatal is a bug in one action, so the other actions still run.
        """
        assert not self._is_running, f"{action} was started inside another action"
        self._is_running = True
        actions, bug = self._actions, None
        actions.append((action, arguments))
        try:
            while actions:
                action, arguments = actions.popleft()
                try:
                    action(*arguments)
                except self._fatal:
                    raise
                except Exception as error:
                    bug = bug or error
        finally:
            actions.clear()
            self._is_running = False
        if bug is not None:
            raise bug
