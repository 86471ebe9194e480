"""A search by time runs as a job, so the node serves other clients. A crash may interrupt it."""

import pytest
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsTopic
from tests.sim.cluster_steps import created
from tests.sim.messages import ask, batch, create_topic, fetch_from, produce_to
from tests.sim.talk import Asked, Talk, await_ready, await_true, running

from tidelog.model.errors import ErrorCode
from tidelog.protocol.records.records import Record, build_batch
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.world import EPOCH_MS

MANY = 20_000


def searched(timestamp: int) -> object:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name="orders", partitions=(partition,))
    return ask(2, replica_id=-1, isolation_level=0, topics=(topic,))


def found(asked: Asked) -> tuple[ErrorCode, int]:
    [one] = asked.answer.topics[0].partitions
    return one.error_code, one.offset


def with_a_large_batch(seed: int) -> SimCluster:
    cluster = running(seed, nodes=1)
    talk = Talk(cluster, 1)
    assert created(talk.ask(create_topic("orders", flush_messages="1")))
    records = [Record(None, b"x" * 10, EPOCH_MS + number) for number in range(MANY)]
    answer = talk.ask(produce_to("orders", build_batch(records, compression="gzip")))
    [(_, [produced])] = answer.topics
    assert produced.error is ErrorCode.none
    return cluster


def test_f64_others_are_served_while_a_search_unpacks_a_batch() -> None:
    cluster = with_a_large_batch(seed=1)
    asked = Talk(cluster, 1).begin(searched(EPOCH_MS + MANY - 1))
    await_true(cluster, lambda: len(cluster.hosts[1].jobs) == 1)
    bystander, served = Talk(cluster, 1), 0
    while not asked.is_done:
        assert bystander.ask(fetch_from("orders")).topics
        served += 1
    assert served > 3
    assert found(asked) == (ErrorCode.none, MANY - 1)
    assert len(cluster.hosts[1].jobs) == 0


@pytest.mark.parametrize("kind", ["kill", "lose_power"])
def test_f64_a_node_that_dies_within_a_search_finds_the_same_later(kind: str) -> None:
    for seed in range(5):
        cluster = with_a_large_batch(seed)
        host = cluster.hosts[1]
        asked = Talk(cluster, 1, patience_ms=2_000).begin(searched(EPOCH_MS + MANY // 2))
        await_true(cluster, lambda host=host: len(host.jobs) == 1)
        cluster.world.run(1 + cluster.world.dice.below(20))
        assert not asked.is_done
        getattr(host, kind)()
        assert len(host.jobs) == 0
        cluster.world.run(5_000)
        assert asked.answer is None
        host.start()
        await_ready(cluster)
        again = Talk(cluster, 1).begin(searched(EPOCH_MS + MANY // 2))
        await_true(cluster, lambda again=again: again.is_done)
        assert found(again) == (ErrorCode.none, MANY // 2)


def test_f64_nobody_searches_for_a_client_that_is_gone() -> None:
    cluster = with_a_large_batch(seed=2)
    host, talk = cluster.hosts[1], Talk(cluster, 1)
    talk.begin(searched(EPOCH_MS + MANY - 1))
    await_true(cluster, lambda: len(host.jobs) == 1)
    talk.close()
    cluster.world.run(10)
    assert len(host.jobs) == 0


# -- batches that are decompressed before they are appended ----------------------------------------

IN_DOUBT = build_batch([Record(b"k", None, EPOCH_MS)] * 30_000, compression="zstd")


def offset_of(asked: Asked) -> int:
    [(_, [one])] = asked.answer.topics
    assert one.error is ErrorCode.none
    return one.base_offset


def test_f64_a_batch_that_is_checked_first_keeps_its_place_before_the_next() -> None:
    cluster = running(seed=3, nodes=1)
    talk = Talk(cluster, 1)
    assert created(talk.ask(create_topic("orders")))
    wishes = [IN_DOUBT, batch(b"one"), IN_DOUBT, batch(b"two")]
    asked = [talk.begin(produce_to("orders", wish)) for wish in wishes]
    await_true(cluster, lambda: all(one.is_done for one in asked))
    assert [offset_of(one) for one in asked] == [0, 30_000, 30_001, 60_001]


def test_f64_a_node_that_dies_within_a_check_has_appended_nothing() -> None:
    for seed in range(5):
        cluster = running(seed, nodes=1)
        host = cluster.hosts[1]
        assert created(Talk(cluster, 1).ask(create_topic("orders", flush_messages="1")))
        cluster.world.run(100)
        asked = Talk(cluster, 1, patience_ms=2_000).begin(produce_to("orders", IN_DOUBT))
        await_true(cluster, lambda host=host: len(host.jobs) == 1)
        cluster.world.run(1 + cluster.world.dice.below(10))
        assert not asked.is_done
        host.kill()
        cluster.world.run(5_000)
        assert asked.answer is None
        host.start()
        await_ready(cluster)
        again = Talk(cluster, 1).begin(produce_to("orders", IN_DOUBT))
        await_true(cluster, lambda again=again: again.is_done)
        assert offset_of(again) == 0
