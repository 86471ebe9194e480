"""EndTxn: decide that a transaction is committed or aborted.

With transaction version 2, every decision raises the epoch (KIP-890). The epoch then shows which
transaction a request belongs to: the same epoch means the present one, and the epoch before means
that the client repeats its request. With version 1 the epoch does not show this, so a repeated
request is recognised by the state alone, as in Kafka.

    version 2          abort                  commit
                  repeated   present     repeated   present
    Empty         fenced     aborted     fenced     invalid
    CompleteAbort done       aborted     invalid    invalid
    CompleteCommit invalid   aborted     done       invalid
"""

from tidelog.coordination.transactions.states import TransactionState
from tidelog.coordination.transactions.transaction import (
    EPOCH_PER_TRANSACTION,
    MAX_PRODUCER_EPOCH,
    Transaction,
)
from tidelog.coordination.transactions.verdict import NEEDS_PRODUCER_ID, Verdict
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_PRODUCER, Millis, ProducerId

_INVALID = Verdict(ErrorCode.invalid_txn_state)
_DONE = Verdict(ErrorCode.none)
_COMPLETED = {
    TransactionState.COMPLETE_COMMIT: TransactionState.PREPARE_COMMIT,
    TransactionState.COMPLETE_ABORT: TransactionState.PREPARE_ABORT,
}


def end_transaction(
    known: Transaction | None,
    producer_id: ProducerId,
    epoch: int,
    *,
    commits: bool,
    client_version: int,
    new_producer_id: ProducerId | None,
    now: Millis,
) -> Verdict:
    """Decide an EndTxn request. `new_producer_id` is None in the first attempt."""
    if known is None:
        return Verdict(ErrorCode.invalid_producer_id_mapping)
    wanted = TransactionState.PREPARE_COMMIT if commits else TransactionState.PREPARE_ABORT
    if client_version < EPOCH_PER_TRANSACTION:
        return _end_by_state(known, producer_id, epoch, wanted, client_version, now)
    is_repeated = _repeats_bump(known, epoch) or _repeats_overflow(known, producer_id, epoch)
    if known.producer_id != producer_id and not _repeats_overflow(known, producer_id, epoch):
        return Verdict(ErrorCode.invalid_producer_id_mapping)
    if not _is_epoch_valid(known, epoch, is_repeated=is_repeated):
        return Verdict(ErrorCode.producer_fenced)
    if known.is_ending:
        return Verdict(ErrorCode.concurrent_transactions) if known.state is wanted else _INVALID
    if is_repeated:
        return _DONE if _COMPLETED.get(known.state) is wanted else _INVALID
    if commits and known.state is not TransactionState.ONGOING:
        return _INVALID
    next_producer_id = NO_PRODUCER
    if known.is_epoch_exhausted:
        if new_producer_id is None:
            return NEEDS_PRODUCER_ID
        next_producer_id = new_producer_id
    return Verdict(ErrorCode.none, known.prepared(wanted, client_version, now, next_producer_id))


def _end_by_state(
    known: Transaction,
    producer_id: ProducerId,
    epoch: int,
    wanted: TransactionState,
    client_version: int,
    now: Millis,
) -> Verdict:
    if known.producer_id != producer_id:
        return Verdict(ErrorCode.invalid_producer_id_mapping)
    if known.epoch != epoch:
        return Verdict(ErrorCode.producer_fenced)
    if known.state is TransactionState.ONGOING:
        return Verdict(ErrorCode.none, known.prepared(wanted, client_version, now))
    if known.is_ending:
        return Verdict(ErrorCode.concurrent_transactions) if known.state is wanted else _INVALID
    return _DONE if _COMPLETED.get(known.state) is wanted else _INVALID


def _repeats_bump(known: Transaction, epoch: int) -> bool:
    """Whether the epoch is the one before, which the client's first request has raised."""
    return known.epoch == epoch + 1


def _repeats_overflow(known: Transaction, producer_id: ProducerId, epoch: int) -> bool:
    """Whether the client's first request has led to a new producer id."""
    return (
        known.previous_producer_id == producer_id
        and epoch == MAX_PRODUCER_EPOCH - 1
        and known.epoch == 0
    )


def _is_epoch_valid(known: Transaction, epoch: int, *, is_repeated: bool) -> bool:
    if known.is_ending:
        return _repeats_bump(known, epoch)
    if known.state in _COMPLETED:
        return is_repeated or known.epoch == epoch
    return known.epoch == epoch
