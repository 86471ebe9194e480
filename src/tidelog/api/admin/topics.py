"""CreateTopics (key 19), versions 2-7; DeleteTopics (20), 1-6; CreatePartitions (37), 0-3.

The controller decides on each request. The response is sent when the controller's records are
committed and applied on this broker, so that the client can use a new topic at once. CreateTopics 4
adds default numbers of partitions and replicas (KIP-464). CreateTopics 5 adds the effective
configuration to the response (KIP-525). CreateTopics 7 and DeleteTopics 6 add topic ids (KIP-516).

With `delete.topic.enable=false` every deletion gets TOPIC_DELETION_DISABLED. Versions 1 and 2 of
DeleteTopics predate this error and return INVALID_REQUEST.

Topics are independent, so a long request is split into parts of a few topics. The controller
decides on one part at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from kio.schema.create_partitions.v3.response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse

from tidelog.api.handler import Handling, Request
from tidelog.api.slicing import PAUSE, SLICE, in_slices, joined
from tidelog.controller.decide.topics import (
    MAX_PARTITIONS_PER_REQUEST,
    TOO_MANY_PARTITIONS,
    partitions_asked,
    refused_topic,
)
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode

_FIRST_WITH_DELETION_DISABLED = 3
_FEW = 50
"""The maximum number of topics that the controller decides on at a time."""


def create_topics(request: Request) -> Handling:
    """Creates topics, or only validates the request."""
    message, default = request.message, request.settings.num_partitions
    sizes = [partitions_asked(topic, default) for topic in message.topics]
    if len(sizes) <= _FEW:
        return (yield ChangeMetadata(message))
    if sum(sizes) > MAX_PARTITIONS_PER_REQUEST:
        names = list(dict.fromkeys(topic.name for topic in message.topics))
        refused = yield from in_slices(names, _too_many)
        return CreateTopicsResponse(throttle_time=timedelta(0), topics=tuple(refused))
    responses = []
    for topics in _parts(message.topics, sizes):
        responses.append((yield ChangeMetadata(replace(message, topics=topics))))
        yield PAUSE
    return joined(responses, ("topics",))


def _too_many(name: str) -> CreatableTopicResult:
    return refused_topic(name, TOO_MANY_PARTITIONS)


def _parts(topics: Sequence[Any], sizes: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Split topics into parts, each with a limited number of topics and of partitions."""
    part: list[Any] = []
    room = SLICE
    for topic, size in zip(topics, sizes, strict=True):
        if part and (len(part) == _FEW or size > room):
            yield tuple(part)
            part, room = [], SLICE
        part.append(topic)
        room -= size
    yield tuple(part)


def create_partitions(request: Request) -> Handling:
    """Adds partitions to topics."""
    message, existing = request.message, request.image.topics
    if len(message.topics) <= _FEW:
        return (yield ChangeMetadata(message))
    sizes = [
        max(0, topic.count - len(existing[topic.name].partitions)) if topic.name in existing else 0
        for topic in message.topics
    ]
    if sum(sizes) > MAX_PARTITIONS_PER_REQUEST:
        refused = yield from in_slices(message.topics, _too_many_more)
        return CreatePartitionsResponse(throttle_time=timedelta(0), results=tuple(refused))
    responses = []
    for topics in _parts(message.topics, sizes):
        responses.append((yield ChangeMetadata(replace(message, topics=topics))))
        yield PAUSE
    return joined(responses, ("results",))


def _too_many_more(topic: Any) -> CreatePartitionsTopicResult:
    error, message = TOO_MANY_PARTITIONS
    return CreatePartitionsTopicResult(name=topic.name, error_code=error, error_message=message)


def delete_topics(request: Request) -> Handling:
    """Deletes topics by name or id."""
    if not request.settings.delete_topic_enable:
        return _deletion_disabled(request)
    return (yield ChangeMetadata(request.message))


def _deletion_disabled(request: Request) -> DeleteTopicsResponse:
    error = (
        ErrorCode.topic_deletion_disabled
        if request.version >= _FIRST_WITH_DELETION_DISABLED
        else ErrorCode.invalid_request
    )
    return DeleteTopicsResponse(
        throttle_time=timedelta(0),
        responses=tuple(
            DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=error,
                error_message="Topic deletion is disabled.",
            )
            for topic in request.message.topics
        ),
    )
