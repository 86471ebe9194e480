"""The decision about a partition, compared with Apache Kafka 4.1's decision for the same input.

A line of the golden file has a state, a requested change and Kafka's record. The state is
replicas|isr|elr|last known elr|adding|removing|leader|recovery|min isr|elr on|election|may lead
The change is |isr|replicas|adding|removing|recovery|unclean shutdowns. The record follows after
`->`, and `-` in the record is an unchanged field.
"""

from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

import pytest

from tidelog.controller.decide.partition_change import (
    Election,
    ElectionRules,
    Target,
    change_partition,
)
from tidelog.controller.image.image import RECOVERING, PartitionImage
from tidelog.protocol.metadata.metadata_records import PartitionChangeRecord

GOLDEN = Path(__file__).parent / "data" / "kafka-4.1-partition-changes.txt"
TOPIC_ID = UUID(int=1)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number)


def _optional(text: str) -> tuple[int, ...] | None:
    return None if text == "-" else _numbers(text)


def _directory(broker: int) -> UUID:
    return UUID(int=1000 + broker)


def _decide(line: str) -> PartitionChangeRecord | None:
    f = line.split("|")
    replicas, may_lead = _numbers(f[0]), _numbers(f[11])
    state = PartitionImage(
        replicas=replicas,
        isr=_numbers(f[1]),
        elr=_numbers(f[2]),
        last_known_elr=_numbers(f[3]),
        adding=_numbers(f[4]),
        removing=_numbers(f[5]),
        leader=int(f[6]),
        leader_epoch=5,
        partition_epoch=7,
        directories=tuple(_directory(replica) for replica in replicas),
        leader_recovery_state=int(f[7]),
    )
    target = Target(
        isr=_optional(f[12]),
        replicas=_optional(f[13]),
        adding=_optional(f[14]),
        removing=_optional(f[15]),
        recovery_state=None if f[16] == "-" else int(f[16]),
        election=Election[f[10]],
        unclean_shutdown=frozenset(_optional(f[17]) or ()),
    )
    rules = ElectionRules(
        may_lead=lambda broker: broker in may_lead,
        min_isr=int(f[8]),
        elr_enabled=f[9] == "1",
        directory_of=_directory,
    )
    return change_partition(TOPIC_ID, 0, state, target, rules)


def _written(record: PartitionChangeRecord | None) -> str:
    def listed(members: Iterable[int] | None) -> str:
        return "-" if members is None else ",".join(str(member) for member in members)

    if record is None:
        return "none"
    directories = record.directories
    return "|".join(
        [
            listed(record.isr),
            str(record.leader),
            listed(record.replicas),
            listed(record.removing_replicas),
            listed(record.adding_replicas),
            str(record.leader_recovery_state),
            listed(record.eligible_leader_replicas),
            listed(record.last_known_elr),
            listed(None if directories is None else [one.int - 1000 for one in directories]),
        ]
    )


def _without_strangers(state: str, record: str) -> str:
    """Kafka's record without eligible leaders that are no longer replicas (ADR 13)."""
    if record == "none":
        return record
    before, f = state.split("|"), record.split("|")
    replicas = _optional(f[2]) or _numbers(before[0])
    elr = before[2] if f[6] == "-" else f[6]
    kept = ",".join(str(member) for member in _numbers(elr) if member in replicas)
    f[6] = "-" if kept == before[2] else kept
    return "|".join(f)


def test_it_decides_as_kafka_does() -> None:
    lines = GOLDEN.read_text().splitlines()
    assert len(lines) > 600
    for line in lines:
        state, expected = line.split(" -> ")
        assert _written(_decide(state)) == _without_strangers(state, expected), line


def test_an_election_that_may_lose_records_says_so() -> None:
    record = _decide("1,2,3|1|||||1|0|1|0|UNCLEAN|2,3|-|-|-|-|-|-")

    assert record is not None
    assert (record.leader, record.isr, record.leader_recovery_state) == (2, (2,), RECOVERING)


@pytest.mark.parametrize("election", list(Election))
def test_a_leader_that_the_last_known_one_replaces_unclean_stays_marked(election: Election) -> None:
    # The change requests the state RECOVERED. Kafka sets RECOVERED. Tidelog keeps RECOVERING,
    # because the election is unclean and records may be lost.
    record = _decide(f"1,3|||1|||-1|1|2|1|{election.name}|1,3|-|-|-|-|0|-")

    assert record is not None
    assert (record.leader, record.leader_recovery_state) == (1, -1)


def test_nobody_is_the_last_leader_of_a_partition_that_had_none() -> None:
    # In this case Kafka records -1 as the last known leader.
    record = _decide("5|5|||||-1|0|1|1|ONLINE|1||-|-|-|-|-")

    assert record is not None
    assert (record.isr, record.eligible_leader_replicas) == ((), (5,))
    assert record.last_known_elr is None
