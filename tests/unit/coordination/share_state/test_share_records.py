"""The bytes of `__share_group_state` equal those of Kafka 4.3's own classes."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.coordination.delivery.stored_state import StateBatch, combine
from tidelog.coordination.record_codec import RecordFormatError
from tidelog.coordination.share_state.share_records import (
    SharePartitionKey,
    ShareSnapshot,
    ShareStateRecord,
    ShareUpdate,
    decode_record,
    encode_record,
)

KEY = SharePartitionKey("g", UUID("01020304-0506-0708-090a-0b0c0d0e0f10"), 3)
BATCHES = (StateBatch(5, 9, 2, 1),)
SNAPSHOT = ShareSnapshot(
    snapshot_epoch=2,
    state_epoch=3,
    leader_epoch=4,
    start_offset=5,
    delivery_complete_count=6,
    create_timestamp=7,
    write_timestamp=8,
    batches=BATCHES,
)
EMPTY = ShareSnapshot(snapshot_epoch=0, state_epoch=0, leader_epoch=0, start_offset=-1)
UPDATE = ShareUpdate(
    snapshot_epoch=2,
    leader_epoch=4,
    start_offset=5,
    delivery_complete_count=6,
    batches=BATCHES,
)

SNAPSHOT_KEY = "00000001670102030405060708090a0b0c0d0e0f1000000003"
UPDATE_KEY = "00010001670102030405060708090a0b0c0d0e0f1000000003"
SNAPSHOT_VALUE = (
    "00000000000200000003000000040000000000000005000000000000000700000000000000080200000000"
    "0000000500000000000000090200010001000400000006"
)
EMPTY_VALUE = "0000000000000000000000000000ffffffffffffffff000000000000000000000000000000000100"
UPDATE_VALUE = (
    "00000000000200000004000000000000000502000000000000000500000000000000090200010001000400000006"
)


@pytest.mark.parametrize(
    ("value", "key_bytes", "value_bytes"),
    [
        (SNAPSHOT, SNAPSHOT_KEY, SNAPSHOT_VALUE),
        (EMPTY, SNAPSHOT_KEY, EMPTY_VALUE),
        (UPDATE, UPDATE_KEY, UPDATE_VALUE),
        (None, SNAPSHOT_KEY, None),
    ],
)
def test_records_have_kafkas_bytes(
    value: ShareSnapshot | ShareUpdate | None, key_bytes: str, value_bytes: str | None
) -> None:
    record = ShareStateRecord(KEY, value)

    encoded = encode_record(record)

    assert encoded[0].hex() == key_bytes
    assert (encoded[1].hex() if encoded[1] is not None else None) == value_bytes
    assert decode_record(*encoded) == record


def test_unknown_and_malformed_records() -> None:
    assert decode_record(b"\x00\x09rest", b"") is None
    assert decode_record(bytes.fromhex(UPDATE_KEY), None) is None
    with pytest.raises(RecordFormatError):
        decode_record(b"\x00", b"")
    with pytest.raises(RecordFormatError):
        decode_record(bytes.fromhex(SNAPSHOT_KEY), b"\x00\x00\x00")


BATCH_LISTS = st.lists(
    st.tuples(
        st.integers(0, 20), st.integers(0, 6), st.sampled_from([0, 2, 4]), st.integers(0, 3)
    ).map(lambda drawn: StateBatch(drawn[0], drawn[0] + drawn[1], drawn[2], drawn[3])),
    max_size=6,
)


@given(BATCH_LISTS, BATCH_LISTS, st.integers(0, 25))
def test_combined_batches_hold_the_furthest_state_of_each_offset(
    old: list[StateBatch], new: list[StateBatch], start: int
) -> None:
    expected: dict[int, tuple[int, int]] = {}
    for batch in (*old, *new):
        for offset in range(max(batch.first, start), batch.last + 1):
            reached = (batch.delivery_count, batch.state)
            expected[offset] = max(expected.get(offset, (-1, -1)), reached)

    combined = combine(old, new, start)

    found = {
        offset: (batch.delivery_count, batch.state)
        for batch in combined
        for offset in range(batch.first, batch.last + 1)
    }
    assert found == expected
    assert sum(batch.last - batch.first + 1 for batch in combined) == len(expected)
    assert list(combined) == sorted(combined)
