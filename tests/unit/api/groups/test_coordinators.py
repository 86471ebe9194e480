"""FindCoordinator: the broker that coordinates a group."""

from uuid import UUID

import pytest
from tests.unit.api.support import (
    OFFSETS_ID,
    Effects,
    ask,
    broker,
    drive,
    image,
    partition,
    request,
    topic,
)

from tidelog.api.groups import coordinators
from tidelog.model.errors import ErrorCode

GROUP, TRANSACTION, SHARE = 0, 1, 2
OFFSETS = topic("__consumer_offsets", OFFSETS_ID, partition(1), partition(2))


def find(*keys: str, version: int = 6, key_type: int = GROUP, offsets=OFFSETS, **changes):
    message = ask(10, key_type=key_type, coordinator_keys=keys)
    asked = request(message, version, **{"image": image(offsets), **changes})
    return drive(coordinators.handle(asked)).coordinators


def test_the_leader_of_the_groups_partition():
    # Java's hash codes of "a" and "b" are 97 and 98.
    found = find("a", "b")

    assert [(c.key, c.node_id, c.host, c.port) for c in found] == [
        ("a", 2, "host2", 9093),
        ("b", 1, "host1", 9092),
    ]
    assert {(c.error_code, c.error_message) for c in found} == {(ErrorCode.none, "")}


def test_old_versions_say_none_of_a_success():
    assert [c.error_message for c in find("a", version=3)] == ["NONE"]


@pytest.mark.parametrize(
    "changes",
    [
        {"offsets": topic("__consumer_offsets", OFFSETS_ID, partition(-1))},
        {"image": image(OFFSETS, brokers={1: broker(1, fenced=True)})},
        {"listener": "INSIDE"},
    ],
)
def test_a_leader_out_of_reach(changes):
    [found] = find("b", **changes)

    assert (found.error_code, found.node_id) == (ErrorCode.coordinator_not_available, -1)
    assert found.error_message == "The coordinator is not available."


def test_the_first_of_all_requests_creates_the_offsets_topic():
    asked = request(ask(10, coordinator_keys=("b",)), 6)

    def created(_: object) -> None:
        asked.image = image(OFFSETS)

    effects = Effects(created)
    [found] = effects.drive(coordinators.handle(asked)).coordinators

    [wanted] = effects.asked[0].request.topics
    assert (wanted.name, wanted.num_partitions, wanted.replication_factor) == (
        "__consumer_offsets",
        50,
        3,
    )
    assert (found.error_code, found.node_id) == (ErrorCode.none, 1)


def test_an_offsets_topic_that_cannot_be_created():
    [found] = drive(
        coordinators.handle(request(ask(10, coordinator_keys=("b",)), 6)), None
    ).coordinators

    assert found.error_code is ErrorCode.coordinator_not_available


def test_the_leader_of_the_partition_of_a_transactional_id():
    state = topic("__transaction_state", UUID(int=8), partition(2), partition(1))
    found = find("a", "b", key_type=TRANSACTION, offsets=state)

    assert [(c.key, c.node_id, c.error_code) for c in found] == [
        ("a", 1, ErrorCode.none),
        ("b", 2, ErrorCode.none),
    ]


def test_the_first_transactional_id_creates_the_state_topic():
    asked = request(ask(10, coordinator_keys=("b",), key_type=TRANSACTION), 6)
    effects = Effects(None)
    [found] = effects.drive(coordinators.handle(asked)).coordinators

    [wanted] = effects.asked[0].request.topics
    configs = {one.name: one.value for one in wanted.configs}
    assert (wanted.name, wanted.num_partitions, wanted.replication_factor) == (
        "__transaction_state",
        50,
        3,
    )
    assert (configs["cleanup.policy"], configs["min.insync.replicas"]) == ("compact", "2")
    assert found.error_code is ErrorCode.coordinator_not_available


@pytest.mark.parametrize("key_type", [SHARE, 9])
def test_other_kinds_of_keys(key_type: int):
    [found] = find("x", key_type=key_type)

    assert (found.error_code, found.node_id, found.host) == (ErrorCode.invalid_request, -1, "")
