"""The markers that end transactions: which partitions still lack one, and where to send it.

Invariants: a marker is sent only after the decision is committed in `__transaction_state`. It is
sent again until the partition's leader has it, because a partition without its marker would hold
back the last stable offset, or show a commit in part (F74). A coordinator whose epoch is out of
date stops, because its successor sends the markers (F75). A partition that has seen a later epoch
of the producer needs no marker, and does not keep the other partitions from getting theirs.

Each step costs time for the partitions that it concerns, not for all that wait for an answer.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from tidelog.coordination.transactions.states import TransactionState
from tidelog.coordination.transactions.transaction import Transaction
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, LeaderEpoch, Millis, NodeId, ProducerId, TopicPartition

RETRY_MS: Millis = 50
"""How long a partition waits after a failed attempt, unless its leader changes earlier."""

MOST_IN_FLIGHT = 1_000
"""How many partitions of one transaction wait for one leader's answer at a time (F63)."""

LeaderOf: TypeAlias = Callable[[TopicPartition], NodeId | None]
"""The leader of a partition, NO_NODE if it has none, or None if the partition does not exist."""

_NEEDS_NO_MARKER = frozenset(
    {
        # The producer's next transaction may be open in the partition, so this one has ended there.
        ErrorCode.invalid_producer_epoch,
        # The partition cannot hold transactional records.
        ErrorCode.unsupported_for_message_format,
        ErrorCode.unsupported_version,
    }
)


class TxnMarker(NamedTuple):
    """A marker for some partitions of one leader."""

    transactional_id: str
    producer_id: ProducerId
    epoch: int
    coordinator_epoch: LeaderEpoch
    commits: bool
    client_version: int
    partitions: tuple[TopicPartition, ...]
    leader: NodeId


class DueMarkers(NamedTuple):
    """What to do about missing markers at one moment."""

    by_leader: dict[NodeId, list[TxnMarker]]
    gone: tuple[tuple[str, TopicPartition], ...]
    """Partitions that were deleted, which need no marker."""
    postponed: tuple[tuple[str, TopicPartition], ...]
    """Partitions without a leader, or whose leader has much to answer."""


@dataclass(slots=True)
class _Ending:
    transaction: Transaction
    waiting: dict[TopicPartition, Millis]
    """The partitions without a marker, and when to try each again."""
    in_flight: dict[TopicPartition, NodeId] = field(default_factory=dict)
    """The partitions whose marker is not answered, and the leader that has to answer."""

    @property
    def is_finished(self) -> bool:
        return not self.waiting and not self.in_flight

    def room(self) -> dict[NodeId, int]:
        """How many more partitions each leader with markers in flight may get."""
        busy = Counter(self.in_flight.values())
        return {leader: MOST_IN_FLIGHT - count for leader, count in busy.items()}

    def drop(self, partition: TopicPartition) -> None:
        self.waiting.pop(partition, None)
        self.in_flight.pop(partition, None)


