"""The share coordinator of one partition of `__share_group_state` (KIP-932).

Invariants: a read by a new leader raises the stored leader epoch before the leader gets the state,
so a write of an earlier leader is fenced from then on. The start offset of a share partition goes
back only when its state is initialised again with a higher state epoch.
"""

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, TypeAlias

from kio.schema.read_share_group_state.v0 import response as read_response
from kio.schema.read_share_group_state_summary.v1 import response as summary_response

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.delivery.stored_state import StateBatch, combine
from tidelog.coordination.runtime.decision import (
    CoordinatorDecision,
    CoordinatorRequest,
    Instant,
    LogRecord,
    RecordOrigin,
)
from tidelog.coordination.runtime.machine import CoordinatorMachine
from tidelog.coordination.share_state import share_messages as messages
from tidelog.coordination.share_state.share_messages import StateError
from tidelog.coordination.share_state.share_records import (
    NO_COUNT,
    SharePartitionKey,
    ShareSnapshot,
    ShareStateRecord,
    ShareUpdate,
    decode_record,
    encode_record,
)
from tidelog.coordination.share_state.stored_shares import ShareStates, StoredShare
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, LeaderEpoch, Millis, Offset

ShareDecision: TypeAlias = CoordinatorDecision[ShareStateRecord]

_NEGATIVE_PARTITION = "The partition id cannot be a negative number."
_NO_TOPIC_ID = "The topic id cannot be null."
_NEGATIVE_LEADER_EPOCH = "The leader epoch cannot be a negative number."
_NEGATIVE_STATE_EPOCH = "The state epoch cannot be a negative number."
_NO_READ = "Read operation on uninitialized share partition not allowed."
_NO_WRITE = "Write operation on uninitialized share partition not allowed."

_REFUSALS = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas_after_append: ErrorCode.coordinator_not_available,
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
    ErrorCode.message_too_large: ErrorCode.unknown_server_error,
    ErrorCode.record_list_too_large: ErrorCode.unknown_server_error,
    ErrorCode.invalid_fetch_size: ErrorCode.unknown_server_error,
}
"""The error of a request for each error of an append, as in Kafka."""


class SnapshotSettings(NamedTuple):
    updates_per_snapshot: int
    cold_interval_ms: Millis
    """The age at which a share partition without writes gets a new snapshot."""
    prune_interval_ms: Millis
    """How often the records that no snapshot needs are determined."""


class _ColdCheck(NamedTuple):
    due: Millis


class _PruneCheck(NamedTuple):
    due: Millis


class _Needed(NamedTuple):
    """The first offset that a new coordinator needs to load its state."""

    offset: Offset


