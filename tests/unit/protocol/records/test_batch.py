"""A damaged or incomplete batch is always detected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.model.errors import ErrorCode
from tidelog.protocol.records import batch
from tidelog.protocol.records.records import Record, build_batch

BATCH = build_batch([Record(b"key", b"value", 1_700_000_000_000), Record(None, b"", 5)], 7)

PATCHED = set(range(8)) | set(range(12, 16))
"""Base offset and leader epoch, which the CRC does not cover."""


@given(st.binary(max_size=200), st.integers(0, 50))
def test_any_bytes_are_checked_without_an_exception(data: bytes, position: int) -> None:
    checked = batch.check(memoryview(data), min(position, len(data)))

    assert isinstance(checked, batch.BatchHeader | ErrorCode)


@given(
    mutations=st.lists(st.tuples(st.integers(0, len(BATCH) - 1), st.integers(0, 255))),
    size=st.integers(0, len(BATCH)),
)
def test_a_mutated_batch_is_checked_without_an_exception(
    mutations: list[tuple[int, int]], size: int
) -> None:
    mutated = bytearray(BATCH)
    for position, byte in mutations:
        mutated[position] = byte

    checked = batch.check(memoryview(mutated[:size]))

    assert isinstance(checked, ErrorCode) or size == len(BATCH)


@pytest.mark.parametrize("position", range(len(BATCH)))
def test_any_flipped_bit_beyond_the_patched_fields_is_found(position: int) -> None:
    for bit in range(8):
        flipped = bytearray(BATCH)
        flipped[position] ^= 1 << bit

        checked = batch.check(memoryview(flipped))

        assert isinstance(checked, batch.BatchHeader) == (position in PATCHED)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size", [17, 34, 61, len(BATCH)])
def test_the_old_formats_are_told_from_garbage(magic: int, size: int) -> None:
    old = bytearray(BATCH)
    old[16] = magic

    checked = batch.check(memoryview(old[:size]))

    assert checked is ErrorCode.unsupported_for_message_format


def test_offset_and_epoch_are_patched_in_place_under_the_same_crc() -> None:
    buffer = memoryview(bytearray(b"??" + BATCH))

    batch.patch(buffer, 2, 1000, 4)
    header = batch.check(buffer, 2)

    assert isinstance(header, batch.BatchHeader)
    assert (header.base_offset, header.leader_epoch) == (1000, 4)
    assert (header.last_offset, header.next_offset) == (1001, 1002)
    assert header[4:] == batch.read_header(BATCH)[4:]


@given(st.integers(0, 4), st.integers(0, len(BATCH)))
def test_batches_are_iterated_up_to_one_that_is_cut_short(count: int, rest: int) -> None:
    buffer = BATCH * count + BATCH[: rest % len(BATCH)]

    found = list(batch.iterate(memoryview(buffer)))

    assert [position for position, _ in found] == [n * len(BATCH) for n in range(count)]


def test_iterating_garbage_ends() -> None:
    assert list(batch.iterate(bytes(1000))) == []
