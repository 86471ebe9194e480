"""InitProducerId with a transactional id: assign an epoch, and fence the producer that had the id.

A producer that sends its own id and epoch recovers from an error (KIP-360). It gets the next epoch
only if it still is the newest producer. A request that is repeated gets the same epoch again.
"""

from typing import NamedTuple

from tidelog.coordination.transactions.states import TransactionState
from tidelog.coordination.transactions.transaction import (
    NO_PRODUCER_EPOCH,
    Transaction,
    is_exhausted,
)
from tidelog.coordination.transactions.verdict import NEEDS_PRODUCER_ID, Verdict
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, ProducerId


class KnownProducer(NamedTuple):
    """The id and the epoch that a producer sends when it recovers from an error."""

    producer_id: ProducerId
    epoch: int


def init_producer(
    known: Transaction | None,
    timeout_ms: Millis,
    expected: KnownProducer | None,
    new_producer_id: ProducerId | None,
    server_version: int,
    now: Millis,
) -> Verdict:
    """Decide an InitProducerId request.

    `new_producer_id` is None in the first attempt, because most requests need no new id. While a
    transaction is open, it is aborted first, and the client retries.
    """
    if known is None:
        if new_producer_id is None:
            return NEEDS_PRODUCER_ID
        created = Transaction.created(new_producer_id, timeout_ms, now)
        return Verdict(ErrorCode.none, created.with_next_epoch(timeout_ms, NO_PRODUCER_EPOCH, now))
    if expected is not None and not _may_continue(known, expected):
        return Verdict(ErrorCode.producer_fenced)
    if known.is_ending:
        return Verdict(ErrorCode.concurrent_transactions)
    if known.state is TransactionState.ONGOING:
        # The epoch of the fence is never sent to a client. When the client retries, it gets the
        # epoch after it, or a new producer id.
        return Verdict(ErrorCode.concurrent_transactions, abort_fenced(known, server_version, now))
    if known.is_epoch_exhausted and (expected is None or expected.epoch == known.epoch):
        if new_producer_id is None:
            return NEEDS_PRODUCER_ID
        last = NO_PRODUCER_EPOCH if expected is None else known.epoch
        return Verdict(
            ErrorCode.none, known.with_new_producer_id(new_producer_id, timeout_ms, last, now)
        )
    return _next_epoch(known, timeout_ms, expected, now)


def abort_fenced(known: Transaction, server_version: int, now: Millis) -> Transaction:
    """Abort an open transaction on behalf of the coordinator, and fence its producer."""
    return known.fenced().prepared(TransactionState.PREPARE_ABORT, server_version, now)


def _may_continue(known: Transaction, expected: KnownProducer) -> bool:
    """Whether the producer may be the newest one. Its epoch is compared later."""
    return expected.producer_id == known.producer_id or (
        # The producer repeats a request that was answered with a new producer id.
        expected.producer_id == known.previous_producer_id and is_exhausted(expected.epoch)
    )


def _next_epoch(
    known: Transaction, timeout_ms: Millis, expected: KnownProducer | None, now: Millis
) -> Verdict:
    if expected is None:
        return Verdict(ErrorCode.none, known.with_next_epoch(timeout_ms, NO_PRODUCER_EPOCH, now))
    if expected.epoch == known.epoch:
        return Verdict(ErrorCode.none, known.with_next_epoch(timeout_ms, known.epoch, now))
    if expected.epoch == known.last_epoch:
        # The request is repeated. If another producer had started since, it would have cleared the
        # last epoch.
        return Verdict(ErrorCode.none, known.with_same_epoch(timeout_ms, now))
    return Verdict(ErrorCode.producer_fenced)
