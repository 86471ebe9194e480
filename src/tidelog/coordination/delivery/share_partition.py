"""A partition as a share group consumes it: which member has acquired which records (KIP-932).

Invariants: one member at most holds a record. A record that was accepted or rejected is never
acquired again. A change that a member asks for takes effect when the share coordinator has
persisted it; until then no member can acquire the records. At most one write is in progress, so
the coordinator receives the writes in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.coordination.delivery.acknowledgements import (
    NEXT_STATE,
    AcknowledgementBatch,
    AcknowledgeType,
)
from tidelog.coordination.delivery.acquisition import (
    AcquiredRecords,
    Acquirer,
    FetchedBatches,
    acquire_fetched,
    archive_aborted,
)
from tidelog.coordination.delivery.in_flight import InFlightRecords, RecordRun, RecordState
from tidelog.coordination.delivery.stored_state import (
    StateBatch,
    StateWrite,
    StoredState,
    combine,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Millis, Offset


@dataclass(slots=True)
class DeliveryLimits:
    """The settings of a share group; they may change at any time."""

    record_lock_duration_ms: int
    delivery_attempt_limit: int
    max_record_locks: int
    may_renew: bool = True
    """Whether members may renew their locks."""


class AcknowledgementError(NamedTuple):
    error: ErrorCode
    message: str


class _Transition(NamedTuple):
    """A change that waits for its write."""

    ticket: int
    """Identifies the request that waits; 0 if none does."""
    batches: tuple[StateBatch, ...]
    is_in_effect: bool = False
    """Whether the change took effect before it was persisted, because a lock expired."""


class _Refused(Exception):
    def __init__(self, error: ErrorCode, message: str) -> None:
        self.reason = AcknowledgementError(error, message)


class SharePartition:
    def __init__(
        self, stored: StoredState, leader_epoch: LeaderEpoch, limits: DeliveryLimits
    ) -> None:
        self.limits = limits
        self.state_epoch = stored.state_epoch
        self.leader_epoch = leader_epoch
        self._records = InFlightRecords(stored.start_offset)
        self._queued: list[_Transition] = []
        self._writing: list[_Transition] = []
        self._load(combine(stored.batches, (), stored.start_offset))

    def _load(self, batches: Sequence[StateBatch]) -> None:
        for batch in batches:
            if batch.first > self._records.end:
                # The previous leader delivered these records. Its locks ended with its leadership.
                gap = batch.first - self._records.end
                self._append(self._records.end, batch.first - 1, RecordState.AVAILABLE, 0, gap)
            state = RecordState(batch.state)
            size = batch.last - batch.first + 1
            self._append(batch.first, batch.last, state, batch.delivery_count, size)
        self._records.advance()

    def _append(
        self, first: Offset, last: Offset, state: RecordState, count: int, size: int
    ) -> None:
        self._records.append(RecordRun(first, last, state, count, size))

    # -- views -------------------------------------------------------------------------------------

    @property
    def start_offset(self) -> Offset:
        return self._records.start

    @property
    def end_offset(self) -> Offset:
        """The offset after the last record in flight."""
        return self._records.end

    @property
    def runs(self) -> tuple[RecordRun, ...]:
        return tuple(self._records)

    @property
    def has_changes(self) -> bool:
        """Whether changes wait for a write, or for its end."""
        return bool(self._queued or self._writing)

    def next_fetch_offset(self) -> Offset:
        """The first available record in flight, else the first record that was never delivered."""
        return next((run.first for run in self._records if run.is_available), self._records.end)

    def can_acquire(self) -> bool:
        if self._records.count < self.limits.max_record_locks:
            return True
        return self.next_fetch_offset() < self._records.end

    def next_deadline(self) -> Millis | None:
        """The time at which the first acquisition lock expires."""
        locked = (run.deadline for run in self._records if _is_locked(run))
        return min(locked, default=None)

    # -- members -----------------------------------------------------------------------------------

    def acquire(
        self, acquirer: Acquirer, fetched: FetchedBatches, now: Millis
    ) -> list[AcquiredRecords]:
        """Give available records among the fetched ones to a member."""
        deadline = now + self.limits.record_lock_duration_ms
        acquired = acquire_fetched(
            self._records,
            acquirer,
            fetched,
            deadline,
            max_locks=self.limits.max_record_locks,
            attempts=self.limits.delivery_attempt_limit,
        )
        if acquired and fetched.aborted:
            acquired = archive_aborted(self._records, acquired, fetched.aborted)
        self._records.advance()
        return acquired

    def acknowledge(
        self, member: str, batches: Sequence[AcknowledgementBatch], ticket: int, now: Millis
    ) -> AcknowledgementError | None:
        """Begin the changes that a member asks for; all or none.

        `written` returns the ticket when the changes are persisted. None in return of a request
        that changes nothing is final: see `is_waiting`.
        """
        begun: list[StateBatch] = []
        try:
            for batch in batches:
                self._acknowledge_batch(member, batch, begun, now)
        except _Refused as refused:
            for change in begun:
                self._settle(change, succeeded=False)
            return refused.reason
        if begun:
            self._queued.append(_Transition(ticket, tuple(begun)))
        return None

    def is_waiting(self, ticket: int) -> bool:
        """Whether a request waits for a write."""
        return any(change.ticket == ticket for change in (*self._queued, *self._writing))

    def release(self, member: str, ticket: int) -> None:
        """Release all records that a member has acquired, because its share session ends.

        The member did not process the records, so this delivery does not count.
        """
        begun = [
            self._begin(run, RecordState.AVAILABLE, run.delivery_count - 1)
            for run in self._records
            if run.member == member and _is_locked(run)
        ]
        if begun:
            self._queued.append(_Transition(ticket, tuple(begun)))

    def _acknowledge_batch(
        self, member: str, batch: AcknowledgementBatch, begun: list[StateBatch], now: Millis
    ) -> None:
        if batch.last < self._records.start:
            return
        if not self._records.count:
            raise _Refused(ErrorCode.invalid_record_state, _NOT_FOUND)
        if batch.first >= self._records.end:
            raise _Refused(ErrorCode.invalid_request, _FIRST_PAST_END)
        if batch.last >= self._records.end:
            raise _Refused(ErrorCode.invalid_request, _LAST_PAST_END)
        for first, last, kind in batch.parts():
            for run in self._records.between(first, last):
                if _is_gap(run):
                    continue
                if run.state is not RecordState.ACQUIRED:
                    raise _Refused(ErrorCode.invalid_record_state, _NOT_ACQUIRED)
                if run.next_state is not None:
                    raise _Refused(ErrorCode.invalid_record_state, _IN_PROGRESS)
                if run.member != member:
                    raise _Refused(ErrorCode.invalid_record_state, _NOT_OWNER)
                if kind is AcknowledgeType.RENEW and not self.limits.may_renew:
                    raise _Refused(ErrorCode.invalid_record_state, _NO_RENEWAL)
                if kind is AcknowledgeType.RENEW:
                    run.deadline = now + self.limits.record_lock_duration_ms
                else:
                    begun.append(self._begin(run, NEXT_STATE[kind], run.delivery_count))

    def _begin(self, run: RecordRun, state: RecordState, count: int) -> StateBatch:
        exhausted = count >= self.limits.delivery_attempt_limit
        if state is RecordState.AVAILABLE and exhausted:
            state = RecordState.ARCHIVED
        run.next_state, run.next_count = state, count
        return StateBatch(run.first, run.last, state, count)

    def persist_start(self, ticket: int) -> None:
        """Persist the start offset, so that a new leader does not choose another one."""
        self._queued.append(_Transition(ticket, (), is_in_effect=True))

    # -- writes ------------------------------------------------------------------------------------

    def next_write(self) -> StateWrite | None:
        """The write to send now; None if there is none, or if one is in progress."""
        if self._writing or not self._queued:
            return None
        self._writing, self._queued = self._queued, []
        return StateWrite(
            self._records.start,
            self.state_epoch,
            self.leader_epoch,
            self._records.completed,
            tuple(batch for change in self._writing for batch in change.batches),
        )

    def written(self, error: ErrorCode) -> list[int]:
        """Complete the write in progress, or undo its changes; returns the tickets that waited."""
        completed, self._writing = self._writing, []
        for change in completed:
            for batch in () if change.is_in_effect else change.batches:
                self._settle(batch, succeeded=error is ErrorCode.none)
        self._records.advance()
        return [change.ticket for change in completed if change.ticket]

    def abandon(self) -> list[int]:
        """The tickets of all requests that wait, for a leader that has lost its leadership."""
        waiting = [change.ticket for change in (*self._writing, *self._queued) if change.ticket]
        self._writing, self._queued = [], []
        return waiting

    def _settle(self, change: StateBatch, *, succeeded: bool) -> None:
        for run in self._records.between(change.first, change.last):
            assert run.next_state is not None
            if succeeded:
                run.state, run.delivery_count, run.member = run.next_state, run.next_count, ""
            run.next_state = None

    # -- time and the log --------------------------------------------------------------------------

    def expire(self, now: Millis) -> bool:
        """Release the records whose lock has expired; returns whether there were any.

        The release takes effect at once. It is persisted later, so that a new leader knows the
        delivery counts.
        """
        expired = [run for run in self._records if _is_locked(run) and run.deadline <= now]
        batches = []
        for run in expired:
            batches.append(self._begin(run, RecordState.AVAILABLE, run.delivery_count))
            assert run.next_state is not None
            run.state, run.next_state, run.member = run.next_state, None, ""
        if batches:
            self._queued.append(_Transition(0, tuple(batches), is_in_effect=True))
            self._records.advance()
        return bool(expired)

    def log_start_moved(self, offset: Offset) -> None:
        """Forget records that the log has deleted, also those that members have acquired."""
        if offset > self._records.start:
            self._records.truncate_before(offset)
            self._records.advance()


def _is_locked(run: RecordRun) -> bool:
    return run.state is RecordState.ACQUIRED and run.next_state is None


def _is_gap(run: RecordRun) -> bool:
    return run.state is RecordState.ARCHIVED and not run.delivery_count


_NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."
_FIRST_PAST_END = "Batch record not found. The first offset in request is past acquired records."
_LAST_PAST_END = "Batch record not found. The last offset in request is past acquired records."
_NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
_IN_PROGRESS = (
    "The record state is invalid. The acknowledgement of delivery could not be completed."
)
_NO_RENEWAL = "Renewing acquisition locks is not enabled for the group."
_NOT_OWNER = "Member is not the owner of batch record"
