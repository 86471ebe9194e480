"""A request that waits for other replicas, with one result for each partition."""

from collections.abc import Callable
from typing import Generic, TypeVar

from tidelog.model.errors import ErrorCode
from tidelog.node.timers import Timer

R = TypeVar("R")


class Pending(Generic[R]):
    """Results that wait for confirmation; at the deadline, they become REQUEST_TIMED_OUT."""

    __slots__ = ("_missing", "_refusal", "_resume", "results", "timer")

    def __init__(
        self,
        results: list[R],
        resume: Callable[[list[R]], None],
        refusal: Callable[[ErrorCode], R],
    ) -> None:
        self.results = results
        self.timer: Timer | None = None
        self._missing: set[int] = set()
        self._resume = resume
        self._refusal = refusal

    def expect(self, index: int) -> None:
        """Wait for the confirmation of the result at `index`."""
        self._missing.add(index)

    def confirm(self, index: int) -> None:
        if index not in self._missing:
            return  # the request has timed out
        self._missing.remove(index)
        if not self._missing:
            if self.timer is not None:
                self.timer.cancel()
            self._resume(self.results)

    def refuse(self, index: int, error: ErrorCode) -> None:
        if index in self._missing:
            self.results[index] = self._refusal(error)
            self.confirm(index)

    def time_out(self) -> None:
        for index in self._missing:
            self.results[index] = self._refusal(ErrorCode.request_timed_out)
        self._missing.clear()
        self._resume(self.results)
