"""A share group: its epoch, its members and their assignment, and its share partitions.

Only `replay` changes a group; decisions read it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tidelog.coordination.groups.share import share_group_records as records
from tidelog.coordination.groups.share.share_group_records import (
    AssignedShareTopic,
    ShareGroupRecord,
    ShareTopicState,
)
from tidelog.coordination.groups.share.simple_assignor import SharePartitionId
from tidelog.coordination.runtime.decision import Instant
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, TopicId

ShareAssignment: TypeAlias = frozenset[SharePartitionId]

NOTHING: ShareAssignment = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMember:
    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    epoch: int = 0
    previous_epoch: int = -1
    assigned: ShareAssignment = NOTHING

    def metadata_record(self, group_id: str) -> ShareGroupRecord:
        value = records.ShareGroupMemberMetadataValue(
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=self.topics,
        )
        return records.ShareGroupMemberMetadataKey(group_id, self.member_id), value

    def assignment_record(self, group_id: str) -> ShareGroupRecord:
        value = records.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            assigned_partitions=by_topic(self.assigned),
        )
        return records.ShareGroupCurrentMemberAssignmentKey(group_id, self.member_id), value


@dataclass(frozen=True, slots=True)
class SharePartitionSets:
    """The share partitions of a group, by the progress of their state in the share coordinator."""

    initializing: ShareAssignment = NOTHING
    initialized: ShareAssignment = NOTHING
    names: Mapping[Any, str] = field(default_factory=dict)
    """The names of the topics."""

    def record(self, group_id: str) -> ShareGroupRecord:
        value = records.ShareGroupStatePartitionMetadataValue(
            initializing_topics=self._named(self.initializing),
            initialized_topics=self._named(self.initialized),
        )
        return records.ShareGroupStatePartitionMetadataKey(group_id), value

    def _named(self, partitions: ShareAssignment) -> tuple[ShareTopicState, ...]:
        return tuple(
            ShareTopicState(topic.topic_id, self.names.get(topic.topic_id, ""), topic.partitions)
            for topic in by_topic(partitions)
        )


class ShareGroup:
    type_name = "share"
    listed_protocol_type = "share"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        self.target_epoch = 0
        self.target_timestamp: Millis = 0
        self.targets: dict[str, ShareAssignment] = {}
        self.members: dict[str, ShareMember] = {}
        self.shares = SharePartitionSets()

    # -- as a group of any kind --------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    def subscribed_topics(self) -> frozenset[str]:
        return frozenset(topic for member in self.members.values() for topic in member.topics)

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, version: int | None
    ) -> ErrorCode:
        return ErrorCode.group_id_not_found  # share groups have no committed offsets

    def check_committed_partition(
        self, member_id: str, epoch: int, topic_id: TopicId, partition: int
    ) -> ErrorCode:
        return ErrorCode.none

    def commit_changes(self, member_id: str, at: Instant) -> tuple[Any, ...]:
        return ()

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        return ErrorCode.group_id_not_found

    def check_offset_delete(self) -> ErrorCode:
        return ErrorCode.group_id_not_found

    def check_delete(self) -> ErrorCode:
        return ErrorCode.non_empty_group if self.members else ErrorCode.none

    @property
    def is_removable(self) -> bool:
        return False  # an administrator deletes a share group

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics()

    def unused_since(self, commit_timestamp: Millis) -> Millis | None:
        return None

    def tombstones(self) -> list[ShareGroupRecord]:
        return [
            *(one for member in self.members for one in member_tombstones(self.group_id, member)),
            (records.ShareGroupTargetAssignmentMetadataKey(self.group_id), None),
            (records.ShareGroupMetadataKey(self.group_id), None),
            (records.ShareGroupStatePartitionMetadataKey(self.group_id), None),
        ]

    # -- replaying ---------------------------------------------------------------------------------

    def replay(self, key: Any, value: Any | None) -> None:
        """Apply a record of this group that does not delete it."""
        match key:
            case records.ShareGroupMetadataKey():
                assert value is not None
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case records.ShareGroupTargetAssignmentMetadataKey():
                self.target_epoch = 0 if value is None else value.assignment_epoch
                self.target_timestamp = 0 if value is None else value.assignment_timestamp
            case records.ShareGroupTargetAssignmentMemberKey():
                if value is None:
                    self.targets.pop(key.member_id, None)
                else:
                    self.targets[key.member_id] = partitions_of(value.topic_partitions)
            case records.ShareGroupStatePartitionMetadataKey():
                self.shares = SharePartitionSets() if value is None else _shares_of(value)
            case records.ShareGroupMemberMetadataKey():
                self._replay_member(key.member_id, value)
            case records.ShareGroupCurrentMemberAssignmentKey():
                self._replay_assignment(key.member_id, value)

    def _replay_member(
        self, member_id: str, value: records.ShareGroupMemberMetadataValue | None
    ) -> None:
        if value is None:
            self.members.pop(member_id, None)
            return
        known = self.members.get(member_id) or ShareMember(member_id=member_id)
        self.members[member_id] = replace(
            known,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=value.subscribed_topic_names,
        )

    def _replay_assignment(
        self, member_id: str, value: records.ShareGroupCurrentMemberAssignmentValue | None
    ) -> None:
        known = self.members.get(member_id)
        if known is None:
            if value is None:
                return
            known = ShareMember(member_id=member_id)
        if value is None:
            self.members[member_id] = replace(known, epoch=0, previous_epoch=-1, assigned=NOTHING)
            return
        self.members[member_id] = replace(
            known,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            assigned=partitions_of(value.assigned_partitions),
        )


def by_topic(partitions: ShareAssignment) -> tuple[AssignedShareTopic, ...]:
    topics: dict[Any, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        topics.setdefault(topic_id, []).append(partition)
    return tuple(AssignedShareTopic(topic, tuple(found)) for topic, found in topics.items())


def partitions_of(topics: Iterable[Any]) -> ShareAssignment:
    return frozenset((topic.topic_id, index) for topic in topics for index in topic.partitions)


def member_tombstones(group_id: str, member_id: str) -> list[ShareGroupRecord]:
    return [
        (records.ShareGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        (records.ShareGroupTargetAssignmentMemberKey(group_id, member_id), None),
        (records.ShareGroupMemberMetadataKey(group_id, member_id), None),
    ]


def _shares_of(value: records.ShareGroupStatePartitionMetadataValue) -> SharePartitionSets:
    topics = (*value.initializing_topics, *value.initialized_topics)
    return SharePartitionSets(
        partitions_of(value.initializing_topics),
        partitions_of(value.initialized_topics),
        {topic.topic_id: topic.topic_name for topic in topics},
    )
