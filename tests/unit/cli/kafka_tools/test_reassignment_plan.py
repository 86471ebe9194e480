"""Proposed plans spread leaders over brokers, and replicas over racks."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.cli.kafka_tools.reassignment_plan import alternate_racks, plan_json, proposal
from tidelog.cli.kafka_tools.replication_throttles import moves_of
from tidelog.client.admin import Reassignment
from tidelog.client.administration.reassignment_admin import ReplicaPlace
from tidelog.model.ids import TopicPartition
from tidelog.model.user_error import UserError


@given(
    racks=st.dictionaries(
        st.integers(0, 20), st.sampled_from(["a", "b", "c"]), min_size=3, max_size=9
    ),
    count=st.integers(1, 40),
    seed=st.integers(0, 1000),
)
def test_leaders_and_racks_are_balanced(racks: dict[int, str], count: int, seed: int) -> None:
    current = {TopicPartition("t", number): [1, 2, 3] for number in range(count)}
    proposed = proposal(current, racks, random.Random(seed))
    assert proposed.keys() == current.keys()
    leaders = Counter(replicas[0] for replicas in proposed.values())
    assert max(leaders.values()) - min(leaders.get(broker, 0) for broker in racks) <= 1
    for replicas in proposed.values():
        assert len(set(replicas)) == 3
        used = Counter(racks[broker] for broker in replicas)
        assert len(used) == min(3, len(set(racks.values())))


def test_racks_alternate() -> None:
    assert alternate_racks({1: "a", 2: "a", 3: "b", 4: "b"}) == [1, 3, 2, 4]
    assert alternate_racks({2: None, 1: None}) == [1, 2]


def test_too_few_brokers_are_refused() -> None:
    with pytest.raises(UserError, match="replication factor of 2 cannot be reached because only 1"):
        proposal({TopicPartition("t", 0): [1, 2]}, {1: None}, random.Random(0))


def test_a_plan_names_the_log_directories_that_are_known() -> None:
    where = TopicPartition("t", 0)
    assert plan_json({where: [1, 2]}, {ReplicaPlace(2, where): "/d"}) == (
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],'
        '"log_dirs":["any","/d"]}]}'
    )


def test_throttled_moves_start_at_the_replicas_before_the_reassignment() -> None:
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    ongoing = {first: Reassignment(adding=(3,), removing=(1,), replicas=(3, 1, 2))}
    moves = moves_of(ongoing, {second: [2, 3]}, {second: [1, 2]})
    assert moves == {first: ({1, 2}, {3}), second: ({1, 2}, {3})}
    again = moves_of(ongoing, {first: [3, 2]}, {first: [3, 1, 2]})
    assert again == {first: ({1, 2}, {3})}
