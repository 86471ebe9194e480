"""Wrong rules of transactions: about epochs, timeouts and markers."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from tidelog.coordination.transactions.machine import TransactionMachine
from tidelog.coordination.transactions.states import TransactionState
from tidelog.coordination.transactions.transaction import Transaction
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_PRODUCER, Millis, ProducerId
from tidelog.sim.mutants.mutant import Mutant
from tidelog.sim.rules import Replacement

_PARTS = "tidelog.coordination.transactions"


def _one_epoch() -> Iterable[Replacement]:
    right = Transaction.prepared

    def prepared(
        self: Transaction,
        state: TransactionState,
        client_version: int,
        now: Millis,
        next_producer_id: ProducerId = NO_PRODUCER,
    ) -> Transaction:
        return right(self, state, 0, now)

    yield Replacement(f"{_PARTS}.transaction:Transaction.prepared", prepared)


def _no_timeout() -> Iterable[Replacement]:
    def abort_late(
        transactions: Mapping[str, Transaction], server_version: int, now: Millis
    ) -> dict[str, Transaction]:
        return {}

    yield Replacement(f"{_PARTS}.machine:abort_late", abort_late)


def _any_epoch() -> Iterable[Replacement]:
    def refusal(self: Any, header: Any, *, check_sequence: bool) -> None:
        return None

    def coordinator_refusal(
        known: Transaction | None, producer_id: ProducerId, epoch: int
    ) -> ErrorCode:
        return ErrorCode.none

    yield Replacement("tidelog.log.producers.producers:ProducerStates.refusal", refusal)
    yield Replacement(f"{_PARTS}.adding:_refusal", coordinator_refusal)


def _forgotten_markers() -> Iterable[Replacement]:
    def loaded(self: TransactionMachine, at: Any) -> Iterator[Any]:
        return iter(())

    yield Replacement(f"{_PARTS}.machine:TransactionMachine.loaded", loaded)


TRANSACTIONS: Collection[Mutant] = (
    Mutant(
        "one-epoch-for-all-transactions",
        ("F46",),
        "The end of a transaction does not raise the producer's epoch.",
        _one_epoch,
        "a_late_commit_does_not_end_the_next_transaction",
    ),
    Mutant(
        "no-transaction-timeout",
        ("F72",),
        "A coordinator does not abort transactions that exceed their timeout.",
        _no_timeout,
        "the_transaction_of_a_dead_producer_is_aborted",
    ),
    Mutant(
        "any-producer-epoch",
        ("F73",),
        "Leaders and coordinators accept a write with an old producer epoch.",
        _any_epoch,
        "a_late_write_of_an_aborted_transaction_is_refused",
    ),
    Mutant(
        "forgets-markers",
        ("F74",),
        "A new coordinator does not send the markers that its predecessor had to send.",
        _forgotten_markers,
        "the_next_coordinator_sends_the_markers",
    ),
)
