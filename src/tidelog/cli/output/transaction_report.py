"""The tables of `tidelog transactions`, as kafka-transactions.sh prints them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from kio.schema.describe_producers.v0.response import ProducerState
from kio.schema.describe_transactions.v0.response import TransactionState

from tidelog.cli.output.columns import tabbed
from tidelog.client.administration.hanging_transactions import HangingTransaction
from tidelog.client.administration.transaction_admin import ListedTransaction
from tidelog.model.ids import Millis, NodeId

NONE = "None"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MINUTE_MS = 60_000


def listed(transactions: Iterable[ListedTransaction]) -> Iterator[str]:
    header = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
    return tabbed((header, *(tuple(map(str, one)) for one in transactions)))


def described(coordinator: NodeId, state: TransactionState, now: Millis) -> Iterator[str]:
    header = (
        "CoordinatorId",
        "TransactionalId",
        "ProducerId",
        "ProducerEpoch",
        "TransactionState",
        "TransactionTimeoutMs",
        "CurrentTransactionStartTimeMs",
        "TransactionDurationMs",
        "TopicPartitions",
    )
    start = (state.transaction_start_time - _EPOCH) // _MILLISECOND
    partitions = (f"{topic.topic}-{index}" for topic in state.topics for index in topic.partitions)
    row = (
        str(coordinator),
        state.transactional_id,
        str(state.producer_id),
        str(state.producer_epoch),
        str(state.transaction_state),
        str(state.transaction_timeout // _MILLISECOND),
        NONE if start < 0 else str(start),
        NONE if start < 0 else str(now - start),
        ",".join(partitions),
    )
    return tabbed((header, row))


def producers(found: Iterable[ProducerState]) -> Iterator[str]:
    header = (
        "ProducerId",
        "ProducerEpoch",
        "LatestCoordinatorEpoch",
        "LastSequence",
        "LastTimestamp",
        "CurrentTransactionStartOffset",
    )
    rows = (
        (
            str(one.producer_id),
            str(one.producer_epoch),
            str(one.coordinator_epoch),
            str(one.last_sequence),
            str(one.last_timestamp),
            _or_none(one.current_txn_start_offset),
        )
        for one in found
    )
    return tabbed((header, *rows))


def hanging(found: Iterable[HangingTransaction], now: Millis) -> Iterator[str]:
    header = (
        "Topic",
        "Partition",
        "ProducerId",
        "ProducerEpoch",
        "CoordinatorEpoch",
        "StartOffset",
        "LastTimestamp",
        "Duration(min)",
    )
    return tabbed((header, *(_hanging(one, now) for one in found)))


def _hanging(one: HangingTransaction, now: Millis) -> Sequence[str]:
    producer = one.producer
    return (
        one.partition.topic,
        str(one.partition.partition),
        str(producer.producer_id),
        str(producer.producer_epoch),
        str(producer.coordinator_epoch),
        str(producer.current_txn_start_offset),
        str(producer.last_timestamp),
        str((now - producer.last_timestamp) // _MINUTE_MS),
    )


def _or_none(number: int) -> str:
    return NONE if number < 0 else str(number)
