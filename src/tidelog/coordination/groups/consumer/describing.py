"""ConsumerGroupDescribe: the epochs of a group, its members, and what each has and should have."""

from collections.abc import Mapping

from kio.schema.consumer_group_describe.v1.response import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

from tidelog.coordination.groups.consumer.assignors.subscriptions import (
    Assignment as TargetAssignment,
)
from tidelog.coordination.groups.consumer.group import ConsumerGroup
from tidelog.coordination.groups.consumer.member import ConsumerMember
from tidelog.coordination.groups.consumer.topics import ClusterTopics
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicId

_CLASSIC, _CONSUMER = 0, 1
"""The types of members, from version 1 on (KIP-1099)."""


def describe(group: ConsumerGroup, default_assignor: str, topics: ClusterTopics) -> DescribedGroup:
    return DescribedGroup(
        error_code=ErrorCode.none,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor(default_assignor),
        members=tuple(_described(group, member, topics) for member in group.members.values()),
    )


def not_described(group_id: str, error: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
    )


def _described(group: ConsumerGroup, member: ConsumerMember, topics: ClusterTopics) -> Member:
    owned: dict[TopicId, list[int]] = {}
    for topic_id, partition in member.owned():
        owned.setdefault(topic_id, []).append(partition)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topic_names)),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment({id_: tuple(sorted(ids)) for id_, ids in owned.items()}, topics),
        target_assignment=_assignment(group.target(member.member_id), topics),
        member_type=_CLASSIC if member.uses_classic_protocol else _CONSUMER,
    )


def _assignment(
    partitions: TargetAssignment | Mapping[TopicId, tuple[int, ...]], topics: ClusterTopics
) -> Assignment:
    """The partitions of topics that exist, with the topics' names."""
    named = [(topic_id, topics.name_of(topic_id)) for topic_id in sorted(partitions)]
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=partitions[topic_id])
            for topic_id, name in named
            if name is not None
        )
    )
