"""Plans of `tidelog reassign`: reads, checks and prints them, and proposes new ones."""

import json
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from tidelog.cli.json_file import read_json
from tidelog.client.administration.reassignment_admin import ReplicaPlace
from tidelog.model.ids import NodeId, TopicPartition
from tidelog.model.user_error import UserError

ANY_LOG_DIR = "any"

T = TypeVar("T")
Assignment = Mapping[TopicPartition, Sequence[NodeId]]


class ReassignmentPlan(NamedTuple):
    targets: list[tuple[TopicPartition, list[NodeId]]]
    """As they stand in the file, so that duplicates are found."""
    directories: dict[ReplicaPlace, str]
    """The log directories of replicas, where the file names one."""

    @property
    def replicas(self) -> dict[TopicPartition, list[NodeId]]:
        return dict(self.targets)

    @property
    def topics(self) -> list[str]:
        return sorted({where.topic for where, _ in self.targets})


def read_plan(path: str) -> ReassignmentPlan:
    data = read_json(path)
    data.check_version()
    plan = ReassignmentPlan([], {})
    for one in data.objects("partitions") if "partitions" in data else ():
        where = one.partition()
        replicas = one.items("replicas", int)
        paths = one.items("log_dirs", str) if "log_dirs" in one else [ANY_LOG_DIR] * len(replicas)
        if len(replicas) != len(paths):
            raise UserError(
                f"Size of replicas list {replicas} is different from size of log dirs list "
                f"[{', '.join(paths)}] for partition {where}"
            )
        plan.targets.append((where, replicas))
        for broker, path_ in zip(replicas, paths, strict=True):
            if path_ != ANY_LOG_DIR:
                plan.directories[ReplicaPlace(broker, where)] = path_
    return plan


def check_plan(plan: ReassignmentPlan) -> None:
    """Refuse a plan that cannot be executed."""
    if not plan.targets:
        raise UserError("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in plan.targets):
        raise UserError("Partition replica list cannot be empty")
    if repeated := duplicates([where for where, _ in plan.targets]):
        names = ",".join(map(str, repeated))
        raise UserError(f"Partition reassignment contains duplicate topic partitions: {names}")
    wrong = [
        f"{where} contains multiple entries for {','.join(map(str, twice))}"
        for where, replicas in plan.targets
        if (twice := duplicates(replicas))
    ]
    if wrong:
        raise UserError(
            f"Partition replica lists may not contain duplicate entries: {'. '.join(wrong)}"
        )


def duplicates(items: Sequence[T]) -> list[T]:
    return [one for one in dict.fromkeys(items) if items.count(one) > 1]


def plan_json(replicas: Assignment, directories: Mapping[ReplicaPlace, str]) -> str:
    """The assignment in the format of a plan; unknown log directories are `any`."""
    partitions = [
        {
            "topic": where.topic,
            "partition": where.partition,
            "replicas": list(brokers),
            "log_dirs": [
                directories.get(ReplicaPlace(broker, where), ANY_LOG_DIR) for broker in brokers
            ],
        }
        for where, brokers in sorted(replicas.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def read_topics(path: str) -> list[str]:
    """The topics of --topics-to-move-json-file."""
    data = read_json(path)
    data.check_version()
    topics = [one.text("topic") for one in data.objects("topics")] if "topics" in data else []
    if twice := duplicates(topics):
        names = ", ".join(twice)
        raise UserError(f"List of topics to reassign contains duplicate entries: [{names}]")
    return topics


def proposal(
    current: Assignment, racks: Mapping[NodeId, str | None], dice: random.Random
) -> dict[TopicPartition, list[NodeId]]:
    """Spread the partitions of each topic over these brokers and over their racks."""
    ring = alternate_racks(racks)
    proposed = {}
    for topic in sorted({where.topic for where in current}):
        partitions = sorted(where for where in current if where.topic == topic)
        factor = len(current[partitions[0]])
        if factor > len(ring):
            raise UserError(
                f"The target replication factor of {factor} cannot be reached because only "
                f"{len(ring)} broker(s) are registered or some brokers have all their log "
                "directories cordoned."
            )
        start, shift = dice.randrange(len(ring)), dice.randrange(len(ring))
        for index, where in enumerate(partitions):
            lap = (start + index) // len(ring)
            first = (start + index) % len(ring)
            proposed[where] = _replicas(ring, racks, first, shift + lap, factor)
    return proposed


def alternate_racks(racks: Mapping[NodeId, str | None]) -> list[NodeId]:
    """The brokers in an order in which racks alternate."""
    turns: dict[str | None, int] = {}
    order = []
    for broker in sorted(racks):
        turns[racks[broker]] = turn = turns.get(racks[broker], -1) + 1
        order.append((turn, racks[broker] or "", broker))
    return [broker for _, _, broker in sorted(order)]


def _replicas(
    ring: Sequence[NodeId],
    racks: Mapping[NodeId, str | None],
    first: int,
    shift: int,
    factor: int,
) -> list[NodeId]:
    """The leader, and followers in the racks that have the fewest replicas so far."""
    size = len(ring)
    others = [ring[(first + 1 + (shift + step) % (size - 1)) % size] for step in range(size - 1)]
    chosen = [ring[first]]
    while len(chosen) < factor:
        used = [racks[broker] for broker in chosen]
        follower = min(others, key=lambda broker: used.count(racks[broker]))
        others.remove(follower)
        chosen.append(follower)
    return chosen
