"""Our codec for Produce and kio's agree in every version and both directions."""

import struct
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from tests.unit.protocol.entities import entities, integers, whole_milliseconds, written_by_kio

from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.headers import request_prefix, response_prefix
from tidelog.protocol.messages.schema import request_class, response_class, versions_of
from tidelog.protocol.pieces import CurrentLeader, NodeEndpoint, TopicRef
from tidelog.protocol.produce import (
    PartitionProduced,
    ProduceRequest,
    ProduceResponse,
    RecordError,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)

VERSIONS = versions_of(0)


def topic_of(topic: Any) -> Any:
    """The topic's name or id; kio reads the zero id as None."""
    return topic.name if hasattr(topic, "name") else topic.topic_id


def request_from_kio(request: Any) -> ProduceRequest:
    return ProduceRequest(
        request.transactional_id,
        request.acks,
        whole_milliseconds(request.timeout),
        [
            (
                topic_of(topic),
                [
                    (p.index, None if p.records is None else memoryview(p.records))
                    for p in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ],
    )


def response_from_kio(response: Any) -> ProduceResponse:
    return ProduceResponse(
        [
            (topic_of(topic), [_partition_from_kio(p) for p in topic.partition_responses])
            for topic in response.responses
        ],
        whole_milliseconds(response.throttle_time),
        tuple(
            NodeEndpoint(node.node_id, node.host, node.port, node.rack)
            for node in getattr(response, "node_endpoints", ())
        ),
    )


def _partition_from_kio(p: Any) -> PartitionProduced:
    leader = getattr(p, "current_leader", None)
    return PartitionProduced(
        p.index,
        p.error_code,
        p.base_offset,
        -1 if p.log_append_time is None else int(p.log_append_time.timestamp()) * 1000,
        getattr(p, "log_start_offset", -1),
        tuple(
            RecordError(error.batch_index, error.batch_index_error_message)
            for error in getattr(p, "record_errors", ())
        ),
        getattr(p, "error_message", None),
        None
        if leader is None or leader == type(leader)()
        else CurrentLeader(leader.leader_id, leader.leader_epoch),
    )


def has_topic_ids(message: Any) -> bool:
    topics = message.topic_data if hasattr(message, "topic_data") else message.responses
    return all(topic_of(topic) is not None for topic in topics)


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=20)
@given(data=st.data(), id_=integers(32), client_id=st.none() | st.text(max_size=9))
def test_requests_agree_with_kio(
    version: int, data: st.DataObject, id_: int, client_id: str | None
) -> None:
    theirs = data.draw(entities(request_class(0, version)).filter(has_topic_ids))
    ours = request_from_kio(theirs)
    prefix = request_prefix(0, version, id_, client_id)
    frame = memoryview(bytearray(prefix[4:] + written_by_kio(theirs)))

    assert decode_request(version, frame, len(prefix) - 4) == ours
    encoded = b"".join(encode_request(version, id_, client_id, ours))
    assert encoded == struct.pack(">i", len(frame)) + frame


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=20)
@given(data=st.data(), id_=integers(32))
def test_responses_agree_with_kio(version: int, data: st.DataObject, id_: int) -> None:
    theirs = data.draw(entities(response_class(0, version)).filter(has_topic_ids))
    ours = response_from_kio(theirs)
    frame = response_prefix(0, version, id_)[4:] + written_by_kio(theirs)

    assert decode_response(version, frame) == ours
    assert encode_response(version, id_, ours) == struct.pack(">i", len(frame)) + frame


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=30)
@given(data=st.data())
def test_broken_frames_are_malformed_or_read_but_nothing_else(
    version: int, data: st.DataObject
) -> None:
    load, prefix = data.draw(
        st.sampled_from(
            [(request_class, request_prefix(0, version, 1, "")), (response_class, bytes(8))]
        )
    )
    frame = bytearray(prefix[4:] + written_by_kio(data.draw(entities(load(0, version)))))
    for position, byte in data.draw(st.lists(st.tuples(st.integers(0), st.integers(0, 255)))):
        frame[position % len(frame)] = byte
    cut = memoryview(frame)[: data.draw(st.integers(0, len(frame)))]

    with suppress(MalformedMessage):
        if load is request_class:
            decode_request(version, cut, len(prefix) - 4)
        else:
            decode_response(version, cut)


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_a_writable_view_of_the_frame(version: int) -> None:
    topic: TopicRef = "t" if version < 13 else UUID(int=3)
    request = ProduceRequest(None, -1, 1000, [(topic, [(0, memoryview(b"batch"))])])
    frame = memoryview(bytearray(b"".join(encode_request(version, 1, None, request))))[4:]

    ((_, ((_, records),)),) = decode_request(version, frame, 10 if version < 9 else 11).topics
    assert records is not None
    records[0] = ord("B")

    assert b"Batch" in bytes(frame)


