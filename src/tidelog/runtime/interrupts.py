"""Requests to stop the node: signals, the end of its supervisor, or a test."""

from collections.abc import Callable

from tidelog.model.ids import Millis
from tidelog.model.outbound import Outbound, Stop
from tidelog.runtime.hosted import HostedNode

_CLOSE_LOGS, _EXIT = 2, 3


class Interrupts:
    """The first interrupt shuts the node down, the second only closes the logs, the third exits.

    `add` may be called in any thread. The loop calls `obey` in its own thread.
    """

    def __init__(self, wake_loop: Callable[[], None]) -> None:
        self._wake_loop = wake_loop
        self._count = 0
        self._obeyed = 0

    def __bool__(self) -> bool:
        return bool(self._count)

    def add(self) -> None:
        self._count += 1
        self._wake_loop()

    def obey(self, node: HostedNode, now: Millis) -> list[Outbound]:
        count, before = self._count, self._obeyed
        self._obeyed = count
        if count == before:
            return []
        if count >= _EXIT:
            return [Stop(1, "stopped without closing the logs")]
        if count == _CLOSE_LOGS:
            return node.stop_now(now)
        return node.shutdown(now)
