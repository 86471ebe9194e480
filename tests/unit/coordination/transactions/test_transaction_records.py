"""The bytes of `__transaction_state` equal those of Kafka 4.3's own classes."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.coordination.record_codec import RecordFormatError
from tidelog.coordination.transactions.states import TransactionState
from tidelog.coordination.transactions.transaction import Transaction
from tidelog.coordination.transactions.transaction_records import (
    TransactionKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    value_version,
)
from tidelog.model.ids import TopicPartition

KEY = TransactionKey("t\u00f6")
TIME = 1_700_000_000_000


def empty(version: int) -> Transaction:
    return Transaction(
        producer_id=4000,
        epoch=3,
        timeout_ms=60_000,
        state=TransactionState.EMPTY,
        updated_at=TIME,
        previous_producer_id=4000 if version else -1,
    )


def prepared(version: int) -> Transaction:
    return Transaction(
        producer_id=4000,
        epoch=32767,
        timeout_ms=60_000,
        state=TransactionState.PREPARE_COMMIT,
        partitions=(
            TopicPartition("t", 0),
            TopicPartition("t", 7),
            TopicPartition("__consumer_offsets", 49),
        ),
        started_at=TIME,
        updated_at=TIME + 1,
        previous_producer_id=3999 if version else -1,
        next_producer_id=5000 if version else -1,
        client_version=2 if version else 0,
    )


KAFKA = [
    (
        empty(0),
        0,
        "00000000000000000fa000030000ea6000ffffffff0000018bcfe56800ffffffffffffffff",
    ),
    (
        prepared(0),
        0,
        "00000000000000000fa07fff0000ea60020000000200017400000002000000000000000700125f5f636f6e73"
        "756d65725f6f66667365747300000001000000310000018bcfe568010000018bcfe56800",
    ),
    (
        empty(1),
        1,
        "00010000000000000fa000030000ea6000000000018bcfe56800ffffffffffffffff0100080000000000000f"
        "a0",
    ),
    (
        prepared(1),
        1,
        "00010000000000000fa07fff0000ea600203027403000000000000000700135f5f636f6e73756d65725f6f66"
        "66736574730200000031000000018bcfe568010000018bcfe568000300080000000000000f9f010800000000"
        "0000138802020002",
    ),
]


def test_keys_are_kafkas() -> None:
    assert encode_key(KEY).hex() == "0000000374c3b6"
    assert decode_key(encode_key(KEY)) == KEY
    assert decode_key(b"\0\7anything") is None


@pytest.mark.parametrize(("transaction", "version", "raw"), KAFKA)
def test_values_are_kafkas(transaction: Transaction, version: int, raw: str) -> None:
    assert encode_value(transaction, version).hex() == raw
    assert decode_value(bytes.fromhex(raw)) == transaction


def test_a_newer_value_is_read_as_version_1() -> None:
    raw = encode_value(prepared(1))
    assert decode_value(b"\0\x09" + raw[2:]) == prepared(1)


def test_the_value_version_follows_the_transaction_version() -> None:
    assert [value_version(level) for level in (0, 1, 2)] == [0, 1, 1]


def test_an_unknown_state_is_refused() -> None:
    raw = bytearray(encode_value(empty(1)))
    raw[2 + 8 + 2 + 4] = 77
    with pytest.raises(RecordFormatError):
        decode_value(bytes(raw))


@given(st.binary(max_size=200))
def test_no_bytes_are_worse_than_a_format_error(raw: bytes) -> None:
    with suppress(RecordFormatError):
        decode_key(raw)
    with suppress(RecordFormatError):
        decode_value(raw)
