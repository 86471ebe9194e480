"""One transactional id: its producer, and the transaction that is open or ended last.

A `Transaction` is immutable. Each method returns the next state, and asserts that the table of
transitions allows it.

Invariants: an epoch is handed to one producer instance only. With transaction version 2, an epoch
is used by one transaction only, so a delayed request cannot end a later transaction (F46). An epoch
never overflows: before it would, the transactional id gets a new producer id (F77).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tidelog.coordination.transactions.states import PREVIOUS_STATES, TransactionState
from tidelog.model.ids import NO_PRODUCER, NO_TIMESTAMP, Millis, ProducerId, TopicPartition

NO_PRODUCER_EPOCH = -1
MAX_PRODUCER_EPOCH = (1 << 15) - 1

EPOCH_PER_TRANSACTION = 2
"""The first transaction version in which every transaction has its own epoch (KIP-890)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    producer_id: ProducerId
    epoch: int
    timeout_ms: Millis
    state: TransactionState
    partitions: tuple[TopicPartition, ...] = ()
    """The partitions of the transaction, in the order in which they were added."""
    started_at: Millis = NO_TIMESTAMP
    updated_at: Millis = NO_TIMESTAMP
    previous_producer_id: ProducerId = NO_PRODUCER
    next_producer_id: ProducerId = NO_PRODUCER
    """The id that the producer gets when this transaction is complete; -1 if its id stays."""
    last_epoch: int = NO_PRODUCER_EPOCH
    """The epoch before this one, if the same producer instance had it. As in Kafka, this is not
    written to the log, so a request that is repeated after a failover is fenced (KIP-360)."""
    client_version: int = 0
    """The transaction version of the client's last request."""

    @classmethod
    def created(cls, producer_id: ProducerId, timeout_ms: Millis, now: Millis) -> "Transaction":
        """A new transactional id, whose first epoch is not assigned yet."""
        return cls(
            producer_id=producer_id,
            epoch=NO_PRODUCER_EPOCH,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            updated_at=now,
        )

    # -- queries -----------------------------------------------------------------------------------

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether no epoch is left for the producer. The last one is kept to fence it."""
        return is_exhausted(self.epoch)

    @property
    def is_ending(self) -> bool:
        """Whether the outcome is decided, and markers may still have to be written."""
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def has_epoch_per_transaction(self) -> bool:
        return self.client_version >= EPOCH_PER_TRANSACTION

    def is_late(self, now: Millis) -> bool:
        """Whether an open transaction has exceeded its timeout."""
        return self.state is TransactionState.ONGOING and self.deadline < now

    @property
    def deadline(self) -> Millis:
        return self.started_at + self.timeout_ms

    # -- transitions -------------------------------------------------------------------------------

    def with_next_epoch(self, timeout_ms: Millis, last_epoch: int, now: Millis) -> "Transaction":
        """The next epoch for a producer that starts or recovers."""
        assert not self.is_epoch_exhausted
        return self._at_rest(self.producer_id, self.epoch + 1, last_epoch, timeout_ms, now)

    def with_same_epoch(self, timeout_ms: Millis, now: Millis) -> "Transaction":
        """The same epoch again, for a producer that repeats its request."""
        return self._at_rest(self.producer_id, self.epoch, self.last_epoch, timeout_ms, now)

    def with_new_producer_id(
        self, producer_id: ProducerId, timeout_ms: Millis, last_epoch: int, now: Millis
    ) -> "Transaction":
        """Epoch 0 of a new producer id, because the epochs of the old id are exhausted."""
        return self._at_rest(producer_id, 0, last_epoch, timeout_ms, now)

    def with_partitions(
        self, added: Iterable[TopicPartition], client_version: int, now: Millis
    ) -> "Transaction":
        """The transaction with more partitions. The first partition begins the transaction."""
        begins = self.state is not TransactionState.ONGOING
        return self._moved(
            TransactionState.ONGOING,
            partitions=tuple(dict.fromkeys((*self.partitions, *added))),
            started_at=now if begins else self.started_at,
            updated_at=now,
            client_version=client_version,
        )

    def fenced(self) -> "Transaction":
        """A higher epoch, so that the present producer can write no more."""
        return self._moved(
            TransactionState.PREPARE_EPOCH_FENCE,
            epoch=min(self.epoch + 1, MAX_PRODUCER_EPOCH),
            last_epoch=NO_PRODUCER_EPOCH,
        )

    def prepared(
        self,
        state: TransactionState,
        client_version: int,
        now: Millis,
        next_producer_id: ProducerId = NO_PRODUCER,
    ) -> "Transaction":
        """The decision to commit or to abort. Once it is written, it is final."""
        had_begun = self.state in (TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE)
        epoch, last_epoch = self.epoch, self.last_epoch
        if client_version >= EPOCH_PER_TRANSACTION:
            epoch, last_epoch = min(epoch + 1, MAX_PRODUCER_EPOCH), epoch
        else:
            client_version = 0  # Kafka does not tell the earlier versions apart
        return self._moved(
            state,
            epoch=epoch,
            last_epoch=last_epoch,
            next_producer_id=next_producer_id,
            started_at=self.started_at if had_begun else now,
            updated_at=now,
            client_version=client_version,
        )

    def completed(self, now: Millis) -> "Transaction":
        """The end of the transaction, once every partition has its marker."""
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        producer_id, epoch = self.producer_id, self.epoch
        if self.next_producer_id != NO_PRODUCER:
            producer_id, epoch = self.next_producer_id, 0
        return self._moved(
            TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
            producer_id=producer_id,
            epoch=epoch,
            next_producer_id=NO_PRODUCER,
            partitions=(),
            updated_at=now,
        )

    def with_markers_missing(self, partitions: tuple[TopicPartition, ...]) -> "Transaction":
        """The transaction as it is described: without the partitions that have their markers."""
        return replace(self, partitions=partitions)

    def _at_rest(
        self,
        producer_id: ProducerId,
        epoch: int,
        last_epoch: int,
        timeout_ms: Millis,
        now: Millis,
    ) -> "Transaction":
        return self._moved(
            TransactionState.EMPTY,
            producer_id=producer_id,
            epoch=epoch,
            last_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=(),
            started_at=NO_TIMESTAMP,
            updated_at=now,
        )

    def _moved(self, state: TransactionState, **changes: Any) -> "Transaction":
        assert self.state in PREVIOUS_STATES[state], f"{self.state.title} -> {state.title}"
        return replace(self, state=state, previous_producer_id=self.producer_id, **changes)


def is_exhausted(epoch: int) -> bool:
    return epoch >= MAX_PRODUCER_EPOCH - 1