class ShareCoordinator(CoordinatorMachine[ShareStateRecord]):
    def __init__(self, settings: SnapshotSettings) -> None:
        self._settings = settings
        self.states = ShareStates()
        self._next_cold_check: Millis | None = None
        self._next_prune_check: Millis | None = None
        self.first_needed: Offset = 0
        """Records below this offset are not needed, whatever a failover takes back."""

    # -- records -----------------------------------------------------------------------------------

    def encode(self, record: ShareStateRecord) -> LogRecord:
        return encode_record(record)

    def decode(self, key: bytes, value: bytes | None) -> ShareStateRecord | None:
        return decode_record(key, value)

    def replay(self, record: ShareStateRecord, origin: RecordOrigin) -> None:
        self.states.replay(record, origin.offset)

    def apply(self, change: Any) -> None:
        match change:
            case _ColdCheck(due):
                self._next_cold_check = due
            case _PruneCheck(due):
                self._next_prune_check = due
            case _Needed(offset):
                self.first_needed = max(self.first_needed, offset)
            case _:
                super().apply(change)

    # -- requests ----------------------------------------------------------------------------------

    def decide(self, request: CoordinatorRequest, at: Instant) -> ShareDecision:
        message = request.message
        key = messages.key_of(message)
        error = self._error(message, key, at.image)
        if error is not None:
            return ShareDecision(response=messages.refused(message, error.error, error.message))
        match message:
            case messages.InitializeState():
                return self._initialize(message, key, at)
            case messages.ReadState():
                return self._read(message, key, at)
            case messages.WriteState():
                return self._write(message, key, at)
            case messages.DeleteState():
                return self._delete(message, key)
            case messages.ReadSummary():
                return ShareDecision(response=self._summary(message, key))
        raise AssertionError(message)

    def refuse(self, request: CoordinatorRequest, error: ErrorCode) -> Any:
        return refuse_state_request(request, error)

    def _error(
        self, message: Any, key: SharePartitionKey, image: ClusterImage
    ) -> StateError | None:
        if message.topics[0].topic_id is None:
            return StateError(ErrorCode.invalid_request, _NO_TOPIC_ID)
        if key.partition < 0:
            return StateError(ErrorCode.invalid_request, _NEGATIVE_PARTITION)
        asked = messages.partition_of(message)
        known = self.states.get(key)
        error = None
        match message:
            case messages.InitializeState():
                error = _fenced(known, None, asked.state_epoch)
            case messages.ReadState():
                error = _fenced(known, asked.leader_epoch, None) or _missing(known, _NO_READ)
            case messages.WriteState():
                error = _missing(known, _NO_WRITE)
                error = error or _fenced(known, asked.leader_epoch, asked.state_epoch)
        if error is not None:
            return error
        topic = image.topic(key.topic_id)
        if topic is None or key.partition not in topic.partitions:
            return StateError(ErrorCode.unknown_topic_or_partition, _UNKNOWN_PARTITION)
        return None

    def _initialize(self, message: Any, key: SharePartitionKey, at: Instant) -> ShareDecision:
        asked = messages.partition_of(message)
        known = self.states.get(key)
        response = messages.done(message)
        if known is not None and (known.state_epoch, known.start_offset) == (
            asked.state_epoch,
            asked.start_offset,
        ):
            return ShareDecision(response=response)
        snapshot = ShareSnapshot(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=asked.state_epoch,
            leader_epoch=0,
            start_offset=asked.start_offset,
            delivery_complete_count=NO_COUNT if asked.start_offset == NO_OFFSET else 0,
            create_timestamp=at.wall,
            write_timestamp=at.wall,
        )
        return ShareDecision((ShareStateRecord(key, snapshot),), response)

    def _read(self, message: Any, key: SharePartitionKey, at: Instant) -> ShareDecision:
        known = self.states[key]
        response = messages.state_of(
            key.topic_id,
            read_response.PartitionResult(
                partition=key.partition,
                error_code=ErrorCode.none,
                error_message=None,
                state_epoch=known.state_epoch,
                start_offset=known.start_offset,
                state_batches=tuple(
                    read_response.StateBatch(
                        first_offset=batch.first,
                        last_offset=batch.last,
                        delivery_state=batch.state,
                        delivery_count=batch.delivery_count,
                    )
                    for batch in known.batches
                ),
            ),
        )
        leader_epoch = messages.partition_of(message).leader_epoch
        if known.fence_leader_epoch == leader_epoch:
            return ShareDecision(response=response)
        count = known.delivery_complete_count
        record = self._change(key, known, leader_epoch, known.start_offset, count, (), at)
        return ShareDecision((record,), response)

    def _write(self, message: Any, key: SharePartitionKey, at: Instant) -> ShareDecision:
        known, asked = self.states[key], messages.partition_of(message)
        batches = tuple(
            StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
            for b in asked.state_batches
        )
        count = asked.delivery_complete_count
        if asked.start_offset < known.start_offset:
            count = known.delivery_complete_count
        start = max(asked.start_offset, known.start_offset)
        record = self._change(key, known, known.leader_epoch, start, count, batches, at)
        return ShareDecision((record,), messages.done(message))

    def _change(
        self,
        key: SharePartitionKey,
        known: StoredShare,
        leader_epoch: LeaderEpoch,
        start: Offset,
        count: int,
        batches: tuple[StateBatch, ...],
        at: Instant,
    ) -> ShareStateRecord:
        """An update, or after enough updates a snapshot that contains the change."""
        if known.updates < self._settings.updates_per_snapshot:
            update = ShareUpdate(
                snapshot_epoch=known.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start,
                delivery_complete_count=count,
                batches=combine((), batches, start),
            )
            return ShareStateRecord(key, update)
        snapshot = ShareSnapshot(
            snapshot_epoch=known.snapshot_epoch + 1,
            state_epoch=known.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=count,
            create_timestamp=at.wall,
            write_timestamp=at.wall,
            batches=combine(known.batches, batches, start),
        )
        return ShareStateRecord(key, snapshot)

    def _delete(self, message: Any, key: SharePartitionKey) -> ShareDecision:
        records = (ShareStateRecord(key, None),) if self.states.get(key) is not None else ()
        return ShareDecision(records, messages.done(message))

    def _summary(self, message: Any, key: SharePartitionKey) -> Any:
        known = self.states.get(key)
        if known is None:
            return messages.no_summary(message)
        result = summary_response.PartitionResult(
            partition=key.partition,
            error_code=ErrorCode.none,
            error_message=None,
            state_epoch=known.state_epoch,
            leader_epoch=known.leader_epoch,
            start_offset=known.start_offset,
            delivery_complete_count=known.delivery_complete_count,
        )
        return messages.summary_of(key.topic_id, result)

    # -- time and metadata -------------------------------------------------------------------------

    def loaded(self, at: Instant) -> Iterator[ShareDecision]:
        # A topic may have been deleted while this partition had no coordinator.
        yield from self._forget_topics(at)
        yield ShareDecision(changes=(self._cold_check(at), self._prune_check(at)))

    def image_changed(self, old: ClusterImage, at: Instant) -> Iterator[ShareDecision]:
        if at.image.topic_names is not old.topic_names:
            yield from self._forget_topics(at)

    def _forget_topics(self, at: Instant) -> Iterator[ShareDecision]:
        """Delete the state of topics that were deleted."""
        for key in self.states.keys_of_missing_topics(at.image):
            yield ShareDecision((ShareStateRecord(key, None),))

    def tick(self, at: Instant) -> Iterator[ShareDecision]:
        """Write snapshots of share partitions without writes, so that old records can go."""
        if self._next_cold_check is not None and self._next_cold_check <= at.now:
            for key, known in self.states.cold(at.wall - self._settings.cold_interval_ms):
                snapshot = known.snapshot(known.snapshot_epoch + 1, at.wall)
                yield ShareDecision((ShareStateRecord(key, snapshot),))
            yield ShareDecision(changes=(self._cold_check(at),))
        if self._next_prune_check is not None and self._next_prune_check <= at.now:
            needed = self.states.first_needed_offset()
            # A snapshot that is not committed may be taken back. The earlier one is needed then.
            then = None if needed is None else _Needed(needed)
            yield ShareDecision(changes=(self._prune_check(at),), then=then)

    def settled(self, then: Hashable, error: ErrorCode, at: Instant) -> Iterator[ShareDecision]:
        assert isinstance(then, _Needed)
        if error is ErrorCode.none:
            yield ShareDecision(changes=(then,))

    def next_deadline(self) -> Millis | None:
        deadlines = (self._next_cold_check, self._next_prune_check)
        return min((one for one in deadlines if one is not None), default=None)

    def _cold_check(self, at: Instant) -> _ColdCheck:
        return _ColdCheck(at.now + self._settings.cold_interval_ms)

    def _prune_check(self, at: Instant) -> _PruneCheck:
        return _PruneCheck(at.now + self._settings.prune_interval_ms)


