"""The produce request: names or ids of topics, and a view of the records of each partition."""

import struct
from dataclasses import dataclass, field
from struct import Struct
from typing import TypeAlias

from tidelog.model.disk import Buffer
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.headers import request_prefix
from tidelog.protocol.pieces import (
    ANY_NUMBER,
    I32,
    ReadTopic,
    TopicRef,
    compact_string,
    entries_left,
    read_compact_count,
    read_compact_string,
    read_count,
    read_nullable_compact_string,
    read_nullable_string,
    read_string,
    read_topic_id,
    skip_tagged_fields,
    string,
    topic_by_compact_name,
    topic_by_id,
    topic_by_name,
)
from tidelog.protocol.varint import read_uvarint, uvarint

PRODUCE = 0
_FLEXIBLE, _TOPIC_IDS = 9, 13

_ACKS_TIMEOUT = Struct(">hi")
_PARTITION_SIZE = Struct(">ii")

Partitions: TypeAlias = list[tuple[int, memoryview | None]]


@dataclass(slots=True)
class ProduceRequest:
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[tuple[TopicRef, Partitions]]
    """The partitions of each topic, with their records as writable views of the frame."""
    entries: int = field(default=0, compare=False)
    """The number of topics and partitions."""


def decode_request(
    version: int, frame: memoryview, position: int, max_entries: int = ANY_NUMBER
) -> ProduceRequest:
    """Decode the body at `position` without a copy.

    The body may have at most `max_entries` topics and partitions.
    """
    try:
        if version >= _FLEXIBLE:
            return _decode_flexible(version, frame, position, max_entries)
        return _decode_legacy(frame, position, max_entries)
    except (struct.error, IndexError):
        raise MalformedMessage("ProduceRequest is cut short") from None


def _decode_flexible(
    version: int, frame: memoryview, position: int, max_entries: int
) -> ProduceRequest:
    transactional_id, position = read_nullable_compact_string(frame, position)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    read_topic: ReadTopic = read_topic_id if version >= _TOPIC_IDS else read_compact_string
    topics: list[tuple[TopicRef, Partitions]] = []
    topic_count, position = read_compact_count(frame, position + 6)
    left = entries_left(max_entries, topic_count)
    for _ in range(topic_count):
        topic, position = read_topic(frame, position)
        partition_count, position = read_compact_count(frame, position)
        left = entries_left(left, partition_count)
        partitions: Partitions = []
        for _ in range(partition_count):
            partition = I32.unpack_from(frame, position)[0]
            length, position = read_uvarint(frame, position + 4)
            end = position + length - 1
            if length == 0:
                partitions.append((partition, None))
                end = position
            elif end < len(frame):
                partitions.append((partition, frame[position:end]))
            else:
                raise MalformedMessage(f"ProduceRequest: records of {length - 1} bytes")
            # Most requests have no tagged fields here, which is encoded as one zero byte.
            position = end + 1 if frame[end] == 0 else skip_tagged_fields(frame, end)
        topics.append((topic, partitions))
        position = skip_tagged_fields(frame, position)
    skip_tagged_fields(frame, position)
    return ProduceRequest(transactional_id, acks, timeout_ms, topics, max_entries - left)


def _decode_legacy(frame: memoryview, position: int, max_entries: int) -> ProduceRequest:
    transactional_id, position = read_nullable_string(frame, position)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    topics: list[tuple[TopicRef, Partitions]] = []
    topic_count, position = read_count(frame, position + 6)
    left = entries_left(max_entries, topic_count)
    for _ in range(topic_count):
        topic, position = read_string(frame, position)
        partition_count, position = read_count(frame, position)
        left = entries_left(left, partition_count)
        partitions: Partitions = []
        for _ in range(partition_count):
            partition, length = _PARTITION_SIZE.unpack_from(frame, position)
            position += 8
            end = position + length
            if length == -1:
                partitions.append((partition, None))
                continue
            if length < 0 or end > len(frame):
                raise MalformedMessage(f"ProduceRequest: records of {length} bytes")
            partitions.append((partition, frame[position:end]))
            position = end
        topics.append((topic, partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, topics, max_entries - left)


def encode_request(
    version: int, correlation_id: int, client_id: str | None, request: ProduceRequest
) -> list[Buffer]:
    """Encode a whole frame with its length, as chunks; the records are not copied."""
    out = bytearray(request_prefix(PRODUCE, version, correlation_id, client_id))
    chunks: list[Buffer] = [out]
    if version >= _FLEXIBLE:
        _encode_flexible(version, request, chunks)
    else:
        _encode_legacy(request, chunks)
    I32.pack_into(out, 0, sum(map(len, chunks)) - 4)
    return chunks


def _encode_flexible(version: int, request: ProduceRequest, chunks: list[Buffer]) -> None:
    write_topic = topic_by_id if version >= _TOPIC_IDS else topic_by_compact_name
    chunks.append(
        compact_string(request.transactional_id)
        + _ACKS_TIMEOUT.pack(request.acks, request.timeout_ms)
        + uvarint(len(request.topics) + 1)
    )
    for topic, partitions in request.topics:
        chunks.append(write_topic(topic) + uvarint(len(partitions) + 1))
        for partition, records in partitions:
            if records is None:
                chunks.append(I32.pack(partition) + b"\0\0")
            else:
                chunks += (I32.pack(partition) + uvarint(len(records) + 1), records, b"\0")
        chunks.append(b"\0")
    chunks.append(b"\0")


def _encode_legacy(request: ProduceRequest, chunks: list[Buffer]) -> None:
    chunks.append(
        string(request.transactional_id)
        + _ACKS_TIMEOUT.pack(request.acks, request.timeout_ms)
        + I32.pack(len(request.topics))
    )
    for topic, partitions in request.topics:
        chunks.append(topic_by_name(topic) + I32.pack(len(partitions)))
        for partition, records in partitions:
            if records is None:
                chunks.append(_PARTITION_SIZE.pack(partition, -1))
            else:
                chunks += (_PARTITION_SIZE.pack(partition, len(records)), records)
