"""The state of a small cluster at one moment: its machines, partitions and replica offsets.

The page shows one scene at a time, and describes what has changed since the previous scene.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tidelog.model.ids import NO_NODE, LeaderEpoch, Millis, NodeId, Offset


class ReplicaScene(NamedTuple):
    node: NodeId
    end: Offset
    high_watermark: Offset
    epochs: tuple[tuple[LeaderEpoch, Offset], ...] = ()
    """The start offset of each leader epoch in this log, as far as it is known."""


class PartitionScene(NamedTuple):
    name: str
    leader: NodeId
    leader_epoch: LeaderEpoch
    isr: tuple[NodeId, ...]
    elr: tuple[NodeId, ...]
    replicas: tuple[ReplicaScene, ...]

    def replica(self, node: NodeId) -> ReplicaScene | None:
        return next((one for one in self.replicas if one.node == node), None)


class ReplayScene(NamedTuple):
    machines: tuple[tuple[NodeId, str], ...]
    """The state of each machine: up, paused, down, cut off, and so on."""
    controller: NodeId
    partitions: tuple[PartitionScene, ...]
    cuts: tuple[str, ...] = ()
    """Descriptions of the links that are cut."""

    def partition(self, name: str) -> PartitionScene | None:
        return next((one for one in self.partitions if one.name == name), None)


class Frame(NamedTuple):
    at_ms: Millis
    step: int
    """The index of the step that this frame belongs to, in a story or a recorded run."""
    happened: tuple[str, ...]
    scene: ReplayScene


def happenings(old: ReplayScene, new: ReplayScene) -> Iterator[str]:
    """Sentences about the changes between two scenes, except for the growth of logs."""
    before = dict(old.machines)
    for node, state in new.machines:
        if before.get(node, state) != state:
            yield f"{_machine(node)} is {state}"
    if new.controller not in (old.controller, NO_NODE):
        yield f"{_machine(new.controller)} is the active controller"
    for partition in new.partitions:
        was = old.partition(partition.name)
        if was is None:
            yield (
                f"{partition.name} is led by {partition.leader}, in sync: {_nodes(partition.isr)}"
            )
        else:
            yield from _partition_happenings(was, partition)


def _partition_happenings(old: PartitionScene, new: PartitionScene) -> Iterator[str]:
    name = new.name
    if (old.leader, old.leader_epoch) != (new.leader, new.leader_epoch):
        if new.leader == NO_NODE:
            yield f"{name} has no leader"
        else:
            yield f"{name} is led by {new.leader} in epoch {new.leader_epoch}"
    if set(old.isr) != set(new.isr):
        yield f"in-sync set of {name}: {_nodes(old.isr)} -> {_nodes(new.isr)}"
    if set(old.elr) != set(new.elr):
        yield f"eligible to lead {name} without being in sync: {_nodes(new.elr)}"
    for replica in new.replicas:
        was = old.replica(replica.node)
        if was is not None and replica.end < was.end:
            yield f"{replica.node} cuts its log of {name} from {was.end} to {replica.end}"


def _machine(node: NodeId) -> str:
    return f"controller {node}" if node > 100 else f"broker {node}"


def _nodes(nodes: tuple[NodeId, ...]) -> str:
    return ",".join(map(str, sorted(nodes))) or "nobody"
