"""Metadata records: every class round-trips in its lowest possible version; garbage is refused."""

import dataclasses
from contextlib import suppress
from typing import Any, get_args, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.metadata import metadata_records as r
from tidelog.protocol.metadata.codec import decode_record, encode_record
from tidelog.protocol.metadata.metadata_records import MetadataRecord, Wire

RECORD_TYPES: tuple[Any, ...] = get_args(MetadataRecord)

_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-128, 127),
    "int16": st.integers(-(1 << 15), (1 << 15) - 1),
    "uint16": st.integers(0, (1 << 16) - 1),
    "int32": st.integers(-(1 << 31), (1 << 31) - 1),
    "int64": st.integers(-(1 << 63), (1 << 63) - 1),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": st.text(),
    "bytes": st.binary(),
    "uuid": st.uuids(),
}


def _values_of(wire: Wire) -> st.SearchStrategy[Any]:
    one = _VALUES.get(wire.kafka_type)
    if one is None:
        one = _entities(getattr(r, wire.kafka_type))
    many = st.lists(one, max_size=4).map(tuple) if wire.array else one
    return st.none() | many if wire.nullable else many


def _entities(entity_type: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(entity_type, include_extras=True)
    values = {}
    for field in dataclasses.fields(entity_type):
        (wire,) = (note for note in get_args(hints[field.name]) if isinstance(note, Wire))
        value = _values_of(wire)
        # Draw default values often, so that low versions and absent tags occur, too.
        if field.default is not dataclasses.MISSING:
            value = st.just(field.default) | value
        values[field.name] = value
    return st.builds(entity_type, **values)


@given(st.one_of([_entities(record_type) for record_type in RECORD_TYPES]))
def test_every_record_round_trips(record: MetadataRecord) -> None:
    assert decode_record(encode_record(record)) == record


def test_every_api_key_is_used_once() -> None:
    keys = [record_type.API_KEY for record_type in RECORD_TYPES]

    assert len(set(keys)) == len(keys)
    assert set(range(29)) - set(keys) == {6, 13, 16}, "keys that Kafka has retired"


def test_a_record_takes_the_lowest_version_that_holds_it() -> None:
    plain = r.PartitionChangeRecord(partition_id=1, topic_id=UUID(int=9), isr=(1,))
    with_directories = dataclasses.replace(plain, directories=(UUID(int=1),))
    with_elr = dataclasses.replace(plain, eligible_leader_replicas=())

    assert [encode_record(record)[2] for record in (plain, with_directories, with_elr)] == [0, 1, 2]


def test_a_topic_record_has_kafkas_bytes() -> None:
    record = r.TopicRecord(name="ab", topic_id=UUID(int=1))

    assert encode_record(record) == bytes([1, 2, 0, 3]) + b"ab" + bytes(15) + b"\x01" + b"\x00"


def test_an_unknown_tag_is_skipped() -> None:
    encoded = encode_record(r.NoOpRecord())
    assert encoded == bytes([1, 20, 0, 0])

    assert decode_record(bytes([1, 20, 0, 1, 99, 3, 7, 7, 7])) == r.NoOpRecord()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "truncated"),
        (bytes([2, 20, 0, 0]), "frame version 2"),
        (bytes([1, 99, 0, 0]), "api key 99"),
        (bytes([1, 20, 1, 0]), "NoOpRecord has no version 1"),
        (bytes([1, 20, 0, 0, 0]), "1 bytes left over"),
        (bytes([1, 20, 0, 1, 99, 50, 1]), "overruns"),
        (bytes([1, 2, 0, 0]) + bytes(17), "a null string in a field that is not nullable"),
        (bytes([1, 2, 0, 200, 1]), "overruns"),
        (bytes([1, 2, 0, 2, 0xFF]) + bytes(17), "truncated or corrupt"),
        (bytes([1, 2, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]), "varint"),
    ],
)
def test_what_is_no_record_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        decode_record(data)


def test_an_array_that_claims_too_much_costs_nothing() -> None:
    head = bytes([1, 5, 0]) + bytes(4) + bytes(16)
    huge = head + bytes([1, 0, 6, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0])

    with pytest.raises(MalformedMessage, match="more elements than there are bytes"):
        decode_record(huge)


@given(st.binary(max_size=60))
def test_random_bytes_are_a_record_or_refused(data: bytes) -> None:
    with suppress(MalformedMessage):
        decode_record(bytes([1]) + data)
