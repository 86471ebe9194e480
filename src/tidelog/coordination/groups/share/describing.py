"""The description of a share group, for ShareGroupDescribe."""

from collections.abc import Iterable
from datetime import timedelta

from kio.schema.share_group_describe.v1 import response

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.groups.share.share_group import ShareGroup, ShareMember, by_topic
from tidelog.model.errors import ErrorCode

ASSIGNOR = "simple"
_NO_OPERATIONS = -2147483648


def described(group: ShareGroup, image: ClusterImage) -> response.DescribedGroup:
    return response.DescribedGroup(
        error_code=ErrorCode.none,
        error_message=None,
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=ASSIGNOR,
        members=tuple(_member(member, image) for member in group.members.values()),
        authorized_operations=_NO_OPERATIONS,
    )


def not_described(group_id: str, error: ErrorCode, message: str | None) -> response.DescribedGroup:
    return response.DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
        authorized_operations=_NO_OPERATIONS,
    )


def refused(group_ids: Iterable[str], error: ErrorCode) -> response.ShareGroupDescribeResponse:
    """The response of a coordinator that cannot answer, for example while it loads."""
    groups = tuple(not_described(group_id, error, None) for group_id in group_ids)
    return response.ShareGroupDescribeResponse(throttle_time=timedelta(), groups=groups)


def _member(member: ShareMember, image: ClusterImage) -> response.Member:
    topics = tuple(
        response.TopicPartitions(
            topic_id=topic.topic_id,
            topic_name=image.topic_names[topic.topic_id],
            partitions=topic.partitions,
        )
        for topic in by_topic(member.assigned)
        if topic.topic_id in image.topic_names
    )
    return response.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        assignment=response.Assignment(topic_partitions=topics),
    )
