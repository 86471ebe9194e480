"""The state of a coordinator shard, and its operations: answer, write, schedule.

The other modules of this package make the decisions. In one shard, all of them share one
`ShardCore`. `now` is set once per event and stays constant while the event is handled.

A write is in flight until its outcome is known. The offsets in a write become visible only when the
write succeeds. If a write succeeds, all earlier writes are durable too. If a write exceeds the
commit timeout, its waiters get an error. The write stays in flight, because its records are in the
log and may still be replicated. If a write exceeds the largest batch of the log, it fails with
MESSAGE_TOO_LARGE and is never appended (F61).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from tidelog.config.group_settings import GroupSettings
from tidelog.coordination.effects import AnswerRequest, AppendRecords, GroupEffect, LogRecord
from tidelog.coordination.groups.classic.group import ClassicGroup, GroupState
from tidelog.coordination.offsets.offsets import OffsetStore
from tidelog.coordination.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    Value,
    encode_key,
    encode_value,
)
from tidelog.coordination.timers import KeyedTimers, TimerKey, WriteTimeout
from tidelog.model.dice import Dice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis

Change: TypeAlias = tuple[Key, Value | None]
"""A record to write; a value of None is a tombstone."""

Settled: TypeAlias = Callable[[ErrorCode], None]
"""Called once with the outcome of a write: `ErrorCode.none`, or the error for the client."""


@dataclass(slots=True)
class _InFlight:
    changes: tuple[Change, ...]
    waiting: list[Settled]
    undo: Settled | None
    timed_out: bool = False

    def tell(self, error: ErrorCode) -> None:
        waiting, self.waiting = self.waiting, []
        for settled in waiting:
            settled(error)


_WRITE_ERRORS = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
    ErrorCode.message_too_large: ErrorCode.unknown_server_error,
    ErrorCode.record_list_too_large: ErrorCode.unknown_server_error,
    ErrorCode.invalid_fetch_size: ErrorCode.unknown_server_error,
}
"""The error that a group member receives for each append error, as in Kafka."""

_IN_THE_LOG = (ErrorCode.request_timed_out, ErrorCode.not_enough_replicas_after_append)
"""Errors after which a write may still become durable."""

_TIMED_OUT = _WRITE_ERRORS[ErrorCode.request_timed_out]

MAX_RECORDS = 1_000
"""The maximum number of records in each part of a write that may be split."""


_BATCH_BYTES = 61
"""The size of a batch header."""
_RECORD_BYTES = 24
"""The maximum size of a record without its key and value."""


class WallClock(Protocol):
    """How far the wall clock is ahead of the monotonic clock that deadlines use."""

    @property
    def ahead_ms(self) -> Millis: ...

    @property
    def settled_ms(self) -> Millis:
        """Like `ahead_ms`, but a forward step counts only after the clock has kept it for a while.

        Offsets expire by this clock.
        """


class ShardCore:
    def __init__(
        self,
        settings: GroupSettings,
        dice: Dice,
        wall_clock: WallClock,
        largest_batch: Callable[[], int],
    ) -> None:
        self.settings = settings
        self.dice = dice
        self._wall_clock = wall_clock
        self.largest_batch = largest_batch
        """Returns max.message.bytes of the log, which may change at any time."""
        self.now: Millis = 0
        self.groups: dict[str, ClassicGroup] = {}
        self.offsets = OffsetStore()
        self.timers = KeyedTimers()
        self._answers: list[GroupEffect] = []
        self._writes: list[GroupEffect] = []
        self._too_large: list[int] = []
        self._in_flight: dict[int, _InFlight] = {}
        self._last_write = 0

    @property
    def wall(self) -> Millis:
        """The wall-clock time, for timestamps that outlive this coordinator."""
        return self.now + self._wall_clock.ahead_ms

    @property
    def settled_wall(self) -> Millis:
        """The wall-clock time that is used to decide whether an offset has expired."""
        return self.now + self._wall_clock.settled_ms

    # -- Answers and effects -----------------------------------------------------------------------

    def answer(self, ticket: int, response: Any) -> None:
        self._answers.append(AnswerRequest(ticket, response))

    def take_effects(self) -> list[GroupEffect]:
        """Return the pending effects and clear them.

        Writes come first, because an answer may trigger a new request.
        """
        while self._too_large:
            self.settle_write(self._too_large.pop(0), ErrorCode.message_too_large)
        effects = self._writes + self._answers
        self._writes, self._answers = [], []
        return effects

    def schedule(self, key: TimerKey, delay_ms: Millis) -> None:
        self.timers.schedule(key, self.now + delay_ms)

    # -- Writes to the log -------------------------------------------------------------------------

    @property
    def last_write(self) -> int:
        return self._last_write

    def write(
        self,
        changes: Iterable[Change],
        settled: Settled | None = None,
        *,
        undo: Settled | None = None,
    ) -> None:
        """Write records and call `settled` with the outcome.

        If the records are never written, `undo` is called. After a timeout, `undo` may be called
        long after `settled`.
        """
        changes = tuple(changes)
        waiting = [] if settled is None else [settled]
        self._last_write += 1
        self._in_flight[self._last_write] = _InFlight(changes, waiting, undo)
        self.schedule(WriteTimeout(self._last_write), self.settings.offsets_commit_timeout_ms)
        records = self._encoded(changes)
        if records is None:
            # `settled` must not be called before this method returns, so the failure is queued.
            self._too_large.append(self._last_write)
        else:
            self._writes.append(AppendRecords(self._last_write, records))

    def write_parts(
        self,
        changes: Sequence[Change],
        settled: Settled | None = None,
        *,
        undo: Callable[[list[Change]], None] | None = None,
    ) -> None:
        """Write changes that need not be atomic, in as many writes as they require.

        `undo` is called with the changes that are never written.
        """
        parts = self._parts(changes)
        errors: list[ErrorCode] = []

        def part_settled(error: ErrorCode) -> None:
            errors.append(error)
            if settled is not None and len(errors) == len(parts):
                settled(next((one for one in errors if one is not ErrorCode.none), ErrorCode.none))

        def undo_of(part: list[Change]) -> Settled | None:
            return None if undo is None else lambda error: undo(part)

        for part in parts:
            self.write(part, part_settled, undo=undo_of(part))

    def _encoded(self, changes: tuple[Change, ...]) -> tuple[LogRecord, ...] | None:
        """Encode the changes, or return None as soon as they exceed the largest batch."""
        room = self.largest_batch() - _BATCH_BYTES
        records: list[LogRecord] = []
        for change in changes:
            if _payload(change[1]) > room:
                return None
            record = _encode(change)
            room -= _size(record)
            if room < 0:
                return None
            records.append(record)
        return tuple(records)

    def _parts(self, changes: Sequence[Change]) -> list[list[Change]]:
        room = largest = self.largest_batch() - _BATCH_BYTES
        parts: list[list[Change]] = [[]]
        for change in changes:
            size = _size(_encode(change))
            if size > room or len(parts[-1]) == MAX_RECORDS:
                parts.append([])
                room = largest
            parts[-1].append(change)
            room -= size
        return [part for part in parts if part]

    def settle_write(self, write_id: int, error: ErrorCode) -> None:
        """Complete a write with its outcome."""
        assert 0 < write_id <= self._last_write
        if write_id not in self._in_flight:
            return  # already completed by the success of a later write
        if error in _IN_THE_LOG:
            self.time_out_write(write_id)
            return
        if error is ErrorCode.none:
            self._settle_overtaken(write_id)
        entry = self._in_flight.pop(write_id)
        self.timers.cancel(WriteTimeout(write_id))
        outcome = _WRITE_ERRORS.get(error, error)
        if outcome is ErrorCode.none:
            self._apply(entry.changes)
        elif entry.undo is not None:
            entry.undo(outcome)
        entry.tell(outcome)

    def when_settled(self, write_id: int, settled: Settled) -> None:
        """Call `settled` when this write completes, or at once if the write has timed out."""
        entry = self._in_flight[write_id]
        if entry.timed_out:
            settled(_TIMED_OUT)
        else:
            entry.waiting.append(settled)

    def newest_in_flight(self, up_to: int) -> int | None:
        """The newest write in flight whose id is at most `up_to`; None if there is none."""
        return max((write_id for write_id in self._in_flight if write_id <= up_to), default=None)

    def time_out_write(self, write_id: int) -> None:
        """Fail a write for its waiters; the write itself may still succeed."""
        entry = self._in_flight[write_id]
        self.timers.cancel(WriteTimeout(write_id))
        entry.timed_out = True
        entry.tell(_TIMED_OUT)

    def fail_writes(self, error: ErrorCode) -> None:
        """Fail all writes in flight, because leadership of the log is lost."""
        entries = list(self._in_flight.values())
        self._in_flight.clear()
        for entry in entries:
            entry.tell(error)

    def offsets_in_flight(self, group_id: str | None = None) -> dict[OffsetCommitKey, None]:
        """The keys of the offsets whose commits are in flight, in the order of the writes."""
        return {
            key: None
            for entry in self._in_flight.values()
            for key, value in entry.changes
            if isinstance(key, OffsetCommitKey)
            and value is not None
            and group_id in (None, key.group)
        }

    def _settle_overtaken(self, write_id: int) -> None:
        """Apply earlier writes that timed out, because this write's success proves them durable."""
        for earlier in [id_ for id_ in self._in_flight if id_ < write_id]:
            entry = self._in_flight.pop(earlier)
            assert entry.timed_out, f"write {write_id} succeeded before write {earlier}"
            self._apply(entry.changes)

    def _apply(self, changes: tuple[Change, ...]) -> None:
        for key, value in changes:
            if isinstance(key, OffsetCommitKey):
                assert value is None or isinstance(value, OffsetCommitValue)
                self.apply_offset(key, value)
            elif value is None:
                # A deletion drops the group before it writes the tombstone. A commit that was in
                # flight at that time may have created the group again.
                self.forget_simple_group(key.group)

    # -- Simple groups -----------------------------------------------------------------------------

    def apply_offset(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        """Apply a durable offset and create its group if necessary."""
        self.offsets.apply(key, value)
        if value is not None:
            self.ensure_group(key.group)

    def ensure_group(self, group_id: str) -> None:
        """Create a simple group for a consumer that commits offsets without being a member."""
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id, GroupState.EMPTY, self.wall)

    def forget_simple_group(self, group_id: str) -> None:
        """Drop a group that has no members and no offsets."""
        group = self.groups.get(group_id)
        if (
            group is not None
            and group.is_unused
            and not self.offsets.has_group(group_id)
            and not self.offsets_in_flight(group_id)
        ):
            del self.groups[group_id]


def group_record(group: ClassicGroup, assignment: dict[str, bytes]) -> Change:
    """The record from which a new coordinator restores the group with this assignment."""
    return GroupMetadataKey(group.group_id), GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=-1 if group.state_timestamp is None else group.state_timestamp,
        members=tuple(
            member.to_record(group.protocol_name, assignment[member.member_id])
            for member in group.members.values()
        ),
    )


def _payload(value: Value | None) -> int:
    """The number of client-supplied bytes in a value, counted without encoding the value."""
    if not isinstance(value, GroupMetadataValue):
        return 0
    return sum(len(member.subscription) + len(member.assignment) for member in value.members)


def _size(record: LogRecord) -> int:
    key, value = record
    return _RECORD_BYTES + len(key) + len(value or b"")


def _encode(change: Change) -> LogRecord:
    key, value = change
    return encode_key(key), None if value is None else encode_value(value)
