"""The fetch response: records are file slices that the host sends, or views of a frame."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

from tidelog.model.disk import Buffer, FileSlice
from tidelog.model.effects import AbortedTransaction, EpochEnd
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NO_OFFSET, LeaderEpoch, NodeId, Offset
from tidelog.model.outbound import Chunk
from tidelog.protocol.fetch.request import FETCH
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.headers import response_prefix
from tidelog.protocol.messages.reader import error_code
from tidelog.protocol.pieces import (
    I32,
    CurrentLeader,
    NodeEndpoint,
    ReadTopic,
    TopicRef,
    current_leader,
    node_endpoints,
    read_compact_count,
    read_compact_string,
    read_count,
    read_current_leader,
    read_node_endpoints,
    read_string,
    read_tagged_fields,
    read_topic_id,
    skip_tagged_fields,
    tagged_fields,
    topic_by_compact_name,
    topic_by_id,
    topic_by_name,
)
from tidelog.protocol.varint import SHORT, read_uvarint, uvarint

_LOG_START, _SESSIONS, _READ_REPLICA, _FLEXIBLE, _TOPIC_IDS, _ENDPOINTS = 5, 7, 11, 12, 13, 16

_PARTITION = Struct(">ihqqq")
_PARTITION_V4 = Struct(">ihqq")
_UNABORTED = Struct(">ihqqqBi")
"""The fields before a partition's records (flexible encoding, no aborted transactions)."""
_ABORTED = Struct(">qq")
_SESSION = Struct(">ihi")
_FLEXIBLE_HEAD = Struct(">iiBihi")
"""The length, the header (correlation id, no tagged fields), and the fields before the topics."""
_FEW = 100
"""Counts below this are encoded in one byte."""
_EPOCH_END = Struct(">iq")
_SNAPSHOT = Struct(">qi")


class SnapshotId(NamedTuple):
    """The metadata snapshot that the reader must fetch instead of records (KIP-630)."""

    end_offset: Offset
    epoch: LeaderEpoch


class PartitionFetched(NamedTuple):
    partition: int
    error: ErrorCode
    high_watermark: Offset = NO_OFFSET
    last_stable_offset: Offset = NO_OFFSET
    log_start_offset: Offset = NO_OFFSET
    records: FileSlice | Buffer | None = None
    aborted: Sequence[AbortedTransaction] | None = None
    """None if the reader is not read_committed, or if the transactions could not be read."""
    preferred_read_replica: NodeId = NO_NODE
    diverging_epoch: EpochEnd | None = None
    current_leader: CurrentLeader | None = None
    snapshot_id: SnapshotId | None = None


Topics: TypeAlias = Sequence[tuple[TopicRef, Sequence[PartitionFetched]]]

_UNTAGGED = [None, None, None]
"""The tagged fields of a partition without tags: divergence, leader, snapshot."""
_new_fetched: Callable[[type[PartitionFetched], tuple[Any, ...]], PartitionFetched] = tuple.__new__
"""PartitionFetched(*fields) without a Python call."""


@dataclass(slots=True)
class FetchResponse:
    topics: Topics = ()
    error: ErrorCode = ErrorCode.none
    session_id: int = 0
    throttle_time_ms: int = 0
    node_endpoints: Sequence[NodeEndpoint] = ()


def encode_response(version: int, correlation_id: int, response: FetchResponse) -> list[Chunk]:
    """Encode a whole frame with its length, as chunks; fields that the version lacks are left out.

    Absent records are encoded as empty, because some clients do not expect null.
    """
    throttle_ms = response.throttle_time_ms
    if version >= _FLEXIBLE:
        session_id = response.session_id
        head = bytearray(
            _FLEXIBLE_HEAD.pack(0, correlation_id, 0, throttle_ms, response.error, session_id)
        )
        chunks: list[Chunk] = [head]
        length = _encode_flexible(version, response, head, chunks)
    else:
        head = bytearray(response_prefix(FETCH, version, correlation_id))
        if version >= _SESSIONS:
            head += _SESSION.pack(throttle_ms, response.error, response.session_id)
        else:
            head += I32.pack(throttle_ms)
        chunks = [head]
        length = _encode_legacy(version, response, head, chunks)
    I32.pack_into(head, 0, length - 4)
    return chunks


