"""Data is decompressed in chunks, however the input is split, and only up to a limit."""

import gzip
import tracemalloc
from collections.abc import Iterator
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.model.ids import NO_OFFSET
from tidelog.protocol.records.compression import CODECS, compress
from tidelog.protocol.records.record_heads import record_heads
from tidelog.protocol.records.records import Record, build_batch, iterate_records
from tidelog.protocol.records.unpacking import CHUNK, OverBudget, UnreadableRecords, unpack

MEGABYTE = 1024 * 1024


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def peak_of(chunks: Iterator[bytes]) -> int:
    """The peak memory of decompressing everything."""
    tracemalloc.start()
    try:
        for chunk in chunks:
            assert len(chunk) <= CHUNK
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@given(
    st.sampled_from(CODECS),
    st.lists(st.tuples(st.binary(max_size=20), st.integers(1, 4_000)), max_size=5),
    st.integers(1, 500),
)
def test_what_is_packed_comes_back(codec: str, parts: list[tuple[bytes, int]], size: int) -> None:
    data = b"".join(part * times for part, times in parts)
    assert b"".join(unpack(codec, cut(compress(codec, data), size))) == data


@pytest.mark.parametrize("codec", CODECS[1:])
def test_f64_a_bomb_is_given_up_at_the_budget_without_the_memory(codec: str) -> None:
    packed = compress(codec, bytes(40 * MEGABYTE))

    def unpacked() -> Iterator[bytes]:
        with pytest.raises(OverBudget):
            yield from unpack(codec, cut(packed, 64 * 1024), 8 * MEGABYTE)

    # snappy decompresses whole blocks, and keeps the compressed data in memory.
    bound = len(packed) * 2 + MEGABYTE if codec == "snappy" else MEGABYTE
    assert peak_of(unpacked()) < bound


@pytest.mark.parametrize("claimed", [10_000, 2**31, 2**35 - 1])
def test_f64_a_block_of_snappy_that_lies_about_its_size_is_not_believed(claimed: int) -> None:
    packed = bytearray(import_module("snappy").compress(b"x"))
    size = bytearray()
    while claimed >= 0x80:
        size.append(claimed & 0x7F | 0x80)
        claimed >>= 7
    packed[0:1] = size + bytes((claimed,))
    with pytest.raises(UnreadableRecords):
        list(unpack("snappy", (packed,)))


def test_streams_of_gzip_may_follow_each_other() -> None:
    assert b"".join(unpack("gzip", (gzip.compress(b"one") + gzip.compress(b"two"),))) == b"onetwo"


@pytest.mark.parametrize("codec", ["gzip", "lz4"])
def test_what_is_cut_short_is_unreadable(codec: str) -> None:
    packed = compress(codec, bytes(range(256)) * 20)
    with pytest.raises(UnreadableRecords):
        list(unpack(codec, (packed[:-5],)))


@given(
    st.lists(
        st.builds(
            Record,
            key=st.none() | st.binary(max_size=80),
            value=st.none() | st.binary(max_size=300),
            timestamp=st.integers(-1, 2**62),
            headers=st.just(()),
            offset=st.just(NO_OFFSET),
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 100),
)
def test_heads_are_those_of_the_records(records: list[Record], size: int) -> None:
    made = build_batch(records)
    heads = [one for some in record_heads(cut(made[61:], size), len(records)) for one in some]
    assert heads == [
        (
            record.timestamp - records[0].timestamp,
            number,
            -1 if record.key is None else len(record.key),
        )
        for number, record in enumerate(records)
    ]


@pytest.mark.parametrize("count", [1, 2, 4, 2**31 - 1])
def test_heads_of_more_or_fewer_records_than_there_are_cannot_be_read(count: int) -> None:
    body = build_batch([Record(b"k", b"v" * 30)] * 3)[61:]
    with pytest.raises(UnreadableRecords):
        list(record_heads(cut(body, 10), count))


@given(st.binary(min_size=1, max_size=60), st.integers(1, 20), st.integers(1, 20))
def test_any_bytes_have_heads_or_are_unreadable(body: bytes, count: int, size: int) -> None:
    try:
        heads = [one for some in record_heads(cut(body, size), count) for one in some]
    except UnreadableRecords:
        return
    assert len(heads) == count


def test_f64_records_are_unpacked_as_they_are_read() -> None:
    batch = build_batch([Record(None, bytes(10_000))] * 3_000, compression="gzip")
    tracemalloc.start()
    try:
        assert sum(1 for _ in iterate_records(batch)) == 3_000
        assert tracemalloc.get_traced_memory()[1] < MEGABYTE
    finally:
        tracemalloc.stop()
