"""A member of a consumer group, as an immutable value.

`assigned` is what the member may own now, and `revoking` is what it must still give up. Both map
each partition to the epoch at which the member received it. A member reaches the epoch of the
target assignment only after it has given up everything that the target does not contain.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TypeAlias

from tidelog.coordination.groups.consumer.assignors.subscriptions import Assignment
from tidelog.coordination.groups.consumer.records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
    CurrentTopicPartitions,
    TargetTopicPartitions,
)
from tidelog.model.ids import TopicId

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
LEAVING_STATIC_EPOCH = -2
"""The member epochs with which a member joins, leaves, and leaves in order to come back."""

PartitionEpochs: TypeAlias = Mapping[TopicId, Mapping[int, int]]
"""The epoch at which the member received each partition, by topic."""

NO_PARTITIONS: PartitionEpochs = {}


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """The member must give up partitions before it gets the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """The member waits for partitions that other members still own."""
    UNKNOWN = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    member_id: str
    epoch: int = JOINING_EPOCH
    previous_epoch: int = LEAVING_EPOCH
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: PartitionEpochs = field(default_factory=dict)
    revoking: PartitionEpochs = field(default_factory=dict)
    classic: ClassicMemberMetadata | None = None
    """Set if the member uses the classic protocol."""

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    @property
    def regex(self) -> str | None:
        """The regular expression that the member subscribes with; None if there is none."""
        return self.topic_regex or None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def owned(self) -> Iterator[tuple[TopicId, int]]:
        """The partitions that no other member may get yet."""
        for partitions in (self.assigned, self.revoking):
            for topic_id, epochs in partitions.items():
                for partition in epochs:
                    yield topic_id, partition

    def epoch_of(self, topic_id: TopicId, partition: int) -> int | None:
        """The epoch at which the member received a partition that it may still commit."""
        for partitions in (self.assigned, self.revoking):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def subscription_record(self) -> ConsumerGroupMemberMetadataValue:
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=tuple(sorted(self.topic_names)),
            subscribed_topic_regex=self.topic_regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=self.classic,
        )

    def assignment_record(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=_current_record(self.assigned),
            partitions_pending_revocation=_current_record(self.revoking),
        )

    def with_subscription(self, value: ConsumerGroupMemberMetadataValue) -> "ConsumerMember":
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> "ConsumerMember":
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=_state(value.state),
            assigned=_partition_epochs(value.assigned_partitions, value.member_epoch),
            revoking=_partition_epochs(value.partitions_pending_revocation, value.member_epoch),
        )

    def without_assignment(self) -> "ConsumerMember":
        """The member after a tombstone of its assignment; it is about to be removed."""
        return replace(
            self, epoch=LEAVING_EPOCH, previous_epoch=LEAVING_EPOCH, assigned={}, revoking={}
        )


def without_epochs(partitions: PartitionEpochs) -> Assignment:
    return {topic_id: tuple(sorted(epochs)) for topic_id, epochs in partitions.items()}


def with_epoch(assignment: Assignment, epoch: int) -> PartitionEpochs:
    return {topic_id: dict.fromkeys(ids, epoch) for topic_id, ids in assignment.items()}


def target_record(assignment: Assignment) -> ConsumerGroupTargetAssignmentMemberValue:
    return ConsumerGroupTargetAssignmentMemberValue(
        tuple(
            TargetTopicPartitions(topic_id, assignment[topic_id]) for topic_id in sorted(assignment)
        )
    )


def target_of(value: ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
    return {entry.topic_id: tuple(sorted(entry.partitions)) for entry in value.topic_partitions}


def _state(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN


def _current_record(partitions: PartitionEpochs) -> tuple[CurrentTopicPartitions, ...]:
    return tuple(
        CurrentTopicPartitions(
            topic_id, tuple(sorted(epochs)), tuple(epochs[one] for one in sorted(epochs))
        )
        for topic_id, epochs in sorted(partitions.items())
    )


def _partition_epochs(
    entries: tuple[CurrentTopicPartitions, ...], member_epoch: int
) -> PartitionEpochs:
    """Records before Kafka 4.3 contain no epochs; the member's own epoch is used instead."""
    partitions: dict[TopicId, Mapping[int, int]] = {}
    for entry in entries:
        epochs = entry.assignment_epochs
        if epochs is None or len(epochs) != len(entry.partitions):
            epochs = (max(member_epoch, 0),) * len(entry.partitions)
        partitions[entry.topic_id] = dict(zip(entry.partitions, epochs, strict=True))
    return partitions
