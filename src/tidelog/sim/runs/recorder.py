"""A time line of each partition: its leader, in-sync set, replica offsets and faults.

The time line is recorded only on request. A failed run can be repeated with the same seed to record
its time line.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.model.ids import LeaderEpoch, Millis, NodeId, Offset, TopicPartition


class ReplicaMoment(NamedTuple):
    end: Offset
    high_watermark: Offset


class Moment(NamedTuple):
    """The state of a partition from `at_ms` on: the newest metadata and the replicas' offsets."""

    at_ms: Millis
    """The time since the workload began; negative while the cluster starts."""
    leader: NodeId
    leader_epoch: LeaderEpoch
    isr: tuple[NodeId, ...]
    elr: tuple[NodeId, ...]
    replicas: tuple[tuple[NodeId, ReplicaMoment], ...]
    """The replicas on running nodes, by id."""
    what: str
    """A description of the change."""


class TimelineMark(NamedTuple):
    """The start or the end of a fault."""

    at_ms: Millis
    what: str
    nodes: tuple[NodeId, ...]


@dataclass
class Recorder:
    partitions: dict[TopicPartition, list[Moment]] = field(default_factory=dict)
    marks: list[TimelineMark] = field(default_factory=list)

    def moment(self, partition: TopicPartition, moment: Moment) -> None:
        self.partitions.setdefault(partition, []).append(moment)

    def mark(self, at_ms: Millis, what: str, nodes: tuple[NodeId, ...] = ()) -> None:
        self.marks.append(TimelineMark(at_ms, what, nodes))

    def tail(self, partition: TopicPartition | None, count: int = 25) -> list[str]:
        """The last changes of a partition and the last faults, together in order of time."""
        told = [(mark.at_ms, f"* {mark.what}") for mark in self.marks]
        if partition is not None:
            told += [(one.at_ms, _told(one)) for one in self.partitions.get(partition, ())]
        told.sort(key=lambda each: each[0])
        return [f"{at / 1000:9.3f} s  {what}" for at, what in told[-count:]]


def _told(moment: Moment) -> str:
    ends = "  ".join(
        f"{'*' if node == moment.leader else ''}{node}:{state.end}/{state.high_watermark}"
        for node, state in moment.replicas
    )
    isr = ",".join(map(str, moment.isr))
    return f"{moment.what:<34} epoch {moment.leader_epoch} isr {isr or '-'}  {ends}"
