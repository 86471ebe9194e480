"""Requests and responses as frames, in every version; invalid bytes raise only expected errors."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from tests.unit.protocol.entities import (
    EVERY_API_VERSION,
    HAND_TUNED,
    entities,
    integers,
    written_by_kio,
)

from tidelog.protocol.messages.canonical import canonical_request, canonical_response
from tidelog.protocol.messages.headers import (
    METADATA_OFFSET_TAG,
    metadata_offset_of,
    request_prefix,
    response_position,
    response_prefix,
)
from tidelog.protocol.messages.messages import (
    MalformedMessage,
    RequestHeader,
    correlation_id_of,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    versions_of,
)
from tidelog.protocol.messages.schema import is_flexible, request_class, response_class
from tidelog.protocol.messages.versions import lift
from tidelog.protocol.varint import uvarint

GENERIC = [pair for pair in EVERY_API_VERSION if pair[0] not in HAND_TUNED]
CLIENT_IDS = st.none() | st.text(max_size=20)


@settings(max_examples=300)
@given(api=st.sampled_from(GENERIC), id_=integers(32), client_id=CLIENT_IDS, data=st.data())
def test_a_request_reaches_the_server_as_the_client_meant_it(
    api: tuple[int, int], id_: int, client_id: str | None, data: st.DataObject
) -> None:
    api_key, version = api
    request = lift(data.draw(entities(request_class(*api))), canonical_request(api_key))

    frame = memoryview(encode_request(request, version, id_, client_id))
    header = decode_request_header(frame[4:])

    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert header[:4] == (api_key, version, id_, client_id)
    assert decode_request(api_key, version, frame[4:], header.position) == request


@settings(max_examples=300)
@given(api=st.sampled_from(GENERIC), id_=integers(32), data=st.data())
def test_a_response_reaches_the_client_as_the_server_meant_it(
    api: tuple[int, int], id_: int, data: st.DataObject
) -> None:
    api_key, version = api
    response = lift(data.draw(entities(response_class(*api))), canonical_response(api_key))

    frame = memoryview(encode_response(api_key, version, id_, response))

    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert correlation_id_of(frame[4:]) == id_
    assert decode_response(api_key, version, frame[4:]) == response


@pytest.mark.parametrize(("api_key", "version"), EVERY_API_VERSION)
def test_headers_are_those_that_kio_declares(api_key: int, version: int) -> None:
    request: Any = request_class(api_key, version)
    response: Any = response_class(api_key, version)
    of_request, of_response = request.__header_schema__, response.__header_schema__

    assert is_flexible(api_key, version) == request.__flexible__ == response.__flexible__
    assert request_prefix(api_key, version, 7, "me")[4:] == written_by_kio(
        of_request(
            request_api_key=api_key, request_api_version=version, correlation_id=7, client_id="me"
        )
    )
    assert response_prefix(api_key, version, 7)[4:] == written_by_kio(of_response(correlation_id=7))


@given(st.binary(max_size=64))
@example(b"\0\x12\0\3\0\0\0\1\xff\xff\xff\xff\xff\xff\x7f")
@example(b"\0\x12\0\3\0\0\0\1\xff\xff\1\0\xff\xff\xff\x7f")
def test_any_bytes_have_a_header_or_are_malformed(frame: bytes) -> None:
    with suppress(MalformedMessage):
        assert decode_request_header(memoryview(frame)).position <= len(frame)


@settings(max_examples=1000)
@given(api=st.sampled_from(GENERIC), body=st.binary(max_size=200))
def test_any_bytes_are_a_request_or_malformed(api: tuple[int, int], body: bytes) -> None:
    frame = memoryview(request_prefix(*api, 1, "fuzz")[4:] + body)
    header = decode_request_header(frame)

    with suppress(MalformedMessage):
        decode_request(header.api_key, header.api_version, frame, header.position)


@settings(max_examples=300)
@given(api=st.sampled_from(GENERIC), frame=st.binary(max_size=200))
def test_any_bytes_are_a_response_or_malformed(api: tuple[int, int], frame: bytes) -> None:
    with suppress(MalformedMessage):
        decode_response(*api, memoryview(frame))


@pytest.mark.parametrize(
    ("frame", "header"),
    [
        (b"\x7f\xff\0\0\0\0\0\5\0\2me", RequestHeader(0x7FFF, 0, 5, "me", 12)),
        (b"\0\x12\0\x63\0\0\0\5\0\2me\0", RequestHeader(18, 99, 5, "me", 13)),
        (b"\0\3\x7f\xff\0\0\0\5\xff\xff\0", RequestHeader(3, 0x7FFF, 5, None, 11)),
        (b"\0\3\xff\xff\0\0\0\5\xff\xff", RequestHeader(3, -1, 5, None, 10)),
        (b"\0\3\0\x09\0\0\0\5\0\1\xff\1\7\2ab", RequestHeader(3, 9, 5, "\ufffd", 16)),
    ],
    ids=["unknown key", "future ApiVersions", "future version", "negative version", "tagged field"],
)
def test_a_header_is_read_even_if_its_request_will_be_refused(
    frame: bytes, header: RequestHeader
) -> None:
    assert decode_request_header(memoryview(frame)) == header


@pytest.mark.parametrize("size", range(10))
def test_a_header_cut_short_is_malformed(size: int) -> None:
    with pytest.raises(MalformedMessage, match="request header is cut short"):
        decode_request_header(memoryview(b"\0\3\0\0\0\0\0\5\xff\xff"[:size]))


def test_a_client_id_that_overruns_the_frame_is_malformed() -> None:
    with pytest.raises(MalformedMessage, match="a client id of 32767 bytes"):
        decode_request_header(memoryview(b"\0\3\0\0\0\0\0\5\x7f\xffme"))


def test_the_answer_to_api_versions_has_the_oldest_header_in_every_version() -> None:
    assert [response_position(18, version, b"\0\0\0\7") for version in versions_of(18)] == [4] * 5


def test_bytes_after_a_message_are_ignored_as_kafka_does() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    frame = memoryview(encode_request(request, 4, 1, None) + b"more")[4:]

    assert decode_request(12, 4, frame, decode_request_header(frame).position) == request


def test_a_message_is_sent_in_its_own_version_too() -> None:
    request = ApiVersionsRequest(client_software_name="n", client_software_version="1")
    frame = memoryview(encode_request(request, 3, 1, None))[4:]

    decoded = decode_request(18, 3, frame, decode_request_header(frame).position)

    assert (decoded.client_software_name, decoded.client_software_version) == ("n", "1")


def test_unknown_apis_have_no_versions() -> None:
    assert list(versions_of(18)) == [0, 1, 2, 3, 4]
    assert list(versions_of(4)) == list(versions_of(-1)) == []


CREATE_TOPICS = 19


@pytest.mark.parametrize("offset", [0, 1, 7_000_000_000])
def test_a_controllers_header_can_tell_the_offset_of_its_metadata(offset: int) -> None:
    version = versions_of(CREATE_TOPICS)[-1]
    header = response_prefix(CREATE_TOPICS, version, 7, offset)[4:]
    assert metadata_offset_of(CREATE_TOPICS, version, header + b"body") == offset
    assert response_position(CREATE_TOPICS, version, header + b"body") == len(header)


def test_a_header_without_the_offset_or_with_another_shape_of_it_tells_none() -> None:
    flexible, old = versions_of(CREATE_TOPICS)[-1], 2
    assert metadata_offset_of(CREATE_TOPICS, flexible, b"\0\0\0\7\0") == -1
    assert metadata_offset_of(CREATE_TOPICS, old, b"\0\0\0\7") == -1
    assert response_prefix(CREATE_TOPICS, old, 7, 5) == response_prefix(CREATE_TOPICS, old, 7)
    short = b"\0\0\0\7\1" + uvarint(METADATA_OFFSET_TAG) + b"\2ab"
    assert metadata_offset_of(CREATE_TOPICS, flexible, short) == -1
    with pytest.raises(MalformedMessage, match="cut short"):
        metadata_offset_of(CREATE_TOPICS, flexible, b"\0\0\0\7")
