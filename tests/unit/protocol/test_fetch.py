"""Our codec for Fetch and kio's agree in every version and both directions."""

import struct
from contextlib import suppress
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from tests.unit.protocol.entities import entities, integers, whole_milliseconds, written_by_kio

from tidelog.model.disk import File, FileSlice
from tidelog.model.effects import AbortedTransaction, EpochEnd
from tidelog.model.outbound import Chunk
from tidelog.protocol.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionFetched,
    SnapshotId,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from tidelog.protocol.fetch.request import NO_HIGH_WATERMARK
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.headers import decode_request_header, request_prefix, response_prefix
from tidelog.protocol.messages.schema import request_class, response_class, versions_of
from tidelog.protocol.pieces import CurrentLeader, NodeEndpoint, TopicRef

VERSIONS = versions_of(1)


def topic_of(topic: Any) -> Any:
    """The topic's name or id; kio reads the zero id as None."""
    return topic.topic if hasattr(topic, "topic") else topic.topic_id


def request_from_kio(request: Any) -> FetchRequest:
    state = getattr(request, "replica_state", None)
    return FetchRequest(
        whole_milliseconds(request.max_wait),
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        getattr(request, "session_id", 0),
        getattr(request, "session_epoch", -1),
        [(topic_of(t), [_asked_from_kio(p) for p in t.partitions]) for t in request.topics],
        [(topic_of(t), t.partitions) for t in getattr(request, "forgotten_topics_data", ())],
        getattr(request, "rack_id", ""),
        request.replica_id if state is None else state.replica_id,
        -1 if state is None else state.replica_epoch,
        getattr(request, "cluster_id", None),
    )


def _asked_from_kio(p: Any) -> FetchPartition:
    return FetchPartition(
        p.partition,
        getattr(p, "current_leader_epoch", -1),
        p.fetch_offset,
        getattr(p, "last_fetched_epoch", -1),
        getattr(p, "log_start_offset", -1),
        p.partition_max_bytes,
        getattr(p, "replica_directory_id", None),
        getattr(p, "high_watermark", 2**63 - 1),
    )


def response_from_kio(response: Any) -> FetchResponse:
    return FetchResponse(
        [
            (topic_of(topic), [_fetched_from_kio(p) for p in topic.partitions])
            for topic in response.responses
        ],
        getattr(response, "error_code", ErrorCode.none),
        getattr(response, "session_id", 0),
        whole_milliseconds(response.throttle_time),
        tuple(
            NodeEndpoint(node.node_id, node.host, node.port, node.rack)
            for node in getattr(response, "node_endpoints", ())
        ),
    )


def _fetched_from_kio(p: Any) -> PartitionFetched:
    return PartitionFetched(
        p.partition_index,
        p.error_code,
        p.high_watermark,
        p.last_stable_offset,
        getattr(p, "log_start_offset", -1),
        None if p.records is None else memoryview(p.records),
        _aborted_from_kio(p.aborted_transactions),
        getattr(p, "preferred_read_replica", -1),
        _tagged(p, "diverging_epoch", lambda d: EpochEnd(d.epoch, d.end_offset)),
        _tagged(p, "current_leader", lambda c: CurrentLeader(c.leader_id, c.leader_epoch)),
        _tagged(p, "snapshot_id", lambda s: SnapshotId(s.end_offset, s.epoch)),
    )


def _aborted_from_kio(transactions: Any) -> tuple[AbortedTransaction, ...] | None:
    if transactions is None:
        return None
    return tuple(AbortedTransaction(t.producer_id, t.first_offset) for t in transactions)


def _tagged(partition: Any, name: str, convert: Any) -> Any:
    value = getattr(partition, name, None)
    return None if value is None or value == type(value)() else convert(value)


def is_comparable(message: Any) -> bool:
    """Whether ids and records are present; kio writes missing records as null, but we do not."""
    if hasattr(message, "responses"):
        return all(topic_of(topic) is not None for topic in message.responses) and all(
            p.records is not None for topic in message.responses for p in topic.partitions
        )
    topics = (*message.topics, *getattr(message, "forgotten_topics_data", ()))
    return all(topic_of(topic) is not None for topic in topics)


