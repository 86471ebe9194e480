"""The states of a transaction, and the table of transitions between them, as in Kafka.

Invariant: a transaction changes its state only along `PREVIOUS_STATES`. Two states are never
written to the log. `PREPARE_EPOCH_FENCE` exists within one decision only: it raises the epoch
before the abort. `DEAD` is written as a tombstone.
"""

from collections.abc import Mapping
from enum import IntEnum


class TransactionState(IntEnum):
    """A state, with the number that Kafka writes to `__transaction_state`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name that Kafka shows to clients, such as PrepareCommit."""
        return self.name.title().replace("_", "")


_AT_REST = frozenset(
    {
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    }
)

PREVIOUS_STATES: Mapping[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: _AT_REST,
    TransactionState.ONGOING: _AT_REST | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    # Transaction version 2 can abort a transaction to which no partition was added.
    TransactionState.PREPARE_ABORT: _AT_REST
    | {TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: _AT_REST,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
}
"""For each state, the states from which a transaction can enter it."""

BY_TITLE: Mapping[str, TransactionState] = {state.title: state for state in TransactionState}
