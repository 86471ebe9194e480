"""Places new replicas: leaders go round-robin over the brokers, replicas go to different racks.

Brokers form a ring in which racks alternate. Each new partition takes the next broker as leader, so
the leader counts of two brokers differ by at most one. On each lap around the ring, the distance
from a leader to its first follower changes, so that the load of a failed broker spreads over many
brokers.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple
from uuid import UUID

from tidelog.controller.decide.decision import Refusal
from tidelog.controller.image.image import (
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    BrokerImage,
    ClusterImage,
)
from tidelog.model.dice import Dice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, TopicId
from tidelog.protocol.metadata.metadata_records import PartitionRecord


@dataclass(frozen=True, slots=True)
class _Ring:
    active: tuple[BrokerImage, ...]
    fenced: tuple[BrokerImage, ...]
    """Fenced brokers. They never become leaders, and active brokers in new racks are chosen first.
    """
    start: int
    shift: int


def place(
    image: ClusterImage, dice: Dice, first: int, count: int, replication_factor: int
) -> list[tuple[NodeId, ...]] | Refusal:
    """Choose replicas, leader first, for `count` partitions starting at index `first`."""
    if replication_factor > len(image.brokers):
        return _unable(
            replication_factor,
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {len(image.brokers)} broker(s) are registered "
            "or some brokers have all their log directories cordoned.",
        )
    active = [broker for broker in image.brokers.values() if broker.is_active]
    if not active:
        return _unable(replication_factor, "All brokers are currently fenced.")
    inactive = [broker for broker in image.brokers.values() if not broker.is_active]
    ring = _Ring(
        active=tuple(_alternate_racks(active)),
        fenced=tuple(_alternate_racks(inactive)),
        start=dice.below(len(active)),
        shift=dice.below(len(active)),
    )
    size, placed = len(active), {}
    chosen = []
    for index in range(first, first + count):
        # The placement repeats after `size * (size - 1)` partitions, so each choice is computed
        # once and then reused.
        turn = index % (size * max(size - 1, 1))
        if turn not in placed:
            placed[turn] = _replicas(ring, index, replication_factor)
        chosen.append(placed[turn])
    return chosen


def _unable(replication_factor: int, reason: str) -> Refusal:
    return Refusal(
        ErrorCode.invalid_replication_factor,
        f"Unable to replicate the partition {replication_factor} time(s): {reason}",
    )


def _alternate_racks(brokers: Collection[BrokerImage]) -> Iterator[BrokerImage]:
    """Yield one broker of each rack in turn, ordered by rack and id."""
    racks: dict[str, list[BrokerImage]] = {}
    for broker in sorted(brokers, key=lambda one: (one.rack or "", one.id)):
        racks.setdefault(broker.rack or "", []).append(broker)
    for layer in zip_longest(*racks.values()):
        yield from (broker for broker in layer if broker is not None)


def _replicas(ring: _Ring, index: int, replication_factor: int) -> tuple[NodeId, ...]:
    size = len(ring.active)
    lap, position = divmod(index, size)
    leader_at = (ring.start + position) % size
    chosen = [ring.active[leader_at]]
    behind = max(size - 1, 1)
    followers = [
        ring.active[(leader_at + 1 + (ring.shift + lap + step) % behind) % size]
        for step in range(size - 1)
    ]
    _choose(chosen, followers, replication_factor, new_racks_only=True)
    _choose(chosen, ring.fenced, replication_factor, new_racks_only=True)
    _choose(chosen, followers, replication_factor, new_racks_only=False)
    _choose(chosen, ring.fenced, replication_factor, new_racks_only=False)
    return tuple(broker.id for broker in chosen)


def _choose(
    chosen: list[BrokerImage],
    candidates: Collection[BrokerImage],
    replication_factor: int,
    *,
    new_racks_only: bool,
) -> None:
    racks = {broker.rack for broker in chosen}
    for broker in candidates:
        if len(chosen) == replication_factor:
            return
        if broker in chosen or (new_racks_only and broker.rack in racks):
            continue
        chosen.append(broker)
        racks.add(broker.rack)


def check_assignment(
    image: ClusterImage, replicas: tuple[NodeId, ...], replication_factor: int | None
) -> Refusal | None:
    """Validate a replica assignment chosen by a client."""
    problem = _assignment_problem(image, replicas, replication_factor)
    if problem is None:
        return None
    return Refusal(
        ErrorCode.invalid_replica_assignment, f"The manual partition assignment {problem}"
    )


def _assignment_problem(
    image: ClusterImage, replicas: tuple[NodeId, ...], replication_factor: int | None
) -> str | None:
    if not replicas:
        return "includes an empty replica list."
    previous: NodeId | None = None
    for broker in sorted(replicas):
        if broker not in image.brokers:
            return f"includes broker {broker}, but no such broker is registered."
        if broker == previous:
            return f"includes the broker {broker} more than once."
        previous = broker
    if replication_factor not in (None, len(replicas)):
        return (
            f"includes a partition with {len(replicas)} replica(s), but this is not consistent "
            f"with previous partitions, which have {replication_factor} replica(s)."
        )
    return None


class FirstState(NamedTuple):
    """The in-sync set and the directories of a new partition on given replicas."""

    isr: tuple[NodeId, ...]
    directories: tuple[UUID, ...]


def place_of(image: ClusterImage, replicas: tuple[NodeId, ...]) -> FirstState | None:
    """The first state of a partition on these replicas; None if no replica is active."""
    isr = tuple(replica for replica in replicas if image.is_active(replica))
    if not isr:
        return None
    return FirstState(isr, tuple(default_directory(image, replica) for replica in replicas))


def new_partition(
    topic_id: TopicId, index: int, replicas: tuple[NodeId, ...], place: FirstState
) -> PartitionRecord:
    """The record of a new partition, led by its first active replica."""
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=place.isr,
        leader=place.isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=place.directories,
    )


def default_directory(image: ClusterImage, broker: NodeId) -> UUID:
    """The directory of a new replica; unassigned if the broker has several directories."""
    registered = image.brokers.get(broker)
    if registered is None or not registered.directories:
        return MIGRATING_DIRECTORY
    if len(registered.directories) == 1:
        return registered.directories[0]
    return UNASSIGNED_DIRECTORY
