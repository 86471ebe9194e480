"""OffsetCommit (key 8), versions 2-10; OffsetFetch (9), 1-10; OffsetDelete (47), 0.

A coordinator stores the committed offsets of its groups by topic name. From version 10 on,
OffsetCommit and OffsetFetch use topic ids (KIP-848). This module converts the ids of a request to
names, and the names of the response back to ids. An unknown id gets UNKNOWN_TOPIC_ID.

A commit or deletion for a partition that does not exist gets UNKNOWN_TOPIC_OR_PARTITION and never
reaches the coordinator. OffsetFetch returns offset -1 for a partition that does not exist, as for
any partition without a committed offset. From version 2 on, an OffsetFetch whose list of topics is
null returns all offsets of a group. From version 8 on, OffsetFetch accepts several groups
(KIP-709).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from kio.schema.offset_commit.v10.response import OffsetCommitResponsePartition
from kio.schema.offset_delete.v0.request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from kio.schema.offset_delete.v0.response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kio.schema.offset_fetch.v10.response import OffsetFetchResponsePartitions

from tidelog.api.handler import Disconnect, Handling, Request
from tidelog.api.slicing import PAUSE, SLICE, Pace, elements_of, joined, split
from tidelog.controller.image.image import ClusterImage
from tidelog.model.effects import Coordinate
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, TopicId, TopicPartition
from tidelog.protocol.messages.canonical import (
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)

_FIRST_BY_ID = 10
_PARTITIONS = ("groups", "topics", "partition_indexes")
_ANSWERED = ("groups", "topics", "partitions")
_MOST_FOUND = 100_000
"""The maximum number of offsets in a response. Without this limit, a request that names a group
many times could get a response of any size.
"""


class _Topic(NamedTuple):
    """A topic of a request, with its name and id."""

    name: str
    topic_id: TopicId | None
    error: ErrorCode
    asked: Any

    def error_of(self, partition: int, image: ClusterImage) -> ErrorCode:
        if self.error is not ErrorCode.none:
            return self.error
        exists = image.partition(TopicPartition(self.name, partition)) is not None
        return ErrorCode.none if exists else ErrorCode.unknown_topic_or_partition


def _resolve(asked: Any, request: Request) -> _Topic:
    if request.version < _FIRST_BY_ID:
        return _Topic(asked.name, None, ErrorCode.none, asked)
    name = request.image.topic_names.get(asked.topic_id)
    if name is None:
        return _Topic("", asked.topic_id, ErrorCode.unknown_topic_id, asked)
    return _Topic(name, asked.topic_id, ErrorCode.none, asked)


# -- OffsetCommit ----------------------------------------------------------------------------------


def offset_commit(request: Request) -> Handling:
    """Commits offsets of a group."""
    message, image = request.message, request.image
    topics = [_resolve(asked, request) for asked in message.topics]
    valid = [
        OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
        for topic in topics
        if (partitions := _existing(topic, image))
    ]
    committed: dict[TopicPartition, ErrorCode] = {}
    if valid:
        response = yield Coordinate(message.group_id, replace(message, topics=tuple(valid)))
        committed = _errors(response.topics)
    return OffsetCommitResponse(
        throttle_time=timedelta(0),
        topics=tuple(_committed(topic, image, committed) for topic in topics),
    )


def _existing(topic: _Topic, image: ClusterImage) -> tuple[Any, ...]:
    return tuple(
        partition
        for partition in topic.asked.partitions
        if topic.error_of(partition.partition_index, image) is ErrorCode.none
    )


def _errors(topics: Sequence[Any]) -> dict[TopicPartition, ErrorCode]:
    return {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for topic in topics
        for partition in topic.partitions
    }


def _committed(
    topic: _Topic, image: ClusterImage, committed: Mapping[TopicPartition, ErrorCode]
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetCommitResponsePartition(
                partition_index=partition.partition_index,
                error_code=topic.error_of(partition.partition_index, image)
                or committed[TopicPartition(topic.name, partition.partition_index)],
            )
            for partition in topic.asked.partitions
        ),
    )


# -- OffsetFetch -----------------------------------------------------------------------------------


def offset_fetch(request: Request) -> Handling:
    """Fetches the committed offsets of groups."""
    message, groups, found = request.message, [], 0
    pace = Pace()
    for asked in message.groups:
        group, of_group = replace(message, groups=(asked,)), []
        for part in (
            split(group, _PARTITIONS, SLICE) if elements_of(group, _PARTITIONS) else [group]
        ):
            fetched = yield from _fetch_group(request, part.groups[0])
            of_group.append(OffsetFetchResponse(throttle_time=timedelta(0), groups=(fetched,)))
            count = sum(len(topic.partitions) for topic in fetched.topics)
            found += count
            if found > _MOST_FOUND:
                return Disconnect(f"sent OffsetFetch for more than {_MOST_FOUND} offsets")
            if pace.is_due(1 + count):
                yield PAUSE
        groups += joined(of_group, _ANSWERED).groups
    return OffsetFetchResponse(throttle_time=timedelta(0), groups=tuple(groups))


def _fetch_group(request: Request, asked: Any) -> Handling:
    topics = None if asked.topics is None else [_resolve(t, request) for t in asked.topics]
    response = yield Coordinate(asked.group_id, _fetch(request, asked, topics))
    return _fetched(response.groups[0], topics or (), request)


def _fetch(request: Request, group: Any, topics: Sequence[_Topic] | None) -> OffsetFetchRequest:
    """The request for one group, with the topics that exist."""
    known = None
    if topics is not None:
        known = tuple(
            OffsetFetchRequestTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_indexes=topic.asked.partition_indexes,
            )
            for topic in topics
            if topic.error is ErrorCode.none
        )
    asked: OffsetFetchRequest = replace(request.message, groups=(replace(group, topics=known),))
    return asked


def _fetched(
    group: OffsetFetchResponseGroup, asked: Sequence[_Topic], request: Request
) -> OffsetFetchResponseGroup:
    topics = group.topics
    if request.version >= _FIRST_BY_ID:
        # A topic that was asked for keeps its id, even if it is created again meanwhile.
        ids = {topic.name: topic.topic_id for topic in asked}
        # Offsets of a deleted topic are omitted, because the topic has no id.
        topics = tuple(
            replace(topic, topic_id=topic_id)
            for topic in topics
            if (topic_id := ids.get(topic.name) or _current_id(topic.name, request)) is not None
        )
    if group.error_code is ErrorCode.none:
        topics += tuple(_unknown(topic) for topic in asked if topic.error is not ErrorCode.none)
    return replace(group, topics=topics)


def _current_id(name: str, request: Request) -> TopicId | None:
    known = request.image.topics.get(name)
    return None if known is None else known.topic_id


def _unknown(topic: _Topic) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=NO_OFFSET,
                metadata="",
                error_code=topic.error,
            )
            for index in topic.asked.partition_indexes
        ),
    )


# -- OffsetDelete ----------------------------------------------------------------------------------


def offset_delete(request: Request) -> Handling:
    """Deletes committed offsets of topics that the group does not subscribe to."""
    message, image = request.message, request.image
    topics = [_Topic(asked.name, None, ErrorCode.none, asked) for asked in message.topics]
    valid = tuple(
        OffsetDeleteRequestTopic(name=topic.name, partitions=partitions)
        for topic in topics
        if (partitions := _existing(topic, image))
    )
    response: OffsetDeleteResponse = yield Coordinate(
        message.group_id, OffsetDeleteRequest(group_id=message.group_id, topics=valid)
    )
    if response.error_code is not ErrorCode.none:
        return response
    deleted = _errors(response.topics)
    return OffsetDeleteResponse(
        error_code=ErrorCode.none,
        throttle_time=timedelta(0),
        topics=tuple(_deleted(topic, image, deleted) for topic in topics),
    )


def _deleted(
    topic: _Topic, image: ClusterImage, deleted: Mapping[TopicPartition, ErrorCode]
) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetDeleteResponsePartition(
                partition_index=partition.partition_index,
                error_code=topic.error_of(partition.partition_index, image)
                or deleted[TopicPartition(topic.name, partition.partition_index)],
            )
            for partition in topic.asked.partitions
        ),
    )
