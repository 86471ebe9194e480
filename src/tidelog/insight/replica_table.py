"""The rows of the replica table. Other modules format the rows for terminals and pipes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidelog.client.replica_offsets import PartitionOffsets, ReplicaOffsets
from tidelog.insight import wording
from tidelog.insight.lag_time import LeaderEnds, LookTime, Proof, proven_by_leader
from tidelog.insight.replica_history import IsrMembership, ReplicaHistory
from tidelog.model.ids import NO_NODE, NodeId, Offset, TopicPartition

HEADS = ("PARTITION", "LEADER", "WATERMARK", "REPLICA", "END OFFSET", "LAG", "ISR")
TIMED_HEADS = (*HEADS[:-1], "BEHIND", HEADS[-1], "SINCE")


class ReplicaRow(NamedTuple):
    cells: tuple[str, ...]
    """One cell for each column of `HEADS`."""
    behind: str
    since: str
    is_leader: bool
    is_in_sync: bool
    is_behind: bool


def timed_cells(row: ReplicaRow) -> tuple[str, ...]:
    """One cell for each column of `TIMED_HEADS`."""
    return (*row.cells[:-1], row.behind, row.cells[-1], row.since)


class Memory:
    """Computes how long each replica has been in the ISR, out of it, or behind its leader."""

    def __init__(self, history: ReplicaHistory) -> None:
        self._history = history
        self._look = self._first_look = LookTime(0, 0)
        self._watched: dict[tuple[TopicPartition, NodeId], IsrMembership] = {}
        self._leader_ends: dict[TopicPartition, LeaderEnds] = {}

    def note(self, partitions: Sequence[PartitionOffsets], look: LookTime) -> None:
        """Add an observation, and forget partitions that are not in it."""
        if self._first_look.ended == 0:
            self._first_look = look
        self._look = look
        before, self._watched = self._watched, {}
        ends_before, self._leader_ends = self._leader_ends, {}
        for one in partitions:
            for replica in one.replicas:
                key = (one.partition, replica.node)
                was = before.get(key)
                if was is None or was.is_in_sync is not replica.is_in_sync:
                    was = IsrMembership(replica.is_in_sync, look.ended)
                self._watched[key] = was
            ends = self._leader_ends[one.partition] = ends_before.get(one.partition, LeaderEnds())
            ends.note(one.leader, one.leader_end, one.follower_ends, look)

    def since(self, one: PartitionOffsets, replica: ReplicaOffsets) -> str:
        """How long the replica has been in the ISR or out of the ISR, and why."""
        told = self._history.of(one.partition).members.get(replica.node)
        if told is not None and told.is_in_sync is replica.is_in_sync:
            age = wording.duration(max(0, self._look.ended - told.since))
            return age if told.is_in_sync else f"{age}, {told.reason}"
        begins_at = self._history.begins_at
        if begins_at is not None and told is None and self._has_always_been_so(one, replica):
            return f"> {wording.duration(max(0, self._look.ended - begins_at))}"
        if self._look is self._first_look:
            return "-"
        watched = self._watched[one.partition, replica.node]
        return wording.duration(max(0, self._look.ended - watched.since))

    def _has_always_been_so(self, one: PartitionOffsets, replica: ReplicaOffsets) -> bool:
        """Whether all observations and reports show the same ISR membership of the replica."""
        if self._watched[one.partition, replica.node].since != self._first_look.ended:
            return False
        history = self._history.of(one.partition)
        if replica.node == one.leader:
            return history.election is None
        follower = history.followers.get(replica.node)
        return follower is not None and follower.is_in_sync is replica.is_in_sync

    def behind(self, one: PartitionOffsets, replica: ReplicaOffsets) -> str:
        """How long the replica has lacked part of the leader's log."""
        if one.leader_end is None:
            return "-"
        if one.lag(replica) == 0:
            return "0 ms"
        return self._proof(one, replica).words(self._look)

    def _proof(self, one: PartitionOffsets, replica: ReplicaOffsets) -> Proof:
        end = replica.log_end_offset
        seen = Proof() if end is None else self._leader_ends[one.partition].prove(end)
        told = self._history.of(one.partition).followers.get(replica.node)
        if told is None or told.leader != one.leader or told.told_at > self._look.began:
            return seen
        return seen.joined(proven_by_leader(told, end))


def rows(partitions: Sequence[PartitionOffsets], memory: Memory | None) -> Iterator[ReplicaRow]:
    """One row for each replica, the leader first."""
    for one in partitions:
        leader_first = sorted(one.replicas, key=lambda replica: replica.node != one.leader)
        for index, replica in enumerate(leader_first):
            yield _row(one, replica, index == 0, memory)


def _row(
    one: PartitionOffsets, replica: ReplicaOffsets, is_first: bool, memory: Memory | None
) -> ReplicaRow:
    leader = str(one.leader) if one.leader != NO_NODE else "none"
    about = (str(one.partition), leader, _number(one.high_watermark)) if is_first else ("",) * 3
    lag = one.lag(replica)
    return ReplicaRow(
        (
            *about,
            str(replica.node),
            _number(replica.log_end_offset),
            _number(lag),
            "in" if replica.is_in_sync else "OUT",
        ),
        behind="" if memory is None else memory.behind(one, replica),
        since="" if memory is None else memory.since(one, replica),
        is_leader=replica.node == one.leader,
        is_in_sync=replica.is_in_sync,
        is_behind=bool(lag),
    )


def _number(offset: Offset | None) -> str:
    return "-" if offset is None else str(offset)
