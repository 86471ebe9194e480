"""Moving replicas are limited to a rate, and do not slow down in-sync replicas."""

import pytest
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from tests.sim.messages import ask, batch, produce_to
from tests.sim.reassignments import reassign
from tests.sim.replication import TOPIC, leader_of, make_topic, newest
from tests.sim.talk import Talk, await_true, running

from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.cluster import SimCluster

BROKER, TOPICS = 4, 2
RATE = 20_000
RECORDS, SIZE = 40, 10_000


def alter(cluster: SimCluster, kind: int, name: str, **configs: str) -> None:
    changes = tuple(
        AlterableConfig(name=key.replace("_", "."), config_operation=0 if value else 1, value=value)
        for key, value in configs.items()
    )
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)
    asked = int(name) if kind == BROKER else cluster.up[0].id
    answer = Talk(cluster, asked).ask(ask(44, resources=(resource,), validate_only=False))
    assert answer.responses[0].error_code is ErrorCode.none, answer


def write(cluster: SimCluster, value: bytes) -> ErrorCode:
    asked = produce_to(TOPIC, batch(value), timeout_ms=1_500)
    [(_, [produced])] = Talk(cluster, leader_of(cluster).id).ask(asked).topics
    return produced.error


def written(seed: int) -> SimCluster:
    """A topic with two in-sync replicas that take a long time to move at the limited rate."""
    cluster = running(seed, replica_fetch_max_bytes=str(SIZE))
    make_topic(cluster, (1, 2))
    for _ in range(RECORDS):
        assert write(cluster, b"x" * SIZE) is ErrorCode.none
    return cluster


@pytest.mark.parametrize("side", ["leader", "follower"])
@pytest.mark.parametrize("replicas", ["*", "0:1,0:2,0:3"])
def test_a_move_takes_as_long_as_its_rate_says(seed: int, side: str, replicas: str) -> None:
    cluster = written(seed)
    alter(cluster, TOPICS, TOPIC, **{f"{side}_replication_throttled_replicas": replicas})
    for node in (1, 2, 3):
        alter(cluster, BROKER, str(node), **{f"{side}_replication_throttled_rate": str(RATE)})
    began = cluster.world.now
    Talk(cluster, 1).begin(reassign(TOPIC, [1, 2, 3]))
    cluster.world.run(2_000)
    assert 3 not in newest(cluster).isr
    assert write(cluster, b"meanwhile") is ErrorCode.none, "those in sync are held up"
    await_true(cluster, lambda: 3 in newest(cluster).isr)
    expected_ms = RECORDS * SIZE * 1_000 // RATE
    assert expected_ms * 0.7 < cluster.world.now - began < expected_ms * 1.5


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttle_that_is_taken_away_holds_nobody_back(seed: int, side: str) -> None:
    cluster = written(seed)
    alter(cluster, TOPICS, TOPIC, **{f"{side}_replication_throttled_replicas": "*"})
    for node in (1, 2, 3):
        alter(cluster, BROKER, str(node), **{f"{side}_replication_throttled_rate": "1"})
    Talk(cluster, 1).begin(reassign(TOPIC, [1, 2, 3]))
    cluster.world.run(5_000)
    assert 3 not in newest(cluster).isr
    alter(cluster, TOPICS, TOPIC, **{f"{side}_replication_throttled_replicas": ""})
    await_true(cluster, lambda: 3 in newest(cluster).isr, limit_ms=3_000)