def joined(chunks: list[Chunk]) -> bytes:
    return b"".join(bytes(chunk) for chunk in chunks if not isinstance(chunk, FileSlice))


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=20)
@given(data=st.data(), id_=integers(32), client_id=st.none() | st.text(max_size=9))
def test_requests_agree_with_kio(
    version: int, data: st.DataObject, id_: int, client_id: str | None
) -> None:
    theirs = data.draw(entities(request_class(1, version)).filter(is_comparable))
    ours = request_from_kio(theirs)
    prefix = request_prefix(1, version, id_, client_id)
    frame = prefix[4:] + written_by_kio(theirs)

    assert decode_request(version, memoryview(frame), len(prefix) - 4) == ours
    assert encode_request(version, id_, client_id, ours) == struct.pack(">i", len(frame)) + frame


@pytest.mark.parametrize("version", [15, 16, 17, 18])
@pytest.mark.parametrize("replica", [(-1, -1), (-1, 7), (2, -1), (2, 7)])
@pytest.mark.parametrize("cluster_id", [None, "", "one"])
@pytest.mark.parametrize("directory", [None, UUID(int=3)])
@pytest.mark.parametrize("high_watermark", [0, NO_HIGH_WATERMARK])
@pytest.mark.parametrize("rack", ["", "a"])
def test_what_is_left_out_of_a_request_is_read_as_what_it_was(
    version: int,
    replica: tuple[int, int],
    cluster_id: str | None,
    directory: UUID | None,
    high_watermark: int,
    rack: str,
) -> None:
    asked = FetchPartition(
        1,
        2,
        3,
        4,
        5,
        6,
        directory if version >= 17 else None,
        high_watermark if version >= 18 else NO_HIGH_WATERMARK,
    )
    request = FetchRequest(
        1, 2, 3, 1, 4, 5, [(UUID(int=9), [asked])], [], rack, *replica, cluster_id
    )

    frame = memoryview(encode_request(version, 8, "me", request))

    assert len(frame) == 4 + struct.unpack_from(">i", frame)[0]
    header = decode_request_header(frame[4:])
    assert decode_request(version, frame[4:], header.position) == request


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=20)
@given(data=st.data(), id_=integers(32))
def test_responses_agree_with_kio(version: int, data: st.DataObject, id_: int) -> None:
    theirs = data.draw(entities(response_class(1, version)).filter(is_comparable))
    ours = response_from_kio(theirs)
    frame = response_prefix(1, version, id_)[4:] + written_by_kio(theirs)

    assert decode_response(version, memoryview(frame)) == ours
    assert joined(encode_response(version, id_, ours)) == struct.pack(">i", len(frame)) + frame


def fetched(version: int, *partitions: PartitionFetched) -> FetchResponse:
    topic: TopicRef = "t" if version < 13 else UUID(int=3)
    return FetchResponse([(topic, partitions)])


@pytest.mark.parametrize("version", VERSIONS)
def test_slices_of_files_stand_between_the_chunks_and_count_in_the_length(version: int) -> None:
    file = cast(File, object())  # this test never reads from the file
    slices = [FileSlice(file, 64, 300), FileSlice(file, 0, 100_000)]
    of_files = fetched(
        version,
        PartitionFetched(0, ErrorCode.none, 9, 9, 0, slices[0]),
        PartitionFetched(1, ErrorCode.none, 9, 9, 0),
        PartitionFetched(2, ErrorCode.none, 9, 9, 0, slices[1]),
    )
    of_views = fetched(
        version,
        PartitionFetched(0, ErrorCode.none, 9, 9, 0, bytes(300)),
        PartitionFetched(1, ErrorCode.none, 9, 9, 0, b""),
        PartitionFetched(2, ErrorCode.none, 9, 9, 0, bytes(100_000)),
    )

    chunks = encode_response(version, 1, of_files)

    assert [chunk for chunk in chunks if isinstance(chunk, FileSlice)] == slices
    sent = b"".join(bytes(c.length) if isinstance(c, FileSlice) else bytes(c) for c in chunks)
    assert sent == joined(encode_response(version, 1, of_views))
    assert int.from_bytes(sent[:4], "big") == len(sent) - 4


