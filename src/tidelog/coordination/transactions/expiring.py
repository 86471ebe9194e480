"""Transactions that exceed their timeout, and transactional ids that nobody uses any more."""

from collections.abc import Mapping

from tidelog.coordination.transactions.initializing import abort_fenced
from tidelog.coordination.transactions.states import PREVIOUS_STATES, TransactionState
from tidelog.coordination.transactions.transaction import Transaction
from tidelog.model.ids import Millis


def abort_late(
    transactions: Mapping[str, Transaction], server_version: int, now: Millis
) -> dict[str, Transaction]:
    """Abort every open transaction that is past its timeout, and fence its producer.

    Without this, a producer that died would hold back the last stable offset for ever (F72).
    """
    return {
        id_: abort_fenced(transaction, server_version, now)
        for id_, transaction in transactions.items()
        if transaction.is_late(now)
    }


def expired(
    transactions: Mapping[str, Transaction], expiration_ms: Millis, now: Millis
) -> list[str]:
    """The ids without an open transaction that were not used for `expiration_ms`."""
    removable = PREVIOUS_STATES[TransactionState.DEAD]
    return [
        id_
        for id_, transaction in transactions.items()
        if transaction.state in removable and transaction.updated_at <= now - expiration_ms
    ]
