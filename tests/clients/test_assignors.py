"""The assignors of consumer groups give the same assignments as Kafka's."""

import random
from pathlib import Path

from tests.clients.kafka_assignors import kafka_assignments, random_group

from tidelog.coordination.groups.consumer.assignors import range as range_assignor
from tidelog.coordination.groups.consumer.assignors import uniform

ASSIGN = {"uniform": uniform.assign, "range": range_assignor.assign}


def test_assignors_agree_with_kafkas_on_random_groups(kafka_libs: Path) -> None:
    dice = random.Random(848)
    cases = [(name, random_group(dice)) for _ in range(300) for name in ASSIGN]

    for (name, group), expected in zip(cases, kafka_assignments(kafka_libs, cases), strict=True):
        computed = ASSIGN[name](group)

        got = {member.member_id: computed.get(member.member_id, {}) for member in group.members}
        assert got == expected, f"{name}: {group}"
