"""The fetch request: the partitions that a reader wants, or the changes of its session."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from tidelog.model.disk import Buffer
from tidelog.model.ids import (
    NO_EPOCH,
    NO_NODE,
    NO_OFFSET,
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    Offset,
)
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
from tidelog.protocol.varint import SHORT, uvarint

FETCH = 1

_LOG_START, _SESSIONS, _LEADER_EPOCH, _RACK = 5, 7, 9, 11
_FLEXIBLE, _TOPIC_IDS, _REPLICA_STATE, _DIRECTORY, _HIGH_WATERMARK = 12, 13, 15, 17, 18

NO_HIGH_WATERMARK: Offset = 2**63 - 1
"""The high watermark in the request of a follower that does not report it."""

_PARTITION = Struct(">iiqiqi")
_PARTITION_V4 = Struct(">iqi")
_PARTITION_V5 = Struct(">iqqi")
_PARTITION_V9 = Struct(">iiqqi")
_LIMITS = Struct(">iiib")
_SESSION = Struct(">ii")
_REPLICA = Struct(">iq")
_REPLICA_TAG = Struct(">BBBiqB")
"""The tagged fields of a follower's request, if the replica state is the only tagged field."""
_OFFSET = Struct(">q")
_NO_REPLICA = (NO_NODE, -1)
_CORRELATION_AT = 8
"""The place of the correlation id in a request frame: after the length, the key and the version."""
_FEW = 100
"""Counts below this are encoded in one byte."""


class FetchPartition(NamedTuple):
    partition: int
    current_leader_epoch: LeaderEpoch
    fetch_offset: Offset
    last_fetched_epoch: LeaderEpoch
    log_start_offset: Offset
    max_bytes: int
    replica_directory_id: UUID | None = None
    high_watermark: Offset = NO_HIGH_WATERMARK


_UNTAGGED = (None, NO_HIGH_WATERMARK)
_new_partition: Callable[[type[FetchPartition], tuple[Any, ...]], FetchPartition] = tuple.__new__
"""FetchPartition(*fields) without a Python call."""

Topics: TypeAlias = Sequence[tuple[TopicRef, Sequence[FetchPartition]]]
Forgotten: TypeAlias = Sequence[tuple[TopicRef, Sequence[int]]]


@dataclass(slots=True)
class FetchRequest:
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: Topics = ()
    forgotten: Forgotten = ()
    rack_id: str = ""
    replica_id: NodeId = NO_NODE
    """-1 for a consumer."""
    replica_epoch: BrokerEpoch = -1
    cluster_id: str | None = None
    entries: int = field(default=0, compare=False)
    """The number of topics and partitions."""


def decode_request(
    version: int, frame: Buffer, position: int, max_entries: int = ANY_NUMBER
) -> FetchRequest:
    """Decode the body at `position`, with at most `max_entries` topics and partitions."""
    try:
        if version >= _FLEXIBLE:
            return _decode_flexible(version, frame, position, max_entries)
        return _decode_legacy(version, frame, position, max_entries)
    except (struct.error, IndexError):
        raise MalformedMessage("FetchRequest is cut short") from None


def _decode_flexible(version: int, frame: Buffer, position: int, max_entries: int) -> FetchRequest:
    read_topic: ReadTopic = read_topic_id if version >= _TOPIC_IDS else read_compact_string
    replica_id = NO_NODE
    if version < _REPLICA_STATE:
        replica_id = I32.unpack_from(frame, position)[0]
        position += 4
    wait, least, most, isolation = _LIMITS.unpack_from(frame, position)
    request = FetchRequest(wait, least, most, isolation, replica_id=replica_id)
    request.session_id, request.session_epoch = _SESSION.unpack_from(frame, position + 13)
    request.topics, left, position = _read_topics(
        version, read_topic, frame, position + 21, max_entries
    )
    request.entries = max_entries - left
    request.forgotten, position = _read_forgotten(read_topic, frame, position, left)
    if frame[position] == 1:
        position += 1
    else:
        request.rack_id, position = read_compact_string(frame, position)
    tag_count = frame[position]
    if tag_count == 1 and version >= _REPLICA_STATE and _has_only_replica(frame, position):
        request.replica_id, request.replica_epoch = _REPLICA.unpack_from(frame, position + 3)
    elif tag_count:
        tags, _ = read_tagged_fields(frame, position)
        if 0 in tags:
            request.cluster_id, _ = read_nullable_compact_string(frame, tags[0][0])
        if 1 in tags and version >= _REPLICA_STATE:
            request.replica_id, request.replica_epoch = _REPLICA.unpack_from(frame, tags[1][0])
    return request


