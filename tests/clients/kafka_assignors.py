"""Groups for the assignors, and the assignments that Kafka's own assignors compute for them."""

import base64
import random
import subprocess
from pathlib import Path
from uuid import UUID

from tests.clients.java import JVM, QUIET

from tidelog.coordination.groups.consumer.assignors.subscriptions import (
    Assignment,
    GroupSubscription,
    MemberSubscription,
)

PROGRAM = Path(__file__).with_name("Assignors.java")


def random_group(dice: random.Random) -> GroupSubscription:
    """A group with a valid previous assignment, which may contain topics that are gone."""
    topics = [UUID(int=dice.getrandbits(128), version=4) for _ in range(dice.randint(1, 15))]
    counts = {topic: dice.choice((1, 2, 3, 7, 20, 64)) for topic in topics}
    size = dice.choice((1, 2, 3, 5, 12, 13, 30))
    is_homogeneous = dice.random() < 0.5
    shared = dice.sample(topics, dice.randint(0, len(topics)))
    members = []
    unowned = [(topic, partition) for topic in topics for partition in range(counts[topic])]
    dice.shuffle(unowned)
    for index in range(size):
        subscribed = shared if is_homogeneous else dice.sample(topics, dice.randint(0, len(topics)))
        assigned: dict[UUID, list[int]] = {}
        for _ in range(dice.choice((0, 0, 1, 4, 25))):
            if unowned:
                topic, partition = unowned.pop()
                assigned.setdefault(topic, []).append(partition)
        members.append(
            MemberSubscription(
                base64.urlsafe_b64encode(dice.randbytes(16)).decode().rstrip("="),
                f"instance-{index}" if dice.random() < 0.3 else None,
                tuple(subscribed),
                {topic: tuple(sorted(partitions)) for topic, partitions in assigned.items()},
            )
        )
    return GroupSubscription(members, is_homogeneous, counts)


def kafka_assignments(
    libs: Path, cases: list[tuple[str, GroupSubscription]]
) -> list[dict[str, Assignment]]:
    """What Kafka's assignor of each name computes for its group."""
    lines = [_line(name, group) for name, group in cases]
    ran = subprocess.run(
        ["java", *JVM, *QUIET, "-cp", f"{libs}/*", str(PROGRAM)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    answers = ran.stdout.splitlines()
    assert len(answers) == len(cases)
    return [
        _parsed(answer, list(group.partition_counts))
        for answer, (_, group) in zip(answers, cases, strict=True)
    ]


def _line(name: str, group: GroupSubscription) -> str:
    topics = list(group.partition_counts)
    number = {topic: str(index) for index, topic in enumerate(topics)}
    described = ",".join(
        f"{_kafka_uuid(topic)}:{group.partition_counts[topic]}" for topic in topics
    )
    members = [
        "/".join(
            (
                member.member_id,
                member.instance_id or "-",
                ",".join(number[topic] for topic in member.topics),
                ",".join(
                    f"{number[topic]}:{'+'.join(map(str, partitions))}"
                    for topic, partitions in member.assigned.items()
                ),
            )
        )
        for member in group.members
    ]
    kind = "homogeneous" if group.is_homogeneous else "heterogeneous"
    return "\t".join((name, kind, described, *members))


def _parsed(answer: str, topics: list[UUID]) -> dict[str, Assignment]:
    assignments: dict[str, Assignment] = {}
    for field in answer.split("\t"):
        member_id, entries = field.split("/")
        assignments[member_id] = {
            topics[int(entry.split(":")[0])]: tuple(map(int, entry.split(":")[1].split("+")))
            for entry in entries.split(",")
            if entry
        }
    return assignments


def _kafka_uuid(topic: UUID) -> str:
    return base64.urlsafe_b64encode(topic.bytes).decode().rstrip("=")
