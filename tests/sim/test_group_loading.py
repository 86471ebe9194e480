"""A coordinator loads a long log in a job, and serves the group when the whole log is loaded."""

from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_fetch.v9.request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.sim.cluster_steps import created
from tests.sim.messages import ask, batch, create_topic, fetch_from, produce_to
from tests.sim.talk import Talk, await_ready, await_true, running

from tidelog.coordination.partitioning import partition_for
from tidelog.log.partition import PartitionLog
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.node.coordinators.shard_loading import ReplayRecords
from tidelog.node.inspection import NodeInspection
from tidelog.sim.machines.cluster import SimCluster

FIND_COORDINATOR = 10
API_VERSIONS = ask(18, client_software_name="test", client_software_version="1")
PARTITIONS = 400
ROUNDS = 3
SHARDS = 4


def commit(offset: int) -> OffsetCommitRequest:
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=None
        )
        for index in range(PARTITIONS)
    )
    topic = OffsetCommitRequestTopic(name="orders", partitions=partitions)
    return OffsetCommitRequest(group_id="readers", member_id="", topics=(topic,))


def fetched(talk: Talk, group_id: str = "readers") -> tuple[ErrorCode, set[int]]:
    """The error and the offsets that OffsetFetch returns."""
    topic = OffsetFetchRequestTopics(name="orders", partition_indexes=tuple(range(PARTITIONS)))
    group = OffsetFetchRequestGroup(group_id=group_id, topics=(topic,))
    answer = talk.ask(OffsetFetchRequest(groups=(group,), require_stable=False), version=9)
    [found] = answer.groups
    offsets = {one.committed_offset for topic in found.topics for one in topic.partitions}
    return found.error_code, offsets


def with_a_long_log(seed: int, rounds: int = ROUNDS, **settings: str) -> SimCluster:
    cluster = running(seed, nodes=1, **settings)
    talk = Talk(cluster, 1)
    assert created(talk.ask(create_topic("orders", PARTITIONS)))
    keys = ask(FIND_COORDINATOR, key_type=0, coordinator_keys=("readers",))
    await_true(cluster, lambda: talk.ask(keys).coordinators[0].error_code is ErrorCode.none)
    await_true(cluster, lambda: fetched(talk)[0] is ErrorCode.none)
    for offset in range(1, rounds + 1):
        answer = talk.ask(commit(offset), version=9)
        assert {one.error_code for one in answer.topics[0].partitions} == {ErrorCode.none}
    return cluster


def test_f71_a_coordinator_that_loads_says_so_and_others_are_served() -> None:
    cluster = with_a_long_log(seed=1)
    host = cluster.hosts[1]
    host.kill()
    host.start()
    await_ready(cluster)
    await_true(cluster, lambda: len(host.jobs) > 0)
    talk, answers, served = Talk(cluster, 1), [], 0
    while not answers or answers[-1][0] is not ErrorCode.none:
        answers.append(fetched(talk))
        assert talk.ask(API_VERSIONS).api_keys
        served += 1
    loading, (_, offsets) = answers[:-1], answers[-1]
    assert {error for error, _ in loading} == {ErrorCode.coordinator_load_in_progress}
    assert offsets == {ROUNDS}, "all of it, and nothing older"
    assert served > 3


def test_f71_other_groups_and_records_are_served_while_a_coordinator_loads() -> None:
    assert partition_for("readers", SHARDS) != partition_for("others", SHARDS)
    settings = {"offsets_topic_num_partitions": f"{SHARDS}"}
    cluster = with_a_long_log(seed=1, rounds=8, **settings)
    host = cluster.hosts[1]
    host.kill()
    host.start()
    await_ready(cluster)
    await_true(cluster, lambda: host.jobs.count(ReplayRecords) > 0)
    talk, produced, others, read = Talk(cluster, 1), 0, 0, 0
    while fetched(talk)[0] is not ErrorCode.none:
        [(_, [written])] = talk.ask(produce_to("orders", batch(b"new"))).topics
        produced += written.error is ErrorCode.none
        [(_, [got])] = talk.ask(fetch_from("orders")).topics
        read += got.records is not None
        others += fetched(talk, "others")[0] is ErrorCode.none
    assert min(produced, read, others) > 1


def test_f71_a_node_that_dies_while_it_loads_loads_again() -> None:
    for seed in range(2):
        cluster = with_a_long_log(seed)
        host = cluster.hosts[1]
        host.kill()
        host.start()
        await_true(cluster, lambda host=host: len(host.jobs) > 0)
        cluster.world.run(1 + cluster.world.dice.below(60))
        host.kill()
        assert len(host.jobs) == 0
        host.start()
        await_ready(cluster)
        talk = Talk(cluster, 1)
        await_true(cluster, lambda talk=talk: fetched(talk)[0] is ErrorCode.none)
        assert fetched(talk) == (ErrorCode.none, {ROUNDS})


def test_the_log_of_committed_offsets_is_compacted_and_a_coordinator_loads_what_is_left() -> None:
    rounds = 80
    cluster = with_a_long_log(
        seed=2,
        rounds=rounds,
        log_cleaner_backoff_ms="50",
        offsets_topic_num_partitions="1",
        offsets_topic_segment_bytes="1048576",
    )
    host = cluster.hosts[1]
    await_true(cluster, lambda: offsets_log(cluster).was_cleaned)
    cluster.world.run(2_000)
    # Each round takes about 22 kB. What is left are one round and the active segment.
    assert offsets_log(cluster).size < 900_000
    assert offsets_log(cluster).log_end_offset >= rounds * PARTITIONS
    host.kill()
    host.start()
    await_ready(cluster)
    talk = Talk(cluster, 1)
    await_true(cluster, lambda: fetched(talk)[0] is ErrorCode.none)
    assert fetched(talk) == (ErrorCode.none, {rounds})


def offsets_log(cluster: SimCluster) -> PartitionLog:
    view = NodeInspection(cluster.hosts[1].node)
    replica = view.replica(TopicPartition("__consumer_offsets", 0))
    assert replica is not None
    return replica.log
