"""Kafka's records in `__transaction_state`: the state that survives a coordinator failover.

A key holds a transactional id, and a value holds its `Transaction`. The encoded bytes are identical
to Kafka's. As in Kafka, values have version 0 as long as transaction.version is 0. Version 1 adds
tagged fields. A tombstone removes a transactional id.
"""

from dataclasses import dataclass

from tidelog.coordination.record_codec import Array, RecordField, RecordFormatError, Schema, Type
from tidelog.coordination.transactions.states import TransactionState
from tidelog.coordination.transactions.transaction import Transaction
from tidelog.model.ids import NO_PRODUCER, Millis, ProducerId, TopicPartition

FIRST_FLEXIBLE_VALUE = 1


@dataclass(frozen=True, slots=True)
class TransactionKey:
    transactional_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _TopicPartitions:
    topic: str
    partition_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _TransactionValue:
    producer_id: ProducerId
    producer_epoch: int
    transaction_timeout_ms: Millis
    transaction_status: int
    transaction_partitions: tuple[_TopicPartitions, ...] | None
    last_update_timestamp_ms: Millis
    start_timestamp_ms: Millis
    previous_producer_id: ProducerId = NO_PRODUCER
    next_producer_id: ProducerId = NO_PRODUCER
    client_transaction_version: int = 0


_KEY = Schema(TransactionKey, RecordField("transactional_id", Type.STRING))
_PARTITIONS = Schema(
    _TopicPartitions,
    RecordField("topic", Type.STRING),
    RecordField("partition_ids", Array(Type.INT32)),
    flexible=FIRST_FLEXIBLE_VALUE,
)
_VALUE = Schema(
    _TransactionValue,
    RecordField("producer_id", Type.INT64),
    RecordField("previous_producer_id", Type.INT64, since=1, tag=0, default=NO_PRODUCER),
    RecordField("next_producer_id", Type.INT64, since=1, tag=1, default=NO_PRODUCER),
    RecordField("producer_epoch", Type.INT16),
    RecordField("transaction_timeout_ms", Type.INT32),
    RecordField("transaction_status", Type.INT8),
    RecordField("transaction_partitions", Array(_PARTITIONS, nullable=True)),
    RecordField("last_update_timestamp_ms", Type.INT64),
    RecordField("start_timestamp_ms", Type.INT64),
    RecordField("client_transaction_version", Type.INT16, since=1, tag=2, default=0),
    flexible=FIRST_FLEXIBLE_VALUE,
)


def value_version(transaction_version: int) -> int:
    """The version in which values are written at this level of transaction.version."""
    return 0 if transaction_version == 0 else FIRST_FLEXIBLE_VALUE


def encode_key(key: TransactionKey) -> bytes:
    return _KEY.encode(key, prefix=0, version=0)


def encode_value(transaction: Transaction, version: int = FIRST_FLEXIBLE_VALUE) -> bytes:
    assert transaction.state not in (
        TransactionState.DEAD,
        TransactionState.PREPARE_EPOCH_FENCE,
    )
    is_empty = transaction.state is TransactionState.EMPTY
    value = _TransactionValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if is_empty else _grouped(transaction.partitions),
        last_update_timestamp_ms=transaction.updated_at,
        start_timestamp_ms=transaction.started_at,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        client_transaction_version=transaction.client_version,
    )
    return _VALUE.encode(value, prefix=version, version=version)


def decode_key(data: bytes) -> TransactionKey | None:
    """Decode a key; None if its version is unknown."""
    if _prefix(data) != 0:
        return None
    key: TransactionKey = _KEY.decode(data, 2, version=0)
    return key


def decode_value(data: bytes) -> Transaction:
    """Decode a value. A newer version only adds tagged fields (KIP-915)."""
    version = min(_prefix(data), FIRST_FLEXIBLE_VALUE)
    value: _TransactionValue = _VALUE.decode(data, 2, version=version)
    try:
        state = TransactionState(value.transaction_status)
    except ValueError as unknown:
        raise RecordFormatError(str(unknown)) from unknown
    return Transaction(
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=tuple(
            TopicPartition(one.topic, index)
            for one in value.transaction_partitions or ()
            for index in one.partition_ids
        ),
        started_at=value.start_timestamp_ms,
        updated_at=value.last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )


def _grouped(partitions: tuple[TopicPartition, ...]) -> tuple[_TopicPartitions, ...]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    return tuple(
        _TopicPartitions(topic=topic, partition_ids=tuple(indexes))
        for topic, indexes in by_topic.items()
    )


def _prefix(data: bytes) -> int:
    if len(data) < 2:
        raise RecordFormatError("no version")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise RecordFormatError(f"version {version}")
    return version
