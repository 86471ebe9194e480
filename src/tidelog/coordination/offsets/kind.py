"""The part of a group shard that keeps committed offsets, for groups of every kind."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kio.schema.offset_delete.v0.request import OffsetDeleteRequest
from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequest

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.groups.classic.group import simple_group
from tidelog.coordination.groups.kind import GroupDecision, GroupKind
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.offsets import committing, expiry
from tidelog.coordination.offsets.transactional import commit_in_transaction
from tidelog.coordination.records import OffsetCommitKey
from tidelog.coordination.runtime.decision import (
    CoordinatorRequest,
    Instant,
    ProducerIdAndEpoch,
    RecordOrigin,
)
from tidelog.model.ids import Millis
from tidelog.protocol.messages.canonical import OffsetCommitRequest, OffsetFetchRequest


class ExpiryCheckSet(NamedTuple):
    """The time of the next check for expired offsets and unused groups."""

    deadline: Millis


class CommittedOffsets(GroupKind):
    type_name = "offsets"
    messages = frozenset(
        {OffsetCommitRequest, TxnOffsetCommitRequest, OffsetFetchRequest, OffsetDeleteRequest}
    )
    keys = (OffsetCommitKey,)

    def __init__(self, shard: GroupShardState) -> None:
        self._shard = shard
        self._next_check: Millis | None = None

    def decide(self, request: CoordinatorRequest, at: Instant) -> GroupDecision:
        match request.message:
            case OffsetCommitRequest():
                return committing.commit(self._shard, request, at)
            case TxnOffsetCommitRequest():
                return commit_in_transaction(self._shard, request, at)
            case OffsetFetchRequest():
                return committing.fetch(self._shard, request)
            case OffsetDeleteRequest() as message:
                return committing.delete_offsets(self._shard, message)
        raise AssertionError(request)

    # -- Changes of state --------------------------------------------------------------------------

    def replay(self, key: Any, value: Any | None, origin: RecordOrigin) -> None:
        if origin.producer is not None:
            self._shard.offsets.add_pending(origin.producer, key, value, origin.offset)
        else:
            self._shard.offsets.apply(key, value, origin.offset)
        if value is not None:
            self._ensure_group(key.group)

    def transaction_ended(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        for key in self._shard.offsets.end_transaction(producer, committed=committed):
            self._ensure_group(key.group)

    def _ensure_group(self, group_id: str) -> None:
        if group_id not in self._shard.groups:
            self._shard.groups[group_id] = simple_group(group_id)

    def apply(self, change: Any) -> None:
        assert isinstance(change, ExpiryCheckSet)
        self._next_check = change.deadline

    # -- Expiry ------------------------------------------------------------------------------------

    def loaded(self, at: Instant) -> Iterator[GroupDecision]:
        yield GroupDecision(changes=(self._check_after(at),))

    def image_changed(self, old: ClusterImage, at: Instant) -> Iterator[GroupDecision]:
        records = tuple(expiry.records_of_deleted_topics(self._shard, old, at.image))
        if records:
            yield GroupDecision(records=records, is_atomic=False)

    def tick(self, at: Instant) -> Iterator[GroupDecision]:
        if self._next_check is None or self._next_check > at.now:
            return
        records = tuple(expiry.expired_records(self._shard, at))
        yield GroupDecision(
            records=records, changes=(self._check_after(at),), is_atomic=False, at_once=True
        )

    def _check_after(self, at: Instant) -> ExpiryCheckSet:
        return ExpiryCheckSet(at.now + self._shard.settings.offsets_retention_check_interval_ms)

    def next_deadline(self) -> Millis | None:
        return self._next_check