def _has_only_replica(frame: Buffer, position: int) -> bool:
    """Whether the only tagged field is the replica state, as in every fetch of a follower."""
    return (
        frame[position + 1] == 1
        and frame[position + 2] == _REPLICA.size + 1
        and len(frame) > position + 3 + _REPLICA.size
    )


def _read_topics(
    version: int, read_topic: ReadTopic, frame: Buffer, position: int, max_entries: int
) -> tuple[list[tuple[TopicRef, list[FetchPartition]]], int, int]:
    """Returns the topics, how many entries may still follow, and the position after the topics."""
    topics = []
    topic_count, position = read_compact_count(frame, position)
    left = entries_left(max_entries, topic_count)
    for _ in range(topic_count):
        topic, position = read_topic(frame, position)
        partition_count, position = read_compact_count(frame, position)
        left = entries_left(left, partition_count)
        partitions = []
        for _ in range(partition_count):
            fields = _PARTITION.unpack_from(frame, position) + _UNTAGGED
            partition = _new_partition(FetchPartition, fields)
            position += 32
            if frame[position]:
                partition, position = _with_tagged_fields(version, partition, frame, position)
            else:
                position += 1
            partitions.append(partition)
        topics.append((topic, partitions))
        position = position + 1 if frame[position] == 0 else skip_tagged_fields(frame, position)
    return topics, left, position


def _with_tagged_fields(
    version: int, partition: FetchPartition, frame: Buffer, position: int
) -> tuple[FetchPartition, int]:
    tags, position = read_tagged_fields(frame, position)
    if 0 in tags and version >= _DIRECTORY:
        directory, _ = read_topic_id(frame, tags[0][0])
        partition = partition._replace(replica_directory_id=directory if directory.int else None)
    if 1 in tags and version >= _HIGH_WATERMARK:
        partition = partition._replace(high_watermark=_OFFSET.unpack_from(frame, tags[1][0])[0])
    return partition, position


def _read_forgotten(
    read_topic: ReadTopic, frame: Buffer, position: int, max_entries: int
) -> tuple[list[tuple[TopicRef, tuple[int, ...]]], int]:
    forgotten: list[tuple[TopicRef, tuple[int, ...]]] = []
    if frame[position] == 1:
        return forgotten, position + 1
    topic_count, position = read_compact_count(frame, position)
    left = entries_left(max_entries, topic_count)
    for _ in range(topic_count):
        topic, position = read_topic(frame, position)
        count, position = read_compact_count(frame, position)
        left = entries_left(left, count)
        partitions, position = _read_integers(count, frame, position)
        forgotten.append((topic, partitions))
        position = skip_tagged_fields(frame, position)
    return forgotten, position


def _read_integers(count: int, frame: Buffer, position: int) -> tuple[tuple[int, ...], int]:
    return struct.unpack_from(f">{count}i", frame, position), position + 4 * count


def _decode_legacy(version: int, frame: Buffer, position: int, max_entries: int) -> FetchRequest:
    replica_id = I32.unpack_from(frame, position)[0]
    wait, least, most, isolation = _LIMITS.unpack_from(frame, position + 4)
    request = FetchRequest(wait, least, most, isolation, replica_id=replica_id)
    position += 17
    if version >= _SESSIONS:
        request.session_id, request.session_epoch = _SESSION.unpack_from(frame, position)
        position += 8
    request.topics, left, position = _read_legacy_topics(version, frame, position, max_entries)
    request.entries = max_entries - left
    forgotten: list[tuple[TopicRef, tuple[int, ...]]] = []
    if version >= _SESSIONS:
        count, position = read_count(frame, position)
        left = entries_left(left, count)
        for _ in range(count):
            topic, position = read_string(frame, position)
            partition_count, position = read_count(frame, position)
            left = entries_left(left, partition_count)
            partitions, position = _read_integers(partition_count, frame, position)
            forgotten.append((topic, partitions))
    request.forgotten = forgotten
    if version >= _RACK:
        request.rack_id, _ = read_string(frame, position)
    return request


def _read_legacy_topics(
    version: int, frame: Buffer, position: int, max_entries: int
) -> tuple[list[tuple[TopicRef, list[FetchPartition]]], int, int]:
    topics: list[tuple[TopicRef, list[FetchPartition]]] = []
    topic_count, position = read_count(frame, position)
    left = entries_left(max_entries, topic_count)
    for _ in range(topic_count):
        topic, position = read_string(frame, position)
        partition_count, position = read_count(frame, position)
        left = entries_left(left, partition_count)
        partitions = []
        for _ in range(partition_count):
            partition, position = _read_legacy_partition(version, frame, position)
            partitions.append(partition)
        topics.append((topic, partitions))
    return topics, left, position


