"""The rows and responses of the APIs that describe, alter and delete offsets of share groups."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple

from kio.schema.alter_share_group_offsets.v0 import request as alter_request
from kio.schema.alter_share_group_offsets.v0 import response as alter_response
from kio.schema.delete_share_group_offsets.v0 import request as delete_request
from kio.schema.delete_share_group_offsets.v0 import response as delete_response
from kio.schema.describe_share_group_offsets.v1 import request as describe_request
from kio.schema.describe_share_group_offsets.v1 import response as describe_response

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.groups.share.share_group import ShareGroup
from tidelog.coordination.groups.share.share_operations import ShareOperation
from tidelog.coordination.groups.share.simple_assignor import SharePartitionId
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, ZERO_TOPIC_ID

DescribeOffsets = describe_request.DescribeShareGroupOffsetsRequest
AlterOffsets = alter_request.AlterShareGroupOffsetsRequest
DeleteOffsets = delete_request.DeleteShareGroupOffsetsRequest

_NO_TIME = timedelta()
_UNKNOWN = "This server does not host this topic-partition."
_NO_OFFSETS = "There is no offset information to delete."


class AskedShare(NamedTuple):
    """A partition that a request names; `share` is None if it does not exist."""

    topic: str
    partition: int
    share: SharePartitionId | None


def asked_shares(message: Any, group: ShareGroup, image: ClusterImage) -> list[AskedShare]:
    """The share partitions of a request to describe or to alter offsets."""
    asked = message.groups[0].topics if isinstance(message, DescribeOffsets) else message.topics
    if asked is None:
        return [
            AskedShare(image.topic_names[topic_id], index, (topic_id, index))
            for topic_id, index in sorted(group.shares.initialized)
            if topic_id in image.topic_names
        ]
    rows = []
    for topic in asked:
        found = image.topics.get(topic.topic_name)
        for one in topic.partitions:
            index = one if isinstance(one, int) else one.partition_index
            exists = found is not None and index in found.partitions
            share = (found.topic_id, index) if found is not None and exists else None
            rows.append(AskedShare(topic.topic_name, index, share))
    return rows


def deletable(group: ShareGroup, name: str, image: ClusterImage) -> list[SharePartitionId]:
    """The share partitions of a topic that have state."""
    topic = image.topics.get(name)
    known = group.shares.initialized | group.shares.initializing
    return [] if topic is None else sorted(one for one in known if one[0] == topic.topic_id)


# -- responses -------------------------------------------------------------------------------------


def refused(message: Any, error: ErrorCode, reason: str | None = None) -> Any:
    match message:
        case DescribeOffsets():
            groups = tuple(
                _described_group(one.group_id, (), error, reason) for one in message.groups
            )
            return describe_response.DescribeShareGroupOffsetsResponse(
                throttle_time=_NO_TIME, groups=groups
            )
        case AlterOffsets():
            return alter_response.AlterShareGroupOffsetsResponse(
                throttle_time=_NO_TIME, error_code=error, error_message=reason, responses=()
            )
        case DeleteOffsets():
            return delete_response.DeleteShareGroupOffsetsResponse(
                throttle_time=_NO_TIME, error_code=error, error_message=reason, responses=()
            )
    raise AssertionError(message)


def response_to(operation: ShareOperation, group: ShareGroup, image: ClusterImage) -> Any:
    match operation.message:
        case DescribeOffsets():
            return _described(operation, group, image)
        case AlterOffsets():
            return _altered(operation, group, image)
        case DeleteOffsets():
            return _deleted(operation, image)
    raise AssertionError(operation.message)


def _described(operation: ShareOperation, group: ShareGroup, image: ClusterImage) -> Any:
    topics: dict[str, list[Any]] = {}
    for asked in asked_shares(operation.message, group, image):
        topics.setdefault(asked.topic, []).append(_described_partition(operation, asked))
    rows = tuple(
        describe_response.DescribeShareGroupOffsetsResponseTopic(
            topic_name=name, topic_id=_id_of(name, image), partitions=tuple(partitions)
        )
        for name, partitions in topics.items()
    )
    described = _described_group(operation.group_id, rows, ErrorCode.none, None)
    return describe_response.DescribeShareGroupOffsetsResponse(
        throttle_time=_NO_TIME, groups=(described,)
    )


def _described_partition(operation: ShareOperation, asked: AskedShare) -> Any:
    error: ErrorCode = ErrorCode.unknown_topic_or_partition
    reason: str | None = _UNKNOWN
    start, leader_epoch, lag = NO_OFFSET, 0, -1
    if asked.share is not None:
        error, reason = operation.error_of(asked.share), None
        result = operation.results.get(asked.share)
        if error is ErrorCode.none and result is not None:
            start, leader_epoch = result.start_offset, result.leader_epoch
            end = operation.ends.get(asked.share, NO_OFFSET)
            done = result.delivery_complete_count
            if start >= 0 and end >= 0 and done >= 0:
                lag = max(0, end - start - done)
    return describe_response.DescribeShareGroupOffsetsResponsePartition(
        partition_index=asked.partition,
        start_offset=start,
        leader_epoch=leader_epoch,
        lag=lag,
        error_code=error,
        error_message=reason,
    )


def _described_group(
    group_id: str, topics: Iterable[Any], error: ErrorCode, reason: str | None
) -> describe_response.DescribeShareGroupOffsetsResponseGroup:
    return describe_response.DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id, topics=tuple(topics), error_code=error, error_message=reason
    )


def _altered(operation: ShareOperation, group: ShareGroup, image: ClusterImage) -> Any:
    topics: dict[str, list[Any]] = {}
    for asked in asked_shares(operation.message, group, image):
        error: ErrorCode = ErrorCode.unknown_topic_or_partition
        reason: str | None = _UNKNOWN
        if asked.share is not None:
            error, reason = operation.error_of(asked.share), None
        row = alter_response.AlterShareGroupOffsetsResponsePartition(
            partition_index=asked.partition, error_code=error, error_message=reason
        )
        topics.setdefault(asked.topic, []).append(row)
    return alter_response.AlterShareGroupOffsetsResponse(
        throttle_time=_NO_TIME,
        error_code=ErrorCode.none,
        error_message=None,
        responses=tuple(
            alter_response.AlterShareGroupOffsetsResponseTopic(
                topic_name=name, topic_id=_id_of(name, image), partitions=tuple(rows)
            )
            for name, rows in topics.items()
        ),
    )


def _deleted(operation: ShareOperation, image: ClusterImage) -> Any:
    rows = []
    for topic in operation.message.topics:
        name = topic.topic_name
        topic_id = _id_of(name, image)
        shares = [share for share in operation.results if share[0] == topic_id]
        errors = [operation.error_of(share) for share in shares]
        error, reason = ErrorCode.none, None
        if name not in image.topics:
            error, reason = ErrorCode.unknown_topic_or_partition, _UNKNOWN
        elif not shares:
            reason = _NO_OFFSETS
        elif any(one is not ErrorCode.none for one in errors):
            error = next(one for one in errors if one is not ErrorCode.none)
        rows.append(
            delete_response.DeleteShareGroupOffsetsResponseTopic(
                topic_name=name, topic_id=topic_id, error_code=error, error_message=reason
            )
        )
    return delete_response.DeleteShareGroupOffsetsResponse(
        throttle_time=_NO_TIME,
        error_code=ErrorCode.none,
        error_message=None,
        responses=tuple(rows),
    )


def _id_of(name: str, image: ClusterImage) -> Any:
    topic = image.topics.get(name)
    return ZERO_TOPIC_ID if topic is None else topic.topic_id
