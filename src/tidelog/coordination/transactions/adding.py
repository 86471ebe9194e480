"""AddPartitionsToTxn and AddOffsetsToTxn: add partitions to a transaction, or verify that they are.

Invariant: a partition is in the log of the coordinator before a record of the transaction is in the
log of the partition. Otherwise, the partition would get no marker, and the transaction would hang
(F72).
"""

from collections.abc import Collection, Mapping

from tidelog.coordination.transactions.states import TransactionState
from tidelog.coordination.transactions.transaction import Transaction
from tidelog.coordination.transactions.verdict import Verdict
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, ProducerId, TopicPartition


def add_partitions(
    known: Transaction | None,
    producer_id: ProducerId,
    epoch: int,
    partitions: Collection[TopicPartition],
    client_version: int,
    now: Millis,
) -> Verdict:
    """Decide whether the partitions join the transaction. The first one begins a transaction."""
    error = _refusal(known, producer_id, epoch)
    if error is not ErrorCode.none:
        return Verdict(error)
    assert known is not None
    if known.state is TransactionState.ONGOING and set(partitions) <= set(known.partitions):
        return Verdict(ErrorCode.none)
    return Verdict(ErrorCode.none, known.with_partitions(partitions, client_version, now))


def verify_partitions(
    known: Transaction | None,
    producer_id: ProducerId,
    epoch: int,
    partitions: Collection[TopicPartition],
) -> Mapping[TopicPartition, ErrorCode]:
    """For each partition, whether the open transaction contains it (KIP-890, part 1)."""
    error = _refusal(known, producer_id, epoch)
    if error is not ErrorCode.none:
        return dict.fromkeys(partitions, error)
    assert known is not None
    held = set(known.partitions)
    return {
        one: ErrorCode.none if one in held else ErrorCode.transaction_abortable
        for one in partitions
    }


def _refusal(known: Transaction | None, producer_id: ProducerId, epoch: int) -> ErrorCode:
    if known is None or known.producer_id != producer_id:
        return ErrorCode.invalid_producer_id_mapping
    if known.epoch != epoch:
        return ErrorCode.producer_fenced
    if known.is_ending:
        return ErrorCode.concurrent_transactions
    return ErrorCode.none
