"""A read-only view of a running node, for the simulator.

Production code does not use this view. The simulator's checkers look at a node after every event.
Copies would be slow, so the view returns the node's own objects, which a checker must not change.
"""

from collections.abc import Callable, Collection, Mapping
from operator import attrgetter

from tidelog.controller.image.image import ClusterImage
from tidelog.log.partition import PartitionLog
from tidelog.model.ids import BrokerEpoch, NodeId, Offset, TopicPartition
from tidelog.node.node import Node
from tidelog.node.partitions.replica import Replica
from tidelog.replication.isr.leader import PartitionLeader
from tidelog.replication.isr.progress import FollowerProgress
from tidelog.replication.quorum.roles import Role


class NodeInspection:
    """The view of one run of one node; it stays valid while the node runs."""

    __slots__ = (
        "_lifecycle",
        "_machine",
        "_partitions",
        "_quorum",
        "metadata_log",
        "node",
        "replicas",
    )

    def __init__(self, node: Node) -> None:
        self.node = node
        self.metadata_log: PartitionLog = node._metadata_log
        self.replicas: Collection[Replica] = node._broker.partitions._replicas.values()
        """The replicas that are open on this node; a live view."""
        self._partitions = node._broker.partitions
        self._lifecycle = node._broker.lifecycle
        self._quorum = node._quorum
        self._machine = node._quorum.machine

    @property
    def image(self) -> ClusterImage:
        return self.node.image

    @property
    def broker_epoch(self) -> BrokerEpoch:
        return self._lifecycle.epoch

    def replica(self, partition: TopicPartition) -> Replica | None:
        return self._partitions.get(partition)

    @property
    def jobs_under_way(self) -> int:
        """The number of jobs whose results are still awaited by a part of the node."""
        return len(self.node._jobs._waiting)

    @property
    def quorum_role(self) -> Role:
        return self._machine.role

    @property
    def voters(self) -> tuple[NodeId, ...]:
        return tuple(self._machine.voters)

    @property
    def metadata_high_watermark(self) -> Offset:
        return self._quorum.high_watermark


# A checker calls these functions for every replica after every event. An attrgetter is faster than
# a Python function.

log_end_offsets: Callable[[PartitionLeader], Mapping[NodeId, Offset]] = attrgetter("_ends")
"""The log end offset that a leader has recorded for each replica, including itself."""

maximal_isr: Callable[[PartitionLeader], frozenset[NodeId]] = attrgetter("_in_sync.maximal")
"""The in-sync set, plus the replicas that the leader has asked to add."""

proposed_isr: Callable[[PartitionLeader], frozenset[NodeId] | None] = attrgetter("_proposed")
"""The in-sync set that the leader has requested and the controller has not answered yet."""

follower_progress: Callable[[PartitionLeader], Mapping[NodeId, FollowerProgress]]
follower_progress = attrgetter("_progress")
"""The progress that the leader has recorded for each follower."""