LEGACY = b"\xff\xff" + b"\xff\xff" + b"\0\0\0\1"
FLEXIBLE = b"\0" + b"\xff\xff" + b"\0\0\0\1"
LARGEST = b"\x7f\xff\xff\xff"
LONGEST = b"\xff\xff\xff\xff\x0f"


@pytest.mark.parametrize(
    ("version", "body", "reason"),
    [
        (3, LEGACY + LARGEST, "an array of 2147483647 elements"),
        (3, LEGACY + b"\xff\xff\xff\xff", "an array of -1 elements"),
        (3, LEGACY + b"\0\0\0\1" + b"\xff\xff", "a string is null"),
        (3, LEGACY + b"\0\0\0\1" + b"\x7f\xfft", "a string of 32767 bytes"),
        (3, LEGACY + b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\0" + LARGEST, "records of 2147483647 bytes"),
        (3, LEGACY + b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\0\xff\xff\xff\xfe", "records of -2 bytes"),
        (3, b"\xff\xff", "cut short"),
        (9, FLEXIBLE + LONGEST, "an array of 4294967294 elements"),
        (9, FLEXIBLE + b"\0", "an array of -1 elements"),
        (9, FLEXIBLE + b"\2\0", "a string is null"),
        (9, FLEXIBLE + b"\2\2t\2\0\0\0\0" + LONGEST, "records of 4294967294 bytes"),
        (9, FLEXIBLE + b"\2\2t\2\0\0\0\0" + b"\xff" * 9, "varint is too long"),
        (9, FLEXIBLE + b"\2\2t\2\0\0\0\0\6batch", "records of 5 bytes"),
        (9, FLEXIBLE + b"\2\2t\2\0\0\0\0\6batch\1\0" + LONGEST, "a tagged field of 4294967295"),
        (13, FLEXIBLE + b"\2" + bytes(15), "a topic id is cut short"),
        (13, b"", "cut short"),
    ],
)
def test_a_lying_length_is_refused(version: int, body: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        decode_request(version, memoryview(body), 0)


def test_tagged_fields_that_no_one_knows_yet_are_skipped() -> None:
    unknown = b"\1\x63\2ab"
    partition = b"\0\0\0\5\6batch" + unknown
    body = FLEXIBLE + b"\2\2t\3" + 2 * partition + unknown + unknown

    assert decode_request(9, memoryview(body), 0).topics == [("t", [(5, memoryview(b"batch"))] * 2)]


def test_an_unknown_error_is_one_of_the_server() -> None:
    response = ProduceResponse([("t", [PartitionProduced(0, ErrorCode.none)])])
    frame = encode_response(3, 1, response)[4:]
    at = frame.index(b"\0\1t") + 3 + 4 + 4
    frame[at : at + 2] = b"\x7f\xff"

    ((_, (produced,)),) = decode_response(3, frame).topics

    assert produced.error is ErrorCode.unknown_server_error
