"""The responses to OffsetCommit and OffsetFetch, partition by partition.

If a client sends a topic id, the API layer adds the topic name to the request. The response
contains the topic id too, because its version requires that field.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TypeAlias

from kio.schema.offset_commit.v10.request import OffsetCommitRequestPartition
from kio.schema.offset_commit.v10.response import OffsetCommitResponsePartition
from kio.schema.offset_fetch.v10.response import OffsetFetchResponsePartitions

from tidelog.coordination.records import OffsetCommitValue
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_EPOCH, NO_OFFSET
from tidelog.protocol.messages.canonical import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)

NO_THROTTLE = timedelta(0)

_GROUP_ERROR_SINCE = 2

CommitCheck: TypeAlias = Callable[
    [OffsetCommitRequestTopic, OffsetCommitRequestPartition], ErrorCode
]
"""A function that returns the result of committing one partition."""

Lookup: TypeAlias = Callable[[OffsetFetchRequestTopics, int], OffsetCommitValue | None]
"""A function that returns the committed offset of one partition."""

FetchCheck: TypeAlias = Callable[[str, int], ErrorCode]
"""A function that returns the error of one partition."""


def commit_response(request: OffsetCommitRequest, check: CommitCheck) -> OffsetCommitResponse:
    """One result per partition, in the order of the request."""
    return OffsetCommitResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=check(topic, partition),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def refused_commit(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    return commit_response(request, lambda topic, partition: error)


def fetch_response(groups: Iterable[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
    return OffsetFetchResponse(throttle_time=NO_THROTTLE, groups=tuple(groups))


def fetched_topics(
    topics: Iterable[OffsetFetchRequestTopics], lookup: Lookup, check: FetchCheck
) -> tuple[OffsetFetchResponseTopics, ...]:
    """One result per requested partition, in the order of the request."""
    return tuple(
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                fetched_partition(partition, lookup(topic, partition), check(topic.name, partition))
                for partition in topic.partition_indexes
            ),
        )
        for topic in topics
    )


def fetched_partition(
    partition: int, value: OffsetCommitValue | None, error: ErrorCode
) -> OffsetFetchResponsePartitions:
    """The committed offset of a partition, or -1 if there is none or there is an error."""
    if error is not ErrorCode.none:
        value = None
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=NO_OFFSET if value is None else value.offset,
        committed_leader_epoch=NO_EPOCH if value is None else value.leader_epoch,
        metadata="" if value is None else value.metadata,
        error_code=error,
    )


def refused_fetch(
    request: OffsetFetchRequest, error: ErrorCode, version: int
) -> OffsetFetchResponse:
    return fetch_response(refused_group(group, error, version) for group in request.groups)


def refused_group(
    group: OffsetFetchRequestGroup, error: ErrorCode, version: int
) -> OffsetFetchResponseGroup:
    """The error response for a group; before version 2, only the partitions have an error field."""
    topics = (group.topics or ()) if version < _GROUP_ERROR_SINCE else ()
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        error_code=error,
        topics=fetched_topics(topics, lambda *_: None, lambda *_: error),
    )
