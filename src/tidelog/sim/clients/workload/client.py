"""What every simulated client has: dice, connections, and somebody's word on who leads.

A client learns who leads from a node that runs, as that node's image has it: so it may be told
what is long past, and asks elsewhere the next time.
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
"""How long a client waits before it tries again, at least."""


@dataclass
class ClientSurroundings:
    """Where clients live."""

    cluster: SimCluster
    checker: Checker
    history: History
    is_over: bool = False
    """Nothing new is to be begun; what is under way is brought to its end."""


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
        """Some node that runs and says something."""
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
        """When to try again."""
        return RETRY_MS + self.dice.below(RETRY_MS)
