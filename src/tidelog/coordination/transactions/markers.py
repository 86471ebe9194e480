"""The markers that end transactions: which partitions still lack one, and where to send it.

Invariants: a marker is sent only after the decision is committed in `__transaction_state`. It is
sent again until the partition's leader has it, because a partition without its marker would hold
back the last stable offset, or show a commit in part (F74). A coordinator whose epoch is out of
date stops, because its successor sends the markers (F75).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from tidelog.coordination.transactions.states import TransactionState
from tidelog.coordination.transactions.transaction import Transaction
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, LeaderEpoch, Millis, NodeId, ProducerId, TopicPartition

RETRY_MS: Millis = 50
"""How long a partition waits after a failed attempt, unless its leader changes earlier."""

LeaderOf: TypeAlias = Callable[[TopicPartition], NodeId | None]
"""The leader of a partition, NO_NODE if it has none, or None if the partition does not exist."""

_STOPS = frozenset({ErrorCode.invalid_producer_epoch, ErrorCode.transaction_coordinator_fenced})
"""A later coordinator has ended this transaction."""

_NEEDS_NO_MARKER = frozenset(
    {ErrorCode.unsupported_for_message_format, ErrorCode.unsupported_version}
)
"""The partition cannot hold transactional records, so it needs no marker."""


class TxnMarker(NamedTuple):
    """A marker for some partitions of one leader."""

    transactional_id: str
    producer_id: ProducerId
    epoch: int
    coordinator_epoch: LeaderEpoch
    commits: bool
    client_version: int
    partitions: tuple[TopicPartition, ...]


class DueMarkers(NamedTuple):
    """What to do about missing markers at one moment."""

    by_leader: dict[NodeId, list[TxnMarker]]
    gone: tuple[tuple[str, TopicPartition], ...]
    """Partitions that were deleted, which need no marker."""
    without_leader: tuple[tuple[str, TopicPartition], ...]


@dataclass(slots=True)
class _Ending:
    transaction: Transaction
    missing: dict[TopicPartition, Millis]
    """The partitions without a marker, and when to try each again."""
    in_flight: set[TopicPartition] = field(default_factory=set)


class PendingMarkers:
    """The transactions of one coordinator whose decision is committed."""

    def __init__(self, coordinator_epoch: LeaderEpoch) -> None:
        self._coordinator_epoch = coordinator_epoch
        self._endings: dict[str, _Ending] = {}

    # -- queries -----------------------------------------------------------------------------------

    def missing(self, transactional_id: str) -> tuple[TopicPartition, ...] | None:
        """The partitions without a marker; None if no markers are being sent."""
        ending = self._endings.get(transactional_id)
        return None if ending is None else tuple(ending.missing)

    def finished(self) -> list[str]:
        """The transactions whose partitions all have their markers."""
        return [id_ for id_, ending in self._endings.items() if not ending.missing]

    def due(self, leader_of: LeaderOf, now: Millis) -> DueMarkers:
        """The markers to send now."""
        by_leader: dict[NodeId, list[TxnMarker]] = {}
        gone: list[tuple[str, TopicPartition]] = []
        without_leader: list[tuple[str, TopicPartition]] = []
        for id_, ending in self._endings.items():
            led: dict[NodeId, list[TopicPartition]] = {}
            for partition in _due_partitions(ending, now):
                leader = leader_of(partition)
                if leader is None:
                    gone.append((id_, partition))
                elif leader == NO_NODE:
                    without_leader.append((id_, partition))
                else:
                    led.setdefault(leader, []).append(partition)
            for leader, partitions in led.items():
                marker = self._marker(id_, ending.transaction, tuple(partitions))
                by_leader.setdefault(leader, []).append(marker)
        return DueMarkers(by_leader, tuple(gone), tuple(without_leader))

    def _marker(
        self,
        transactional_id: str,
        transaction: Transaction,
        partitions: tuple[TopicPartition, ...],
    ) -> TxnMarker:
        return TxnMarker(
            transactional_id,
            transaction.producer_id,
            transaction.epoch,
            self._coordinator_epoch,
            transaction.state is TransactionState.PREPARE_COMMIT,
            transaction.client_version,
            partitions,
        )

    def next_deadline(self) -> Millis | None:
        """When to look again; None if every partition waits for an answer."""
        earliest: Millis | None = None
        for ending in self._endings.values():
            if not ending.missing:
                return 0
            for partition, when in ending.missing.items():
                if partition not in ending.in_flight and (earliest is None or when < earliest):
                    earliest = when
        return earliest

    # -- changes -----------------------------------------------------------------------------------

    def begin(self, transactional_id: str, transaction: Transaction, now: Millis) -> None:
        """Send the markers of a transaction from now on."""
        assert transaction.is_ending
        missing = dict.fromkeys(transaction.partitions, now)
        self._endings[transactional_id] = _Ending(transaction, missing)

    def forget(self, transactional_id: str) -> None:
        """The end of a transaction is written, or a later coordinator has ended it."""
        self._endings.pop(transactional_id, None)

    def sent(self, due: DueMarkers, now: Millis) -> None:
        for id_, partition in due.gone:
            self._endings[id_].missing.pop(partition, None)
        for id_, partition in due.without_leader:
            self._endings[id_].missing[partition] = now + RETRY_MS
        for markers in due.by_leader.values():
            for marker in markers:
                self._endings[marker.transactional_id].in_flight.update(marker.partitions)

    def answered(
        self, marker: TxnMarker, errors: Mapping[TopicPartition, ErrorCode], now: Millis
    ) -> None:
        """Apply the leader's answer. A partition that the answer lacks is tried again."""
        ending = self._ending_of(marker)
        if ending is None:
            return
        if any(error in _STOPS for error in errors.values()):
            self.forget(marker.transactional_id)
            return
        ending.in_flight.difference_update(marker.partitions)
        for partition in marker.partitions:
            error = errors.get(partition)
            if error is ErrorCode.none or error in _NEEDS_NO_MARKER:
                ending.missing.pop(partition, None)
            elif partition in ending.missing:
                ending.missing[partition] = now + RETRY_MS

    def leaders_changed(self, now: Millis) -> None:
        """Try failed partitions again at once."""
        for ending in self._endings.values():
            for partition in ending.missing:
                ending.missing[partition] = now

    def _ending_of(self, marker: TxnMarker) -> _Ending | None:
        """The transaction of a marker, unless it has ended, and perhaps a later one is ending."""
        ending = self._endings.get(marker.transactional_id)
        if ending is None:
            return None
        transaction = ending.transaction
        is_same = (transaction.producer_id, transaction.epoch) == (
            marker.producer_id,
            marker.epoch,
        )
        return ending if is_same else None


def _due_partitions(ending: _Ending, now: Millis) -> Iterator[TopicPartition]:
    for partition, when in ending.missing.items():
        if when <= now and partition not in ending.in_flight:
            yield partition
