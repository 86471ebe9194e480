"""The base class of simulated clients: random numbers, connections, and lookups of the leader.

A client reads the leader from the metadata image of a random running node. This image may be old,
so the client chooses another random node on its next attempt.
"""

from dataclasses import dataclass
from typing import NamedTuple

from tidelog.model.ids import LeaderEpoch, Millis, NodeId, TopicPartition
from tidelog.sim.checks.checker import Checker
from tidelog.sim.clients.history import History
from tidelog.sim.clients.talk import Talk
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.host import SimHost

PATIENCE_MS: Millis = 3_000
RETRY_MS: Millis = 60
"""The minimum delay before a retry."""


@dataclass
class ClientSurroundings:
    """The environment of simulated clients."""

    cluster: SimCluster
    checker: Checker
    history: History
    is_over: bool = False
    """Whether the workload is over, so that clients only complete pending work."""


class Leadership(NamedTuple):
    node: NodeId
    epoch: LeaderEpoch


class WorkloadClient:
    def __init__(self, around: ClientSurroundings, name: str) -> None:
        self.name = name
        self.around = around
        self.cluster = around.cluster
        self.world = around.cluster.world
        self.dice: SeededDice = self.world.dice.fork(name)

    def any_host(self) -> SimHost | None:
        """A random node that runs and is not paused."""
        awake = [host for host in self.cluster.up if not host.is_paused]
        return awake[self.dice.below(len(awake))] if awake else None

    def leader_of(self, partition: TopicPartition) -> Leadership | None:
        host = self.any_host()
        if host is None or host.node is None:
            return None
        placed = host.node.image.partition(partition)
        if placed is None or not placed.has_leader:
            return None
        return Leadership(placed.leader, placed.leader_epoch)

    def talk_to(self, node: NodeId) -> Talk:
        return Talk(self.cluster, node, patience_ms=PATIENCE_MS, name=self.name)

    def later(self) -> Millis:
        """The delay before the next retry."""
        return RETRY_MS + self.dice.below(RETRY_MS)