def _read_legacy_partition(
    version: int, frame: Buffer, position: int
) -> tuple[FetchPartition, int]:
    epoch, start = NO_EPOCH, NO_OFFSET
    if version >= _LEADER_EPOCH:
        layout = _PARTITION_V9
        partition, epoch, offset, start, max_bytes = layout.unpack_from(frame, position)
    elif version >= _LOG_START:
        layout = _PARTITION_V5
        partition, offset, start, max_bytes = layout.unpack_from(frame, position)
    else:
        layout = _PARTITION_V4
        partition, offset, max_bytes = layout.unpack_from(frame, position)
    read = FetchPartition(partition, epoch, offset, NO_EPOCH, start, max_bytes)
    return read, position + layout.size


def encode_request(
    version: int, correlation_id: int, client_id: str | None, request: FetchRequest
) -> bytearray:
    """Encode a whole frame with its length; fields that the version lacks are left out."""
    out = bytearray(_prefix(version, client_id))
    I32.pack_into(out, _CORRELATION_AT, correlation_id)
    if version < _REPLICA_STATE:
        out += I32.pack(request.replica_id)
    out += _LIMITS.pack(
        request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level
    )
    if version >= _SESSIONS:
        out += _SESSION.pack(request.session_id, request.session_epoch)
    if version >= _FLEXIBLE:
        _encode_flexible(version, request, out)
    else:
        _encode_legacy(version, request, out)
    I32.pack_into(out, 0, len(out) - 4)
    return out


@lru_cache(maxsize=16)
def _prefix(version: int, client_id: str | None) -> bytes:
    """The header of a request, except its length and its correlation id."""
    return request_prefix(FETCH, version, 0, client_id)


def _encode_flexible(version: int, request: FetchRequest, out: bytearray) -> None:
    write_topic = topic_by_id if version >= _TOPIC_IDS else topic_by_compact_name
    count = len(request.topics)
    out += SHORT[count + 1] if count < _FEW else uvarint(count + 1)
    for topic, partitions in request.topics:
        out += write_topic(topic)
        count = len(partitions)
        out += SHORT[count + 1] if count < _FEW else uvarint(count + 1)
        for partition in partitions:
            out += _PARTITION.pack(*partition[:6])
            out += b"\0" if partition[6:] == _UNTAGGED else _partition_tags(version, partition)
        out += b"\0"
    out += uvarint(len(request.forgotten) + 1) if request.forgotten else b"\1"
    for topic, indexes in request.forgotten:
        out += write_topic(topic)
        out += uvarint(len(indexes) + 1)
        out += struct.pack(f">{len(indexes)}i", *indexes)
        out += b"\0"
    out += compact_string(request.rack_id) if request.rack_id else b"\1"
    if version >= _REPLICA_STATE and request.cluster_id is None:
        replica = (request.replica_id, request.replica_epoch)
        out += b"\0" if replica == _NO_REPLICA else _REPLICA_TAG.pack(1, 1, 13, *replica, 0)
    else:
        out += tagged_fields(_request_tags(version, request))


def _partition_tags(version: int, partition: FetchPartition) -> bytes:
    tags = []
    if version >= _DIRECTORY and partition.replica_directory_id is not None:
        tags.append((0, partition.replica_directory_id.bytes))
    if version >= _HIGH_WATERMARK and partition.high_watermark != NO_HIGH_WATERMARK:
        tags.append((1, _OFFSET.pack(partition.high_watermark)))
    return tagged_fields(tags)


def _request_tags(version: int, request: FetchRequest) -> list[tuple[int, bytes]]:
    tags = []
    if request.cluster_id is not None:
        tags.append((0, compact_string(request.cluster_id)))
    replica = (request.replica_id, request.replica_epoch)
    if version >= _REPLICA_STATE and replica != _NO_REPLICA:
        tags.append((1, _REPLICA.pack(*replica) + b"\0"))
    return tags


def _encode_legacy(version: int, request: FetchRequest, out: bytearray) -> None:
    out += I32.pack(len(request.topics))
    for topic, partitions in request.topics:
        out += topic_by_name(topic)
        out += I32.pack(len(partitions))
        for partition, epoch, offset, _, start, max_bytes, *_ in partitions:
            if version >= _LEADER_EPOCH:
                out += _PARTITION_V9.pack(partition, epoch, offset, start, max_bytes)
            elif version >= _LOG_START:
                out += _PARTITION_V5.pack(partition, offset, start, max_bytes)
            else:
                out += _PARTITION_V4.pack(partition, offset, max_bytes)
    if version >= _SESSIONS:
        out += I32.pack(len(request.forgotten))
        for topic, indexes in request.forgotten:
            out += topic_by_name(topic)
            out += struct.pack(f">i{len(indexes)}i", len(indexes), *indexes)
    if version >= _RACK:
        out += string(request.rack_id)
