"""All that the checkers know: every copy of every partition on nodes that run, and what is settled.

`CommittedRecords` belongs to a partition for good: it outlives nodes and knows what was written and
what was committed. A `Copy` is one replica in one run of its node.
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
    """In which epoch up to where was committed; NO_EPOCH: told by a follower."""
    leaders: dict[LeaderEpoch, tuple[NodeId, int]] = field(default_factory=dict)
    """Who led in which epoch, and in which of its runs."""
    unclean_epochs: set[LeaderEpoch] = field(default_factory=set)
    """Epochs of leaders that were elected although they might lack something, and known for it."""
    lost: int = 0
    """Committed records that are gone, and that an unclean election has owned up to."""


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
    """In which it leads, while it does."""
    maximal_isr: frozenset[NodeId] = frozenset()
    ends: dict[NodeId, Offset] = field(default_factory=dict)
    """While it leads: how far it believes every replica to be."""
    runs: dict[NodeId, BrokerEpoch] = field(default_factory=dict)
    """While it leads: in which run of its broker each follower was when it said so."""
    leader: PartitionLeader | None = None
    """The last leadership of which the fields around are."""
    level_at: dict[NodeId, Millis] = field(default_factory=dict)
    """While it leads: when each follower last fetched and had all, by this leader's clock."""
    proposed: frozenset[NodeId] | None = None
    """While it leads: the in-sync set that it has asked for."""

    opened_end: Offset = 0
    """Where the log ended when it was opened: what lies below was on disk, the rest was fetched."""
    rotten_at: Offset | None = None
    """From here on the files do not hold what they held before their node was damaged. `log` has
    what they held: the replica has to find out, and to fetch it again, before the run ends.
    """

    @property
    def partition(self) -> TopicPartition:
        return self.ledger.partition


class Stance(NamedTuple):
    """How a voter of the metadata quorum stands to an election."""

    node: NodeId
    run: int
    epoch: LeaderEpoch
    role: type[Role]
    is_content: bool
    """It leads, or is in touch with who does: then it refuses pre-votes."""
    voters: tuple[NodeId, ...]


@dataclass
class Scene:
    history: History
    is_beyond: bool = False
    ledgers: dict[tuple[TopicId, int], CommittedRecords] = field(default_factory=dict)
    by_name: dict[TopicPartition, CommittedRecords] = field(default_factory=dict)
    """The latest of each name."""
    copies: dict[NodeId, dict[TopicPartition, Copy]] = field(default_factory=dict)
    broker_epochs: dict[NodeId, int] = field(default_factory=dict)
    """As which each node that runs has registered."""
    image: ClusterImage = field(default_factory=ClusterImage)
    """The newest that any node has shown."""
    left: dict[NodeId, dict[TopicPartition, Copy]] = field(default_factory=dict)
    """What each node held when it was last seen to run."""
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
        """The node's copy, if the node runs and has opened it."""
        found = self.copies.get(node, {}).get(ledger.partition)
        return found if found is not None and found.ledger is ledger else None

    def placed(self, ledger: CommittedRecords) -> PartitionImage | None:
        """As the newest image has the partition."""
        topic = self.image.topic(ledger.topic_id)
        return None if topic is None else topic.partitions.get(ledger.partition.partition)

    def own_up(self, ledger: CommittedRecords, end: Offset) -> None:
        """What was committed from `end` on is lost, and somebody has said so."""
        ledger.lost += ledger.committed_end - end
        ledger.committed.cut(end)
        ledger.committed_end = end
        for epoch, reached in ledger.committed_by.items():
            ledger.committed_by[epoch] = min(reached, end)
