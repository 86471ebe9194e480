"""Verifies the logs that earlier runs wrote, in jobs, one small slice after another.

Verification uses a few percent of a processor until every log has been read once. After that, it
uses nothing.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tidelog.log.partition import PartitionLog
from tidelog.log.recovery.verification import WHOLE, LogVerification, Verified
from tidelog.model.ids import Millis, TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.jobs import Jobs
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica

PAUSE_MS: Millis = 50
"""The length of a pause. A pause is due when the slices since the last pause cost `WHOLE`."""


class _Turn(NamedTuple):
    replica: Replica
    log: PartitionLog
    left: LogVerification


class Verification:
    def __init__(
        self,
        clock: Clock,
        jobs: Jobs,
        partitions: Partitions,
        storage_failed: Callable[[TopicPartition, OSError], None],
    ) -> None:
        self._clock = clock
        self._timers = clock.timers
        self._jobs = jobs
        self._partitions = partitions
        self._storage_failed = storage_failed
        self._queue: deque[_Turn] = deque()
        self._is_busy = False
        self._spent = 0
        """The cost of the slices since the last pause."""

    def add(self, replica: Replica) -> None:
        """Verify the part of this log that has not been verified yet."""
        log = replica.log
        left = log.begin_verification()
        if left is not None:
            self._queue.append(_Turn(replica, log, left))
            self._go_on()

    def _go_on(self) -> None:
        while self._queue and not self._is_busy:
            turn = self._queue[0]
            try:
                job = turn.left.next_slice() if self._is_current(turn) else None
            except OSError as failure:
                self._queue.popleft()
                self._storage_failed(turn.replica.partition, failure)
                continue
            if job is None:
                self._queue.popleft()
                continue
            self._is_busy = True
            self._jobs.start(job, self._verified, self._failed)

    def _is_current(self, turn: _Turn) -> bool:
        replica = turn.replica
        return self._partitions.get(replica.partition) is replica and replica.log is turn.log

    def _verified(self, result: Verified) -> None:
        turn = self._queue[0]
        if self._is_current(turn):
            turn.left.take(result)
            if result.is_broken:
                turn.log.found_broken(result.offset)
        self._spent += result.cost
        self._rest()

    def _failed(self, error: Exception) -> None:
        """Skip an unreadable log. It may have been deleted; later reads report any damage."""
        self._queue.popleft()
        self._rest()

    def _rest(self) -> None:
        if self._spent < WHOLE:
            self._resume()
        else:
            self._spent = 0
            self._timers.at(self._clock.now + PAUSE_MS, self._resume)

    def _resume(self) -> None:
        self._is_busy = False
        self._go_on()
