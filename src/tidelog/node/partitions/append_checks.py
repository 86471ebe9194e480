"""Checks the records of batches in jobs before the batches are appended.

While a batch is checked, the next request of the same connection does not start. The batches of a
producer therefore stay in order. Each request runs one job at a time.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

from tidelog.log.results import AppendOrigin, AppendRefused
from tidelog.log.validation.record_checks import RecordCheck
from tidelog.model.effects import AppendBatches, AppendResult, PartitionAppend
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, ConnId, Offset, TopicPartition
from tidelog.model.jobs import TooManyJobs
from tidelog.node.jobs import Jobs
from tidelog.node.partitions.refused_sequences import RefusedSequences
from tidelog.node.requests.parking import PARKED, Parked, Resume

Hold: TypeAlias = Callable[[ConnId], Callable[[], None]]
"""Makes the next requests of a connection wait; returns the function that ends the wait."""


class Appender(Protocol):
    """The methods of the broker's partitions that append checked batches."""

    refused: RefusedSequences

    def append(
        self, effect: AppendBatches, resume: Resume, origin: AppendOrigin
    ) -> list[AppendResult] | Parked: ...


UNCHECKED = AppendResult(ErrorCode.none)
"""The placeholder for a result until the batch has been checked and appended."""

_BEFORE_THE_LOG = (
    ErrorCode.message_too_large,
    ErrorCode.record_list_too_large,
    ErrorCode.corrupt_message,
)
"""Errors that are found before the append. As in Kafka, a result with one of these errors has no
log start offset.
"""


class _Unchecked(NamedTuple):
    place: int
    """The position of the batch's result in the response."""
    partition: TopicPartition
    check: RecordCheck


class AppendChecks:
    def __init__(self, jobs: Jobs, hold: Hold) -> None:
        self._jobs = jobs
        self._hold = hold

    def begin(
        self,
        effect: AppendBatches,
        results: list[AppendResult],
        checks: list[RecordCheck],
        partitions: Appender,
        conn: ConnId,
        resume: Resume,
    ) -> Resume:
        """Check and append the unchecked batches.

        Returns a callback, to which the caller passes the results of the batches that need no
        check.
        """
        places = [place for place, result in enumerate(results) if result is UNCHECKED]
        unchecked = [
            _Unchecked(place, effect.appends[place].partition, check)
            for place, check in zip(places, checks, strict=True)
        ]
        release = self._hold(conn)

        def finish(results: list[AppendResult]) -> None:
            release()
            resume(results)

        def append_checked(wish: PartitionAppend, then: Resume) -> list[AppendResult] | Parked:
            one = AppendBatches([wish], acks, timeout_ms)
            return partitions.append(one, then, AppendOrigin.CHECKED_CLIENT)

        acks, timeout_ms = effect.acks, effect.timeout_ms
        return _Request(unchecked, self._jobs, append_checked, partitions.refused, finish).begin()


class _Request:
    def __init__(
        self,
        unchecked: list[_Unchecked],
        jobs: Jobs,
        append: Callable[[PartitionAppend, Resume], list[AppendResult] | Parked],
        refused: RefusedSequences,
        resume: Resume,
    ) -> None:
        self._unchecked = unchecked
        self._jobs = jobs
        self._append = append
        self._refused = refused
        self._resume = resume
        self._checked = 0
        self._missing = len(unchecked) + 1  # one more for all batches that need no check
        self._found: dict[int, AppendResult] = {}
        self._others: list[AppendResult] = []

    def begin(self) -> Resume:
        self._check_next()
        return self._others_done

    def _others_done(self, results: list[AppendResult]) -> None:
        self._others = results
        self._settle()

    def _check_next(self) -> None:
        if self._checked == len(self._unchecked):
            return
        place, partition, check = self._unchecked[self._checked]
        self._checked += 1

        def done(refused: AppendRefused | None) -> None:
            if refused is not None:
                self._answer(place, refusal(refused))
            else:
                self._append_checked(place, PartitionAppend(partition, memoryview(check.batch)))
            self._check_next()

        def failed(error: Exception) -> None:
            is_busy = isinstance(error, TooManyJobs)
            code = ErrorCode.request_timed_out if is_busy else ErrorCode.unknown_server_error
            batch, result = memoryview(check.batch), (AppendResult(code), NO_OFFSET)
            self._answer(place, self._refused.judge(partition, batch, result)[0])
            self._check_next()

        self._jobs.start(check, done, failed)

    def _append_checked(self, place: int, wish: PartitionAppend) -> None:
        results = self._append(wish, lambda found: self._answer(place, found[0]))
        if results is not PARKED:
            self._answer(place, results[0])

    def _answer(self, place: int, result: AppendResult) -> None:
        self._found[place] = result
        self._settle()

    def _settle(self) -> None:
        self._missing -= 1
        if not self._missing:
            for place, result in self._found.items():
                self._others[place] = result
            self._resume(self._others)


def refusal(outcome: AppendRefused, log_start: Offset = NO_OFFSET) -> AppendResult:
    return AppendResult(
        outcome.error,
        log_start_offset=NO_OFFSET if outcome.error in _BEFORE_THE_LOG else log_start,
        message=outcome.message,
        record_errors=outcome.record_errors,
    )
