"""The produce response: the base offset of each partition's records, or an error."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple, TypeAlias

from tidelog.model.disk import Buffer
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, NO_TIMESTAMP, Millis, Offset
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.headers import response_position, response_prefix
from tidelog.protocol.messages.reader import error_code
from tidelog.protocol.pieces import (
    I32,
    CurrentLeader,
    NodeEndpoint,
    ReadTopic,
    TopicRef,
    compact_string,
    current_leader,
    node_endpoints,
    read_compact_count,
    read_compact_string,
    read_count,
    read_current_leader,
    read_node_endpoints,
    read_nullable_compact_string,
    read_nullable_string,
    read_string,
    read_tagged_fields,
    read_topic_id,
    skip_tagged_fields,
    string,
    tagged_fields,
    topic_by_compact_name,
    topic_by_id,
    topic_by_name,
)
from tidelog.protocol.produce.request import PRODUCE
from tidelog.protocol.varint import SHORT, uvarint

_LOG_START, _RECORD_ERRORS, _FLEXIBLE, _CURRENT_LEADER, _TOPIC_IDS = 5, 8, 9, 10, 13

_PARTITION_V3 = Struct(">ihqq")
_PARTITION = Struct(">ihqqq")
_FLEXIBLE_HEAD = Struct(">iiB")
"""The length, and the header: the correlation id and no tagged fields."""
_FEW = 100
"""Counts below this are encoded in one byte."""


class RecordError(NamedTuple):
    batch_index: int
    message: str | None


class PartitionProduced(NamedTuple):
    partition: int
    error: ErrorCode
    base_offset: Offset = NO_OFFSET
    log_append_time: Millis = NO_TIMESTAMP
    log_start_offset: Offset = NO_OFFSET
    record_errors: Sequence[RecordError] = ()
    error_message: str | None = None
    current_leader: CurrentLeader | None = None


Topics: TypeAlias = Sequence[tuple[TopicRef, Sequence[PartitionProduced]]]


@dataclass(slots=True)
class ProduceResponse:
    topics: Topics
    throttle_time_ms: int = 0
    node_endpoints: Sequence[NodeEndpoint] = ()


def encode_response(version: int, correlation_id: int, response: ProduceResponse) -> bytearray:
    """Encode a whole frame with its length; fields that the version lacks are left out."""
    if version >= _FLEXIBLE:
        out = bytearray(_FLEXIBLE_HEAD.pack(0, correlation_id, 0))
        _encode_flexible(version, response, out)
    else:
        out = bytearray(response_prefix(PRODUCE, version, correlation_id))
        _encode_legacy(version, response, out)
    I32.pack_into(out, 0, len(out) - 4)
    return out


def _encode_flexible(version: int, response: ProduceResponse, out: bytearray) -> None:
    write_topic = topic_by_id if version >= _TOPIC_IDS else topic_by_compact_name
    has_leader = version >= _CURRENT_LEADER
    count = len(response.topics)
    out += SHORT[count + 1] if count < _FEW else uvarint(count + 1)
    for topic, partitions in response.topics:
        out += write_topic(topic)
        count = len(partitions)
        out += SHORT[count + 1] if count < _FEW else uvarint(count + 1)
        for partition, error, base, time, start, errors, message, leader in partitions:
            out += _PARTITION.pack(partition, error, base, time, start)
            if message is None and leader is None and not errors:
                out += b"\1\0\0"  # no record errors, no message, no tagged fields
                continue
            out += uvarint(len(errors) + 1)
            for index, reason in errors:
                out += I32.pack(index) + compact_string(reason) + b"\0"
            out += compact_string(message)
            if leader is not None and has_leader:
                out += tagged_fields([(0, current_leader(leader))])
            else:
                out += b"\0"
        out += b"\0"
    out += I32.pack(response.throttle_time_ms)
    endpoints = response.node_endpoints if has_leader else ()
    out += tagged_fields([(0, node_endpoints(endpoints))]) if endpoints else b"\0"


def _encode_legacy(version: int, response: ProduceResponse, out: bytearray) -> None:
    out += I32.pack(len(response.topics))
    for topic, partitions in response.topics:
        out += topic_by_name(topic)
        out += I32.pack(len(partitions))
        for partition, error, base, time, start, errors, message, _ in partitions:
            if version < _LOG_START:
                out += _PARTITION_V3.pack(partition, error, base, time)
                continue
            out += _PARTITION.pack(partition, error, base, time, start)
            if version >= _RECORD_ERRORS:
                out += I32.pack(len(errors))
                for index, reason in errors:
                    out += I32.pack(index) + string(reason)
                out += string(message)
    out += I32.pack(response.throttle_time_ms)


def decode_response(version: int, frame: Buffer) -> ProduceResponse:
    try:
        position = response_position(PRODUCE, version, frame)
        if version >= _FLEXIBLE:
            return _decode_flexible(version, frame, position)
        return _decode_legacy(version, frame, position)
    except (struct.error, IndexError):
        raise MalformedMessage("ProduceResponse is cut short") from None


def _decode_flexible(version: int, frame: Buffer, position: int) -> ProduceResponse:
    read_topic: ReadTopic = read_topic_id if version >= _TOPIC_IDS else read_compact_string
    topics: list[tuple[TopicRef, list[PartitionProduced]]] = []
    topic_count, position = read_compact_count(frame, position)
    for _ in range(topic_count):
        topic, position = read_topic(frame, position)
        partition_count, position = read_compact_count(frame, position)
        partitions = []
        for _ in range(partition_count):
            partition, error, base, time, start = _PARTITION.unpack_from(frame, position)
            errors, position = _read_record_errors(frame, position + _PARTITION.size)
            message, position = read_nullable_compact_string(frame, position)
            tags, position = read_tagged_fields(frame, position)
            leader = read_current_leader(frame, tags[0][0]) if 0 in tags else None
            partitions.append(
                PartitionProduced(
                    partition, error_code(error), base, time, start, errors, message, leader
                )
            )
        topics.append((topic, partitions))
        position = skip_tagged_fields(frame, position)
    throttle_time_ms = I32.unpack_from(frame, position)[0]
    tags, _ = read_tagged_fields(frame, position + 4)
    endpoints = read_node_endpoints(frame, tags[0][0]) if 0 in tags else ()
    return ProduceResponse(topics, throttle_time_ms, endpoints)


def _read_record_errors(frame: Buffer, position: int) -> tuple[tuple[RecordError, ...], int]:
    errors = []
    count, position = read_compact_count(frame, position)
    for _ in range(count):
        index = I32.unpack_from(frame, position)[0]
        reason, position = read_nullable_compact_string(frame, position + 4)
        position = skip_tagged_fields(frame, position)
        errors.append(RecordError(index, reason))
    return tuple(errors), position


def _decode_legacy(version: int, frame: Buffer, position: int) -> ProduceResponse:
    layout = _PARTITION_V3 if version < _LOG_START else _PARTITION
    topics: list[tuple[TopicRef, list[PartitionProduced]]] = []
    topic_count, position = read_count(frame, position)
    for _ in range(topic_count):
        topic, position = read_string(frame, position)
        partition_count, position = read_count(frame, position)
        partitions = []
        for _ in range(partition_count):
            partition, error, *places = layout.unpack_from(frame, position)
            position += layout.size
            produced = PartitionProduced(partition, error_code(error), *places)
            if version >= _RECORD_ERRORS:
                errors, position = _read_legacy_record_errors(frame, position)
                message, position = read_nullable_string(frame, position)
                produced = produced._replace(record_errors=errors, error_message=message)
            partitions.append(produced)
        topics.append((topic, partitions))
    return ProduceResponse(topics, I32.unpack_from(frame, position)[0])


def _read_legacy_record_errors(frame: Buffer, position: int) -> tuple[tuple[RecordError, ...], int]:
    errors = []
    count, position = read_count(frame, position)
    for _ in range(count):
        index = I32.unpack_from(frame, position)[0]
        reason, position = read_nullable_string(frame, position + 4)
        errors.append(RecordError(index, reason))
    return tuple(errors), position