def _encode_flexible(
    version: int, response: FetchResponse, out: bytearray, chunks: list[Chunk]
) -> int:
    """Append the body to `out`, which is the last chunk so far, and to new chunks.

    Returns the length of the whole frame.
    """
    write_topic = topic_by_id if version >= _TOPIC_IDS else topic_by_compact_name
    length, number = 0, len(response.topics)
    out += SHORT[number + 1] if number < _FEW else uvarint(number + 1)
    for topic, partitions in response.topics:
        out += write_topic(topic)
        number = len(partitions)
        out += SHORT[number + 1] if number < _FEW else uvarint(number + 1)
        for fetched in partitions:
            partition, error, high, stable, start, records, aborted, replica, *tagged = fetched
            if aborted:
                out += _PARTITION.pack(partition, error, high, stable, start)
                out += uvarint(len(aborted) + 1)
                for transaction in aborted:
                    out += _ABORTED.pack(*transaction) + b"\0"
                out += I32.pack(replica)
            else:
                count = 0 if aborted is None else 1
                out += _UNABORTED.pack(partition, error, high, stable, start, count, replica)
            if records is None:
                out += b"\1"
            else:
                size = records.length if isinstance(records, FileSlice) else len(records)
                out += uvarint(size + 1)
                length += len(out) + size
                out = bytearray()
                chunks += (records, out)
            out += b"\0" if tagged == _UNTAGGED else _partition_tags(fetched)
        out += b"\0"
    endpoints = response.node_endpoints if version >= _ENDPOINTS else ()
    out += tagged_fields([(0, node_endpoints(endpoints))]) if endpoints else b"\0"
    return length + len(out)


def _partition_tags(fetched: PartitionFetched) -> bytes:
    tags = []
    if fetched.diverging_epoch is not None:
        tags.append((0, _EPOCH_END.pack(*fetched.diverging_epoch) + b"\0"))
    if fetched.current_leader is not None:
        tags.append((1, current_leader(fetched.current_leader)))
    if fetched.snapshot_id is not None:
        tags.append((2, _SNAPSHOT.pack(*fetched.snapshot_id) + b"\0"))
    return tagged_fields(tags)


def _encode_legacy(
    version: int, response: FetchResponse, out: bytearray, chunks: list[Chunk]
) -> int:
    length = 0
    out += I32.pack(len(response.topics))
    for topic, partitions in response.topics:
        out += topic_by_name(topic)
        out += I32.pack(len(partitions))
        for partition, error, high, stable, start, records, aborted, replica, *_ in partitions:
            if version >= _LOG_START:
                out += _PARTITION.pack(partition, error, high, stable, start)
            else:
                out += _PARTITION_V4.pack(partition, error, high, stable)
            out += I32.pack(-1 if aborted is None else len(aborted))
            for transaction in aborted or ():
                out += _ABORTED.pack(*transaction)
            if version >= _READ_REPLICA:
                out += I32.pack(replica)
            if records is None:
                out += I32.pack(0)
            else:
                size = records.length if isinstance(records, FileSlice) else len(records)
                out += I32.pack(size)
                length += len(out) + size
                out = bytearray()
                chunks += (records, out)
    return length + len(out)


def decode_response(version: int, frame: memoryview) -> FetchResponse:
    """Decode a response; the records of each partition are views of the frame, without a copy."""
    try:
        if version >= _FLEXIBLE:
            position = I32.size
            position = position + 1 if frame[position] == 0 else skip_tagged_fields(frame, position)
        else:
            position = I32.size
        if version >= _SESSIONS:
            throttle, error, session_id = _SESSION.unpack_from(frame, position)
            position += _SESSION.size
        else:
            throttle, error, session_id = I32.unpack_from(frame, position)[0], 0, 0
            position += I32.size
        if version >= _FLEXIBLE:
            topics, endpoints = _decode_flexible(version, frame, position)
        else:
            topics, endpoints = _decode_legacy(version, frame, position), ()
    except (struct.error, IndexError):
        raise MalformedMessage("FetchResponse is cut short") from None
    code = error_code(error) if error else ErrorCode.none
    return FetchResponse(topics, code, session_id, throttle, endpoints)