def refuse_state_request(request: CoordinatorRequest, error: ErrorCode) -> Any:
    """The response to a request that fails with an error of the coordinator or of its log."""
    return messages.refused(request.message, _REFUSALS.get(error, error))


def _missing(known: StoredShare | None, message: str) -> StateError | None:
    return StateError(ErrorCode.invalid_request, message) if known is None else None


def _fenced(
    known: StoredShare | None, leader_epoch: LeaderEpoch | None, state_epoch: int | None
) -> StateError | None:
    if leader_epoch is not None and leader_epoch < 0:
        return StateError(ErrorCode.invalid_request, _NEGATIVE_LEADER_EPOCH)
    if state_epoch is not None and state_epoch < 0:
        return StateError(ErrorCode.invalid_request, _NEGATIVE_STATE_EPOCH)
    if known is None:
        return None
    if leader_epoch is not None and known.fence_leader_epoch > leader_epoch:
        return StateError(ErrorCode.fenced_leader_epoch, _FENCED_LEADER)
    if state_epoch is not None and known.state_epoch > state_epoch:
        return StateError(ErrorCode.fenced_state_epoch, _FENCED_STATE)
    return None


_UNKNOWN_PARTITION = "This server does not host this topic-partition."
_FENCED_LEADER = "The leader epoch in the request is older than the epoch on the broker."
_FENCED_STATE = (
    "The share coordinator rejected the request because the share-group state epoch did not match."
)
