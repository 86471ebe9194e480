"""Client requests and their frames, for tests without a socket."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState

from tidelog.api.registry import REGISTRY
from tidelog.protocol import fetch, produce
from tidelog.protocol.fetch import FetchPartition, FetchRequest
from tidelog.protocol.messages.canonical import canonical_request
from tidelog.protocol.messages.messages import decode_response, encode_request, versions_of
from tidelog.protocol.messages.schema import fields_of
from tidelog.protocol.pieces import TopicRef
from tidelog.protocol.produce import ProduceRequest
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import Record, build_batch, read_records

PRODUCE_VERSION, FETCH_VERSION = 11, 12
"""The last versions that identify topics by name."""
LEADER_ONLY_FETCH_VERSION = 10
"""The last Fetch version that followers never serve to consumers (KIP-392)."""


# -- encoding and decoding frames ------------------------------------------------------------------


def version_for(message: Any) -> int:
    """The default version of a message."""
    match message:
        case ProduceRequest():
            return PRODUCE_VERSION
        case FetchRequest():
            return FETCH_VERSION
        case _:
            newest = versions_of(message.__api_key__)[-1]
            api = REGISTRY.get(message.__api_key__)
            return newest if api is None else min(newest, api.max_version)


def frame_of(message: Any, correlation_id: int = 1, version: int | None = None) -> bytes:
    """A complete frame, including its length."""
    version = version_for(message) if version is None else version
    match message:
        case ProduceRequest():
            return b"".join(produce.encode_request(version, correlation_id, "test", message))
        case FetchRequest():
            return bytes(fetch.encode_request(version, correlation_id, "test", message))
        case _:
            return encode_request(message, version, correlation_id, "test")


def answer_in(frame: bytes, message: Any, version: int | None = None) -> Any:
    """Decode the response to `message` from a frame without its length."""
    version = version_for(message) if version is None else version
    match message:
        case ProduceRequest():
            return produce.decode_response(version, frame)
        case FetchRequest():
            return fetch.decode_response(version, memoryview(frame))
        case _:
            return decode_response(message.__api_key__, version, frame)


# -- building requests -----------------------------------------------------------------------------


def ask(api_key: int, **fields: Any) -> Any:
    """A request in canonical form. Fields that are not given have the value of an absent field."""
    cls = canonical_request(api_key)
    absent = {field.name: field.absent() for field in fields_of(cls)}
    return cls(**{**absent, **fields})


def create_topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    *,
    on: Iterable[Sequence[int]] = (),
    timeout_ms: int = 10_000,
    **configs: str,
) -> CreateTopicsRequest:
    """A CreateTopics request.

    `on` lists the replicas of each partition. Underscores in config names stand for dots.
    """
    assignments = tuple(
        CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(brokers))
        for index, brokers in enumerate(on)
    )
    topic = CreatableTopic(
        name=name,
        num_partitions=-1 if assignments else partitions,
        replication_factor=-1 if assignments else replicas,
        assignments=assignments,
        configs=tuple(
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ),
    )
    return CreateTopicsRequest(
        topics=(topic,), timeout=timedelta(milliseconds=timeout_ms), validate_only=False
    )


def delete_topic(name: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=(DeleteTopicState(name=name, topic_id=None),), timeout=timedelta(seconds=10)
    )


def batch(*values: bytes, timestamp: int = 1_700_000_000_000, **header: Any) -> bytes:
    return build_batch([Record(None, value, timestamp) for value in values], **header)


def produce_to(
    topic: TopicRef,
    records: Mapping[int, bytes | None] | bytes,
    *,
    acks: int = -1,
    timeout_ms: int = 10_000,
) -> ProduceRequest:
    """A Produce request with one batch per partition. Plain bytes go to partition 0."""
    batches = records if isinstance(records, Mapping) else {0: records}
    views = [
        (index, None if data is None else memoryview(bytearray(data)))
        for index, data in batches.items()
    ]
    return ProduceRequest(None, acks, timeout_ms, [(topic, views)])


def fetch_from(
    topic: str | UUID,
    offsets: Mapping[int, int] | int = 0,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    epoch: int = -1,
) -> FetchRequest:
    """A Fetch request with one offset per partition. A plain number is for partition 0."""
    asked = offsets if isinstance(offsets, Mapping) else {0: offsets}
    partitions = [
        FetchPartition(index, epoch, offset, -1, -1, max_bytes) for index, offset in asked.items()
    ]
    return FetchRequest(max_wait_ms, min_bytes, max_bytes, topics=[(topic, partitions)])


def records_in(data: bytes | memoryview | None) -> list[Record]:
    """The records of all complete batches in fetched bytes."""
    if data is None:
        return []
    view = memoryview(bytes(data))
    return [
        record
        for at, header in iterate(view)
        for record in read_records(view[at : at + header.size])
    ]
