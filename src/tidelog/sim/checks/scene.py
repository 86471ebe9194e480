"""The state that the checkers observe: the copies of each partition on running nodes.

`CommittedRecords` belongs to a partition, and is kept when a node stops. It lists every batch that
was written to any replica, and the records that were committed. A `Copy` is one replica in one run
of its node.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.controller.image.image import ClusterImage, PartitionImage
from tidelog.model.ids import (
    NO_EPOCH,
    BrokerEpoch,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    TopicId,
    TopicPartition,
)
from tidelog.replication.isr.leader import PartitionLeader
from tidelog.replication.quorum.roles import Role
from tidelog.sim.checks.shadow import Batch, ShadowLog
from tidelog.sim.clients.history import History


class Violation(Exception):
    """An invariant does not hold."""

    def __init__(self, invariant: str, sentence: str, partition: TopicPartition | None) -> None:
        super().__init__(f"{invariant}: {sentence}")
        self.invariant = invariant
        self.sentence = sentence
        self.partition = partition


@dataclass
class CommittedRecords:
    partition: TopicPartition
    topic_id: TopicId
    is_metadata: bool = False
    known: dict[tuple[Offset, LeaderEpoch], tuple[Batch, tuple[Offset, LeaderEpoch] | None]] = (
        field(default_factory=dict)
    )
    """Every batch that any log ever held, with the batch before it."""
    committed: ShadowLog = field(default_factory=ShadowLog)
    committed_end: Offset = 0
    committed_by: dict[LeaderEpoch, Offset] = field(default_factory=dict)
    """The end of the committed records that the leader of each epoch has reported.

    The key NO_EPOCH is for followers of the metadata log, whose high watermarks count as well.
    """
    leaders: dict[LeaderEpoch, tuple[NodeId, int]] = field(default_factory=dict)
    """The node that leads each epoch, and the number of its run (1 after the first start)."""
    unclean_epochs: set[LeaderEpoch] = field(default_factory=set)
    """Epochs of uncleanly elected leaders, which may lack committed records."""
    lost: int = 0
    """The number of committed records that unclean elections have lost."""


@dataclass(eq=False)
class Copy:
    node: NodeId
    run: int
    ledger: CommittedRecords
    log: ShadowLog
    start: Offset = 0
    end: Offset = 0
    high_watermark: Offset = 0
    epoch: LeaderEpoch = NO_EPOCH
    """The epoch in which this replica leads; NO_EPOCH if it does not lead."""
    maximal_isr: frozenset[NodeId] = frozenset()
    ends: dict[NodeId, Offset] = field(default_factory=dict)
    """On the leader: the log end offset that the leader assumes for each replica."""
    runs: dict[NodeId, BrokerEpoch] = field(default_factory=dict)
    """On the leader: the broker epoch in each follower's last fetch."""
    leader: PartitionLeader | None = None
    """On the leader: the object from which `ends`, `level_at` and `proposed` were read."""
    level_at: dict[NodeId, Millis] = field(default_factory=dict)
    """On the leader: when each follower last fetched up to the log end, by the leader's clock."""
    proposed: frozenset[NodeId] | None = None
    """On the leader: the ISR that the leader has proposed to the controller."""

    opened_end: Offset = 0
    """The log end offset when the log was opened. Records below this offset were read from disk."""
    rotten_at: Offset | None = None
    """The first damaged offset. From this offset on, the files differ from `log`.

    The replica must detect the damage and fetch these records again before the simulation ends.
    """

    @property
    def partition(self) -> TopicPartition:
        return self.ledger.partition


class Stance(NamedTuple):
    """The state of a metadata quorum voter with respect to an election."""

    node: NodeId
    run: int
    epoch: LeaderEpoch
    role: type[Role]
    is_content: bool
    """Whether the voter rejects pre-votes, because it leads or has contact with the leader."""
    voters: tuple[NodeId, ...]


@dataclass
class Scene:
    history: History
    is_beyond: bool = False
    ledgers: dict[tuple[TopicId, int], CommittedRecords] = field(default_factory=dict)
    by_name: dict[TopicPartition, CommittedRecords] = field(default_factory=dict)
    """The newest partition of each name. Older partitions of a name belong to deleted topics."""
    copies: dict[NodeId, dict[TopicPartition, Copy]] = field(default_factory=dict)
    broker_epochs: dict[NodeId, int] = field(default_factory=dict)
    """The broker epoch of each running node."""
    image: ClusterImage = field(default_factory=ClusterImage)
    """The newest metadata image that any node has applied."""
    copies_at_stop: dict[NodeId, dict[TopicPartition, Copy]] = field(default_factory=dict)
    """The copies that each node had when it last stopped."""
    damaged: set[NodeId] = field(default_factory=set)
    """Nodes whose files were damaged while they were down."""

    def ledger(
        self, partition: TopicPartition, topic_id: TopicId, is_metadata: bool = False
    ) -> CommittedRecords:
        key = (topic_id, partition.partition)
        found = self.ledgers.get(key)
        if found is None:
            found = self.ledgers[key] = CommittedRecords(partition, topic_id, is_metadata)
            self.by_name[partition] = found
        return found

    def copy(self, node: NodeId, ledger: CommittedRecords) -> Copy | None:
        """The node's copy of the partition; None if the node is down or has not opened it."""
        found = self.copies.get(node, {}).get(ledger.partition)
        return found if found is not None and found.ledger is ledger else None

    def placed(self, ledger: CommittedRecords) -> PartitionImage | None:
        """The metadata of the partition in the newest image."""
        topic = self.image.topic(ledger.topic_id)
        return None if topic is None else topic.partitions.get(ledger.partition.partition)

    def accept_loss(self, ledger: CommittedRecords, end: Offset) -> None:
        """Accept a reported loss: records from `end` on no longer count as committed."""
        ledger.lost += ledger.committed_end - end
        ledger.committed.cut(end)
        ledger.committed_end = end
        for epoch, reached in ledger.committed_by.items():
            ledger.committed_by[epoch] = min(reached, end)
