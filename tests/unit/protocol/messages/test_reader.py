"""Any bytes are decoded or raise MalformedMessage. `test_versions` compares the reader with kio."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.create_topics.v2.request import CreateTopicsRequest
from kio.schema.heartbeat.v0.request import HeartbeatRequest
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.metadata.v13.request import MetadataRequest as FlexibleMetadataRequest
from kio.static.protocol import Entity
from tests.unit.protocol.entities import EVERY_CLASS, entities, written_by_kio

from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.reader import decode


@settings(max_examples=300)
@given(cls=st.sampled_from(EVERY_CLASS), data=st.data())
def test_broken_bytes_are_malformed_or_read_but_nothing_else(
    cls: type[Entity], data: st.DataObject
) -> None:
    encoded = bytearray(written_by_kio(data.draw(entities(cls))))
    for position, byte in data.draw(st.lists(st.tuples(st.integers(0), st.integers(0, 255)))):
        if encoded:
            encoded[position % len(encoded)] = byte
    cut = encoded[: data.draw(st.integers(0, len(encoded)))]

    with suppress(MalformedMessage):
        decode(cls, memoryview(cut), 0)


LARGEST = b"\x7f\xff\xff\xff"


@pytest.mark.parametrize(
    ("cls", "body", "reason"),
    [
        (MetadataRequest, LARGEST, "a length of 2147483647, but only 0 bytes left"),
        (MetadataRequest, LARGEST + b"\0\1a", "a length of 2147483647, but only 3 bytes left"),
        (CreateTopicsRequest, b"\x80\0\0\0", "topics has -2147483648 elements"),
        (CreateTopicsRequest, b"\xff\xff\xff\xfe", "topics has -2 elements"),
        (MetadataRequest, b"\0\0\0\1\xff\xff", "name has the length -1"),
        (MetadataRequest, b"\0\0\0\1\0\5abcd", "a length of 5, but only 4 bytes left"),
        (MetadataRequest, b"\0\0\0", "is cut short"),
        (FlexibleMetadataRequest, b"\x80\x80\x80\x80\x08" + bytes(99), "a length of 2147483647"),
        (FlexibleMetadataRequest, b"\xff\xff\xff\xff\xff" + bytes(99), "varint is too long"),
        (FlexibleMetadataRequest, b"\0\0\0" + b"\xff\xff\xff\x7f", "268435455 tagged fields"),
        (FlexibleMetadataRequest, b"\0\0\0" + b"\1\0\xff\xff\xff\x7f", "a length of 268435455"),
    ],
)
def test_a_lying_length_is_refused(cls: type[Entity], body: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        decode(cls, memoryview(body), 0)


@pytest.mark.parametrize("count", [b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80\0\0\0"])
def test_any_negative_length_is_null_where_null_may_be(count: bytes) -> None:
    assert decode(MetadataRequest, memoryview(count + bytes(9)), 0).topics is None


def test_a_negative_count_of_tagged_fields_is_none() -> None:
    body = b"\xff\xff\xff\xff\x0f" + b"\0\0\0" + b"\xff\xff\xff\xff\x0f"
    assert decode(FlexibleMetadataRequest, memoryview(body), 0).topics is None


def test_tagged_fields_that_no_one_knows_yet_are_skipped() -> None:
    unknown = b"\1\x63\2ab"

    body = b"\2" + bytes(16) + b"\2t" + unknown + b"\1\0" + unknown
    entity = decode(FlexibleMetadataRequest, memoryview(body), 0)

    assert [topic.name for topic in entity.topics] == ["t"]


def test_text_that_is_not_utf8_is_read_as_kafka_reads_it() -> None:
    entity = decode(HeartbeatRequest, memoryview(b"\0\3a\xffb\0\0\0\7\0\1m"), 0)

    assert entity == HeartbeatRequest(group_id="a\ufffdb", generation_id=7, member_id="m")
