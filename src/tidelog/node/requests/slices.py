"""Runs the long work of many requests in slices, between other events.

Invariants: each turn runs one slice, however many requests have slices to run. A short request
therefore waits for one slice at most. At most `AT_ONCE` long requests are partly done at any time,
which limits memory. The other long requests wait in order of arrival. While clients leave many
responses unread, no long request begins.
"""

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from tidelog.model.ids import Millis
from tidelog.node.clock import Clock
from tidelog.node.ready import ReadyQueue

AT_ONCE = 2

_Turn: TypeAlias = tuple[Callable[[], None], str]
"""The function to call, and the label of its request."""


LABEL_LENGTH = 60
"""The maximum number of characters of a client id that a label shows."""


def label(api: str, version: int, client_id: str | None, host: str) -> str:
    """The name of a request in log lines."""
    client = (client_id or "")[:LABEL_LENGTH]
    return f"a part of {api} v{version}, client id {client!r}, from {host}"


class Slices:
    def __init__(self, clock: Clock, ready: ReadyQueue) -> None:
        self._ready = ready
        self._clock = clock
        self._timers = clock.timers
        self._waiting: deque[_Turn] = deque()
        self._under_way: deque[_Turn] = deque()
        self._latest = ""
        self._turned_at: Millis = -1
        self._is_in_turn = False
        self._is_timed = False
        self._begins_no_more = False

    def later(
        self, go_on: Callable[[], None], request: str = "", *, is_urgent: bool = False
    ) -> None:
        """Call `go_on` in a separate turn. Urgent work precedes requests that have not begun."""
        is_under_way = is_urgent or self._is_in_turn
        (self._under_way if is_under_way else self._waiting).append((go_on, request))
        self._set_timer()

    def begin_no_more(self, is_much_unread: bool) -> None:
        """Make long requests wait until clients have read earlier responses (F96)."""
        self._begins_no_more = is_much_unread
        self._set_timer()

    def in_work(self) -> str:
        """The label of the request whose slice ran in the current event; empty if no slice ran."""
        return self._latest if self._turned_at == self._clock.now else ""

    def _set_timer(self) -> None:
        if not self._is_timed and (self._under_way or self._may_begin):
            self._is_timed = True
            self._timers.at(self._clock.now + 1, self._turn)

    @property
    def _may_begin(self) -> bool:
        return bool(self._waiting) and not self._begins_no_more

    def _turn(self) -> None:
        self._is_timed = False
        while self._may_begin and len(self._under_way) < AT_ONCE:
            self._under_way.append(self._waiting.popleft())
        if not self._under_way:
            return
        go_on, self._latest = self._under_way.popleft()
        self._turned_at = self._clock.now
        self._is_in_turn = True
        # The turn ends after the handler, which `go_on` puts on the queue, has run.
        try:
            go_on()
        finally:
            self._ready.add((self._end_turn, ()))

    def _end_turn(self) -> None:
        self._is_in_turn = False
        self._set_timer()
