"""A parked fetch. It has found fewer than min_bytes, and waits for a change or its timeout."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tidelog.model.effects import FetchBatches, FetchResult
from tidelog.node.timers import Timer

if TYPE_CHECKING:
    from tidelog.node.partitions.replica import Replica


class FetchAttempt(NamedTuple):
    """The current result of a fetch, and whether to answer with it now."""

    results: list[FetchResult]
    is_enough: bool
    size: int
    """The size of the records in bytes."""


class PendingFetch:
    __slots__ = ("_answer", "_attempt", "_effect", "_parked_at", "_waiting", "order", "timer")

    def __init__(
        self,
        effect: FetchBatches,
        attempt: Callable[[FetchBatches], FetchAttempt],
        answer: Callable[[FetchAttempt], None],
        parked_at: list["Replica"],
        waiting: dict["PendingFetch", None],
        order: int,
    ) -> None:
        self.order = order
        self.timer: Timer | None = None
        self._effect = effect
        self._attempt = attempt
        self._answer = answer
        self._parked_at = parked_at
        self._waiting = waiting
        waiting[self] = None
        if effect.session is not None:
            effect.session.park(self)
        for replica in parked_at:
            replica.listen(self, is_follower=effect.replica >= 0)

    def mark(self) -> None:
        """Do nothing, because a woken fetch without a session reads every partition anyway."""

    @property
    def waiting(self) -> tuple["PendingFetch"]:
        return (self,)

    def wake(self) -> None:
        """Read again, because a partition has changed."""
        attempt = self._look()
        if attempt.is_enough:
            self._finish(attempt)

    @property
    def is_followers(self) -> bool:
        return self._effect.replica >= 0

    def time_out(self) -> None:
        self._finish(self._look())

    def drop(self) -> None:
        """Stop waiting, because the fetch is answered or its connection is lost."""
        self._waiting.pop(self, None)
        if self.timer is not None:
            self.timer.cancel()
        if self._effect.session is not None:
            self._effect.session.unpark(self)
        for replica in self._parked_at:
            replica.unlisten(self)

    def _look(self) -> FetchAttempt:
        """Read the changed partitions of the session, or all partitions if there is no session."""
        effect = self._effect
        if effect.session is not None:
            effect.reads = effect.session.due()
        return self._attempt(effect)

    def _finish(self, attempt: FetchAttempt) -> None:
        self.drop()
        self._answer(attempt)
