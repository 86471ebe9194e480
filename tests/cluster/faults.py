"""Injects faults into nodes with certain roles, and repairs them. A seed selects the faults."""

import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tidelog.model.ids import NodeId
from tidelog.testing import CLIENTS, Cluster

Repair = Callable[[], None]
KILL, PAUSE, PARTITION = "kill -9", "pause", "partition"
LEADER, FOLLOWER, CONTROLLER = "a leader", "a follower", "the controller"


class Strike(NamedTuple):
    what: str
    role: str

    def __str__(self) -> str:
        return f"{self.what} of {self.role}"


STRIKES = [
    Strike(what, role)
    for what in (KILL, PAUSE, PARTITION)
    for role in (LEADER, FOLLOWER, CONTROLLER)
]
ROLLING_RESTART = "rolling restart"


class Faults:
    """The faults of one run, counted by kind. `cluster` needs network_faults=True."""

    def __init__(
        self, cluster: Cluster, topic: str, rng: random.Random, hold_seconds: float
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._rng = rng
        self._hold_seconds = hold_seconds
        self.happened: Counter[str] = Counter()
        self.mixes = 0
        """The number of mixes. `happened` counts the two or three faults of a mix one by one."""

    def each(self) -> list[Callable[[], None]]:
        """Every kind of fault once."""
        return [*(partial(self.one, strike) for strike in STRIKES), self.rolling_restart]

    def draw(self) -> Callable[[], None]:
        """A random single fault, or a mix."""
        return self._rng.choice([*self.each(), *[self.mix] * len(STRIKES)])

    def one(self, strike: Strike) -> None:
        """Begin a fault, wait, and repair it."""
        repair = self._begin(strike, self._find(strike.role))
        time.sleep(self._rng.uniform(0, 2) if strike.what == KILL else self._hold_seconds)
        repair()

    def mix(self) -> None:
        """Begin two or three faults in quick succession, and repair them in random order."""
        strikes = self._rng.choices(STRIKES, k=self._rng.choice((2, 2, 3)))
        # Find all victims before the first fault, because after it there may be no node left that
        # answers.
        victims = [self._find(strike.role) for strike in strikes]
        repairs = []
        for strike, victim in zip(strikes, victims, strict=True):
            repairs.append(self._begin(strike, victim))
            time.sleep(self._rng.uniform(0, self._hold_seconds / 2))
        self._rng.shuffle(repairs)
        for repair in repairs:
            repair()
            time.sleep(self._rng.uniform(0, 0.5))
        self.mixes += 1

    def rolling_restart(self) -> None:
        """Restart all nodes in turn, and wait after each restart until all replicas are in sync."""
        for node in self._cluster.nodes:
            self._cluster.restart(node)
            self.await_whole()
        self.happened[ROLLING_RESTART] += 1

    def await_whole(self) -> None:
        """Wait until all nodes are ready and all replicas are in sync."""
        for node in self._cluster.nodes.values():
            node.await_ready()
        for partition, one in self._cluster.topics()[self._topic].items():
            self._cluster.wait_for_isr(self._topic, partition, one.replica_nodes)

    def _find(self, role: str) -> NodeId:
        if role == CONTROLLER:
            return self._cluster.controller()
        partition = self._rng.randrange(len(self._cluster.topics()[self._topic]))
        leader = self._cluster.leader_of(self._topic, partition)
        others = [node for node in self._cluster.nodes if node != leader]
        return self._rng.choice(others) if role == FOLLOWER else leader

    def _begin(self, strike: Strike, node: NodeId) -> Repair:
        """Begin a fault, unless the node is already down or paused."""
        process = self._cluster.nodes[node]
        if not process.is_running or process.is_paused:
            return lambda: None
        self.happened[str(strike)] += 1
        if strike.what == KILL:
            self._cluster.kill(node)
            return lambda: self._cluster.start(node, wait=False)
        if strike.what == PAUSE:
            self._cluster.pause(node)
            return lambda: self._cluster.resume(node)
        self._cut(node)
        return self._cluster.heal

    def _cut(self, node: NodeId) -> None:
        """Cut a node off from the other nodes, from nodes and clients, or in one direction only."""
        others = [other for other in self._cluster.nodes if other != node]
        match self._rng.randrange(4):
            case 0:
                self._cluster.partition([node], others)
            case 1:
                self._cluster.partition([node], [*others, CLIENTS])
            case 2:
                self._cluster.partition([node], others, one_way=True)
            case _:
                self._cluster.partition(others, [node], one_way=True)
