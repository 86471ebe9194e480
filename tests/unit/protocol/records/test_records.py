"""Records that are encoded and decoded stay the same, and a broken batch is never read as valid."""

from contextlib import suppress
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET
from tidelog.protocol.records import batch, compression, unpacking
from tidelog.protocol.records.compression import CODECS
from tidelog.protocol.records.records import (
    ControlType,
    Header,
    Record,
    UnreadableRecords,
    build_batch,
    control_key,
    control_type,
    read_records,
)

HEADERS = st.builds(Header, key=st.text(max_size=5), value=st.none() | st.binary(max_size=9))
RECORDS = st.builds(
    Record,
    key=st.none() | st.binary(max_size=200),
    value=st.none() | st.binary(max_size=200),
    timestamp=st.integers(-1, 2**62),
    headers=st.lists(HEADERS, max_size=3).map(tuple),
    offset=st.just(NO_OFFSET),
)
BASE_OFFSETS = st.integers(0, 2**62)


def numbered(records: list[Record], base_offset: int) -> list[Record]:
    return [r._replace(offset=base_offset + i) for i, r in enumerate(records)]


@given(st.lists(RECORDS, max_size=6), BASE_OFFSETS, st.sampled_from(CODECS))
def test_records_come_back_as_they_went_in(
    records: list[Record], base_offset: int, codec: str
) -> None:
    built = build_batch(records, base_offset, compression=codec)

    assert read_records(built) == numbered(records, base_offset)


@given(st.lists(RECORDS, min_size=1, max_size=6), BASE_OFFSETS, st.booleans(), st.booleans())
def test_a_built_batch_is_sound(
    records: list[Record], base_offset: int, is_transactional: bool, is_control: bool
) -> None:
    built = build_batch(
        records,
        base_offset,
        leader_epoch=7,
        producer_id=5,
        producer_epoch=1,
        base_sequence=40,
        is_transactional=is_transactional,
        is_control=is_control,
    )

    header = batch.check(memoryview(built))

    assert isinstance(header, batch.BatchHeader)
    assert header.size == len(built)
    assert header.last_offset == base_offset + len(records) - 1
    assert header.base_timestamp == records[0].timestamp
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert (header.is_transactional, header.is_control) == (is_transactional, is_control)
    assert (header.leader_epoch, header.producer_id, header.producer_epoch) == (7, 5, 1)
    assert (header.base_sequence, header.record_count) == (40, len(records))


def test_records_keep_the_offsets_they_have_where_others_are_gone() -> None:
    records = [Record(b"a", b"1", 5, offset=10), Record(b"b", b"2", 6, offset=17)]

    built = build_batch(records, 10, last_offset_delta=9)

    assert read_records(built) == records
    assert batch.read_header(built).last_offset == 19


def test_log_append_time_is_the_time_of_every_record() -> None:
    built = memoryview(bytearray(build_batch([Record(None, b"x", 1), Record(None, b"y", 2)])))

    batch.stamp_append_time(built, 0, batch.read_header(built), 1_700_000_000_123)

    assert [record.timestamp for record in read_records(built)] == [1_700_000_000_123] * 2
    assert isinstance(batch.check(built), batch.BatchHeader)


@pytest.mark.parametrize("kind", ControlType)
def test_a_control_record_says_its_type_in_its_key(kind: ControlType) -> None:
    (record,) = read_records(build_batch([Record(control_key(kind), b"")], is_control=True))

    assert control_type(record) is kind


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\0\0\0\x63", b"\xff\xff\0\0"])
def test_an_unknown_control_type_is_none(key: bytes | None) -> None:
    assert control_type(Record(key, None)) is None


@given(st.lists(RECORDS, min_size=1, max_size=3), st.data(), st.sampled_from(CODECS))
def test_broken_records_are_unreadable_or_read_but_nothing_else(
    records: list[Record], data: st.DataObject, codec: str
) -> None:
    broken = bytearray(build_batch(records, compression=codec))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(21, len(broken) - 1))
        broken[position] = data.draw(st.integers(0, 255))

    with suppress(UnreadableRecords):
        read_records(broken)


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_a_wrong_count_of_records_is_unreadable(count: int) -> None:
    built = bytearray(build_batch([Record(b"k", b"v"), Record(b"k", b"v")]))
    built[57:61] = count.to_bytes(4, "big", signed=True)

    with pytest.raises(UnreadableRecords):
        read_records(built)


@pytest.fixture
def no_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(unpacking, "import_module", missing)


@pytest.mark.usefixtures("no_modules")
@pytest.mark.parametrize("codec", ["snappy", "lz4", "zstd"])
def test_a_codec_that_is_not_installed_says_so(codec: str) -> None:
    built = bytearray(build_batch([Record(b"k", b"v")]))
    built[22] = CODECS.index(codec)

    with pytest.raises(UnreadableRecords, match=f"{codec} needs the Python module") as raised:
        read_records(built)

    assert raised.value.error is ErrorCode.unsupported_compression_type


def test_lz4_is_written_in_the_independent_blocks_that_kafka_reads() -> None:
    flags = compression.compress("lz4", bytes(200_000))[4]

    assert flags & 0x20


def test_a_raw_block_of_snappy_is_read_too() -> None:
    snappy = import_module("snappy")
    plain = build_batch([Record(b"k", b"v" * 50, 9)])
    packed = bytearray(plain[:61] + snappy.compress(plain[61:]))
    packed[8:12] = (len(packed) - 12).to_bytes(4, "big")
    packed[22] = CODECS.index("snappy")

    assert read_records(packed) == read_records(plain)