class PendingMarkers:
    """The transactions of one coordinator whose decision is committed."""

    def __init__(self, coordinator_epoch: LeaderEpoch) -> None:
        self._coordinator_epoch = coordinator_epoch
        self._endings: dict[str, _Ending] = {}
        self._due: dict[str, Millis] = {}
        """The transactions with markers to send, and when to send the first of them."""
        self._finished: dict[str, None] = {}

    # -- queries -----------------------------------------------------------------------------------

    @property
    def are_pending(self) -> bool:
        return bool(self._endings)

    def missing(self, transactional_id: str) -> tuple[TopicPartition, ...] | None:
        """The partitions without a marker; None if no markers are being sent."""
        ending = self._endings.get(transactional_id)
        if ending is None:
            return None
        return tuple(
            one
            for one in ending.transaction.partitions
            if one in ending.waiting or one in ending.in_flight
        )

    def finished(self) -> list[str]:
        """The transactions whose partitions all have their markers."""
        return list(self._finished)

    def due(self, leader_of: LeaderOf, now: Millis) -> DueMarkers:
        """The markers to send now."""
        by_leader: dict[NodeId, list[TxnMarker]] = {}
        gone: list[tuple[str, TopicPartition]] = []
        postponed: list[tuple[str, TopicPartition]] = []
        for id_ in [one for one, when in self._due.items() if when <= now]:
            ending = self._endings[id_]
            led: dict[NodeId, list[TopicPartition]] = {}
            room = ending.room()
            for partition in [one for one, when in ending.waiting.items() if when <= now]:
                leader = leader_of(partition)
                if leader is None:
                    gone.append((id_, partition))
                elif leader == NO_NODE or room.setdefault(leader, MOST_IN_FLIGHT) <= 0:
                    postponed.append((id_, partition))
                else:
                    room[leader] -= 1
                    led.setdefault(leader, []).append(partition)
            for leader, partitions in led.items():
                marker = self._marker(id_, ending.transaction, tuple(partitions), leader)
                by_leader.setdefault(leader, []).append(marker)
        return DueMarkers(by_leader, tuple(gone), tuple(postponed))

    def _marker(
        self,
        transactional_id: str,
        transaction: Transaction,
        partitions: tuple[TopicPartition, ...],
        leader: NodeId,
    ) -> TxnMarker:
        return TxnMarker(
            transactional_id,
            transaction.producer_id,
            transaction.epoch,
            self._coordinator_epoch,
            transaction.state is TransactionState.PREPARE_COMMIT,
            transaction.client_version,
            partitions,
            leader,
        )

    def next_deadline(self) -> Millis | None:
        """When to look again; None if every partition waits for an answer."""
        return 0 if self._finished else min(self._due.values(), default=None)

    # -- changes -----------------------------------------------------------------------------------

    def begin(self, transactional_id: str, transaction: Transaction, now: Millis) -> None:
        """Send the markers of a transaction from now on."""
        assert transaction.is_ending
        waiting = dict.fromkeys(transaction.partitions, now)
        self._endings[transactional_id] = _Ending(transaction, waiting)
        self._look_again(transactional_id)

    def forget(self, transactional_id: str) -> None:
        """The end of a transaction is written, or a later coordinator has ended it."""
        self._endings.pop(transactional_id, None)
        self._look_again(transactional_id)

    def sent(self, due: DueMarkers, now: Millis) -> None:
        touched: dict[str, None] = {}
        for id_, partition in due.gone:
            self._endings[id_].drop(partition)
            touched[id_] = None
        for id_, partition in due.postponed:
            self._endings[id_].waiting[partition] = now + RETRY_MS
            touched[id_] = None
        for leader, markers in due.by_leader.items():
            for marker in markers:
                ending = self._endings[marker.transactional_id]
                for partition in marker.partitions:
                    del ending.waiting[partition]
                    ending.in_flight[partition] = leader
                touched[marker.transactional_id] = None
        for id_ in touched:
            self._look_again(id_)

    def answered(
        self, marker: TxnMarker, errors: Mapping[TopicPartition, ErrorCode], now: Millis
    ) -> None:
        """Apply the leader's answer. A partition that the answer lacks is tried again."""
        ending = self._ending_of(marker)
        if ending is None:
            return
        if ErrorCode.transaction_coordinator_fenced in errors.values():
            self.forget(marker.transactional_id)
            return
        for partition in marker.partitions:
            error = errors.get(partition)
            if error is ErrorCode.none or error in _NEEDS_NO_MARKER:
                ending.drop(partition)
            elif ending.in_flight.get(partition) == marker.leader:
                del ending.in_flight[partition]
                ending.waiting[partition] = now + RETRY_MS
        self._look_again(marker.transactional_id)

    def leaders_changed(self, leader_of: LeaderOf, now: Millis) -> None:
        """Try failed partitions again at once, and those whose leader was replaced.

        A leader that was replaced may be paused, and answer only after a long time.
        """
        for id_, ending in self._endings.items():
            for partition, leader in list(ending.in_flight.items()):
                if leader_of(partition) != leader:
                    del ending.in_flight[partition]
                    ending.waiting[partition] = now
            for partition in ending.waiting:
                ending.waiting[partition] = now
            self._look_again(id_)

    def _look_again(self, transactional_id: str) -> None:
        """Update when to send the next markers of a transaction."""
        self._due.pop(transactional_id, None)
        self._finished.pop(transactional_id, None)
        ending = self._endings.get(transactional_id)
        if ending is None:
            return
        if ending.waiting:
            self._due[transactional_id] = min(ending.waiting.values())
        elif ending.is_finished:
            self._finished[transactional_id] = None

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