@pytest.mark.parametrize("version", VERSIONS)
def test_fetched_records_are_a_view_of_the_frame(version: int) -> None:
    response = fetched(version, PartitionFetched(0, ErrorCode.none, records=b"batch"))
    frame = memoryview(bytearray(joined(encode_response(version, 1, response))))[4:]

    ((_, (partition,)),) = decode_response(version, frame).topics
    assert isinstance(partition.records, memoryview)
    partition.records[0] = ord("B")

    assert b"Batch" in bytes(frame)


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=30)
@given(data=st.data())
def test_broken_frames_are_malformed_or_read_but_nothing_else(
    version: int, data: st.DataObject
) -> None:
    load, prefix = data.draw(
        st.sampled_from(
            [(request_class, request_prefix(1, version, 1, "")), (response_class, bytes(8))]
        )
    )
    frame = bytearray(prefix[4:] + written_by_kio(data.draw(entities(load(1, version)))))
    for position, byte in data.draw(st.lists(st.tuples(st.integers(0), st.integers(0, 255)))):
        frame[position % len(frame)] = byte
    cut = memoryview(frame)[: data.draw(st.integers(0, len(frame)))]

    with suppress(MalformedMessage):
        if load is request_class:
            decode_request(version, cut, len(prefix) - 4)
        else:
            decode_response(version, cut)


LEGACY = b"\xff\xff\xff\xff" + bytes(13)
FLEXIBLE = bytes(21)
LARGEST = b"\x7f\xff\xff\xff"
LONGEST = b"\xff\xff\xff\xff\x0f"


@pytest.mark.parametrize(
    ("version", "body", "reason"),
    [
        (4, LEGACY + LARGEST, "an array of 2147483647 elements"),
        (4, LEGACY + b"\0\0\0\1\0\1t" + LARGEST, "an array of 2147483647 elements"),
        (7, LEGACY + bytes(8) + bytes(4) + LARGEST, "an array of 2147483647 elements"),
        (7, LEGACY + bytes(12) + b"\0\0\0\1\0\1t\0\0\0\x0a", "cut short"),
        (11, LEGACY + bytes(16) + b"\x7f\xff", "a string of 32767 bytes"),
        (15, FLEXIBLE + LONGEST, "an array of 4294967294 elements"),
        (15, FLEXIBLE + b"\0", "an array of -1 elements"),
        (15, FLEXIBLE + b"\2" + bytes(9), "a topic id is cut short"),
        (15, FLEXIBLE + b"\1" + LONGEST, "an array of 4294967294 elements"),
        (15, FLEXIBLE + b"\1\1" + LONGEST, "a string of 4294967294 bytes"),
        (15, FLEXIBLE + b"\1\1\1\1\1" + LONGEST, "a tagged field of 4294967295 bytes"),
        (15, FLEXIBLE + b"\1\1\1\1\1\4abcd", "cut short"),
        (15, bytes(20), "cut short"),
        (15, b"", "cut short"),
    ],
)
def test_a_lying_length_in_a_request_is_refused(version: int, body: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        decode_request(version, memoryview(body), 0)


@pytest.mark.parametrize(
    ("version", "lie", "reason"),
    [
        (4, LARGEST, "records of 2147483647 bytes"),
        (12, LONGEST, "records of 4294967294 bytes"),
    ],
)
def test_a_lying_length_in_a_response_is_refused(version: int, lie: bytes, reason: str) -> None:
    response = fetched(version, PartitionFetched(0, ErrorCode.none, records=b"batch"))
    frame = joined(encode_response(version, 1, response))[4:]
    start = frame.index(b"batch")
    lying = frame[: start - (4 if version == 4 else 1)] + lie + frame[start:]

    with pytest.raises(MalformedMessage, match=reason):
        decode_response(version, memoryview(lying))


def test_tagged_fields_that_no_one_knows_yet_are_skipped() -> None:
    unknown = b"\1\x63\2ab"
    partition = bytes(32) + unknown
    forgotten = b"\2\2f\2\0\0\0\7" + unknown
    body = bytes(25) + b"\2\2t\3" + 2 * partition + unknown + forgotten + b"\5rack" + unknown

    request = decode_request(12, memoryview(body), 0)

    assert request.topics == [("t", [FetchPartition(0, 0, 0, 0, 0, 0)] * 2)]
    assert (request.forgotten, request.rack_id) == ([("f", (7,))], "rack")


@given(st.lists(st.tuples(integers(64), integers(64)), max_size=3))
def test_aborted_transactions_go_both_ways(pairs: list[tuple[int, int]]) -> None:
    aborted = tuple(AbortedTransaction(*pair) for pair in pairs)
    response = fetched(17, PartitionFetched(0, ErrorCode.none, records=b"", aborted=aborted))

    ((_, (partition,)),) = decode_response(
        17, memoryview(joined(encode_response(17, 1, response)))[4:]
    ).topics

    assert partition.aborted == aborted
