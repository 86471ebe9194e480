"""A produce request in the making: one result per partition, complete when each has its acks."""

from collections.abc import Callable

from tidelog.model.effects import AppendResult
from tidelog.model.errors import ErrorCode
from tidelog.node.timers import Timer


class PendingAppend:
    """Appended, and not yet acknowledged by everyone that `acks` names."""

    __slots__ = ("_missing", "_resume", "results", "timer")

    def __init__(
        self, results: list[AppendResult], resume: Callable[[list[AppendResult]], None]
    ) -> None:
        self.results = results
        self.timer: Timer | None = None
        self._missing: set[int] = set()
        self._resume = resume

    def expect(self, index: int) -> None:
        """The result at `index` is good only once its offset is acknowledged."""
        self._missing.add(index)

    def acknowledge(self, index: int) -> None:
        self._settle(index)

    def refuse(self, index: int, error: ErrorCode) -> None:
        if index in self._missing:
            self.results[index] = AppendResult(error)
            self._settle(index)

    def time_out(self) -> None:
        for index in self._missing:
            self.results[index] = AppendResult(ErrorCode.request_timed_out)
        self._missing.clear()
        self._resume(self.results)

    def _settle(self, index: int) -> None:
        if index not in self._missing:
            return  # timed out before
        self._missing.remove(index)
        if not self._missing:
            if self.timer is not None:
                self.timer.cancel()
            self._resume(self.results)