def _decode_flexible(
    version: int, frame: memoryview, position: int
) -> tuple[Topics, tuple[NodeEndpoint, ...]]:
    read_topic: ReadTopic = read_topic_id if version >= _TOPIC_IDS else read_compact_string
    topics = []
    topic_count, position = read_compact_count(frame, position)
    for _ in range(topic_count):
        topic, position = read_topic(frame, position)
        partition_count, position = read_compact_count(frame, position)
        partitions = []
        for _ in range(partition_count):
            fetched, position = _read_partition(frame, position)
            partitions.append(fetched)
        topics.append((topic, partitions))
        position = position + 1 if frame[position] == 0 else skip_tagged_fields(frame, position)
    if frame[position] == 0:
        return topics, ()
    tags, _ = read_tagged_fields(frame, position)
    return topics, read_node_endpoints(frame, tags[0][0]) if 0 in tags else ()


def _read_partition(frame: memoryview, position: int) -> tuple[PartitionFetched, int]:
    partition, error, high, stable, start, count, replica = _UNABORTED.unpack_from(frame, position)
    aborted: tuple[AbortedTransaction, ...] | None = None
    if count == 0:
        position += _UNABORTED.size
    else:
        count, position = read_uvarint(frame, position + _PARTITION.size)
        aborted, position = _read_aborted(count - 1, 1, frame, position)
        replica = I32.unpack_from(frame, position)[0]
        position += 4
    size, position = read_uvarint(frame, position)
    records, position = _read_records(size - 1, frame, position)
    code = error_code(error) if error else ErrorCode.none
    fields = (partition, code, high, stable, start, records, aborted, replica, None, None, None)
    fetched = _new_fetched(PartitionFetched, fields)
    if frame[position] == 0:
        return fetched, position + 1
    tags, position = read_tagged_fields(frame, position)
    if 0 in tags:
        diverging = EpochEnd(*_EPOCH_END.unpack_from(frame, tags[0][0]))
        fetched = fetched._replace(diverging_epoch=diverging)
    if 1 in tags:
        fetched = fetched._replace(current_leader=read_current_leader(frame, tags[1][0]))
    if 2 in tags:
        snapshot = SnapshotId(*_SNAPSHOT.unpack_from(frame, tags[2][0]))
        fetched = fetched._replace(snapshot_id=snapshot)
    return fetched, position


def _read_aborted(
    count: int, padding: int, frame: memoryview, position: int
) -> tuple[tuple[AbortedTransaction, ...] | None, int]:
    """Read aborted transactions, each followed by tagged fields if `padding` is not 0."""
    if count < 0:
        return None, position
    aborted = []
    for _ in range(count):
        aborted.append(AbortedTransaction(*_ABORTED.unpack_from(frame, position)))
        position += _ABORTED.size
        if padding:
            position = skip_tagged_fields(frame, position)
    return tuple(aborted), position


def _read_records(size: int, frame: memoryview, position: int) -> tuple[memoryview | None, int]:
    if size < 0:
        return None, position
    end = position + size
    if end > len(frame):
        raise MalformedMessage(f"FetchResponse: records of {size} bytes")
    return frame[position:end], end


def _decode_legacy(version: int, frame: memoryview, position: int) -> Topics:
    layout = _PARTITION if version >= _LOG_START else _PARTITION_V4
    topics: list[tuple[TopicRef, list[PartitionFetched]]] = []
    topic_count, position = read_count(frame, position)
    for _ in range(topic_count):
        topic, position = read_string(frame, position)
        partition_count, position = read_count(frame, position)
        partitions = []
        for _ in range(partition_count):
            partition, error, high, stable, *start = layout.unpack_from(frame, position)
            count = I32.unpack_from(frame, position + layout.size)[0]
            aborted, position = _read_aborted(count, 0, frame, position + layout.size + 4)
            replica = NO_NODE
            if version >= _READ_REPLICA:
                replica = I32.unpack_from(frame, position)[0]
                position += 4
            size = I32.unpack_from(frame, position)[0]
            records, position = _read_records(size, frame, position + 4)
            partitions.append(
                PartitionFetched(
                    partition,
                    error_code(error),
                    high,
                    stable,
                    start[0] if start else NO_OFFSET,
                    records,
                    aborted,
                    replica,
                )
            )
        topics.append((topic, partitions))
    return topics
