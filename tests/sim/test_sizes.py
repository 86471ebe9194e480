"""Size limits between nodes: the limit for clients' requests does not limit replication."""

from collections.abc import Mapping
from itertools import count

from kio.schema.create_topics.v7.request import CreateTopicsRequest
from tests.sim.cluster_steps import created, images_agree
from tests.sim.messages import batch, create_topic, produce_to
from tests.sim.talk import Talk, await_ready, await_true, running

from tidelog.controller.image.image import PartitionImage
from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.cluster import SimCluster, node_settings
from tidelog.sim.machines.host import SimHost

TOPIC = "wide"
METADATA = "__cluster_metadata-0"


def make_topic(cluster: SimCluster, partitions: int, **configs: str) -> None:
    """Create a topic with one leader for all partitions, so one answer may hold all records."""
    make(cluster, create_topic(TOPIC, on=[(1, 2, 3)] * partitions, **configs))


def make(cluster: SimCluster, wish: CreateTopicsRequest) -> None:
    assert created(Talk(cluster, 1).ask(wish))
    await_true(cluster, lambda: all(TOPIC in host.node.image.topics for host in cluster.up))


def write(cluster: SimCluster, partition: int, size: int) -> ErrorCode:
    leader = placed(cluster)[partition].leader
    request = produce_to(TOPIC, {partition: batch(b"." * size)})
    answer = Talk(cluster, leader, patience_ms=30_000).ask(request)
    [(_, [produced])] = answer.topics
    return produced.error


def placed(cluster: SimCluster) -> Mapping[int, PartitionImage]:
    return cluster.hosts[1].node.image.topics[TOPIC].partitions


def out_of_sync(cluster: SimCluster) -> list[int]:
    """The partitions whose in-sync set is not full."""
    return [i for i, one in placed(cluster).items() if set(one.isr) != set(one.replicas)]


def catches_up_after_a_restart(cluster: SimCluster, partitions: int, size: int, each: int) -> None:
    behind = cluster.hosts[3]
    behind.kill()
    await_true(cluster, lambda: len(out_of_sync(cluster)) == partitions)
    for partition in range(partitions):
        for _ in range(each):
            assert write(cluster, partition, size) is ErrorCode.none

    behind.start()
    await_ready(cluster)

    await_true(cluster, lambda: not out_of_sync(cluster))
    disks = [host.disk for host in cluster.hosts.values()]
    for partition in range(partitions):
        file = f"{TOPIC}-{partition}/{0:020}.log"
        assert len({disk.read_file(file) for disk in disks}) == 1


def test_f60_a_restarted_broker_catches_up_though_an_answer_is_longer_than_a_request(
    seed: int,
) -> None:
    cluster = running(seed, socket_request_max_bytes="20000")
    make_topic(cluster, 12)
    catches_up_after_a_restart(cluster, 12, size=15_000, each=4)


def test_f60_a_leader_that_waits_for_bytes_sends_them_all_the_same(seed: int) -> None:
    cluster = running(seed, socket_request_max_bytes="20000", replica_fetch_min_bytes="100000")
    make_topic(cluster, 4)
    catches_up_after_a_restart(cluster, 4, size=15_000, each=2)


def test_f60_a_batch_larger_than_all_that_a_follower_asks_for_is_replicated(seed: int) -> None:
    cluster = running(seed, replica_fetch_max_bytes="1000", replica_fetch_response_max_bytes="2000")
    make_topic(cluster, 3)
    catches_up_after_a_restart(cluster, 3, size=60_000, each=2)


def test_f60_a_node_asks_for_many_partitions_in_requests_that_others_take() -> None:
    """A request with all 400 partitions would exceed the limit of a node."""
    cluster = running(socket_request_max_bytes="2000")
    make(cluster, create_topic(TOPIC, 400, 3))
    catches_up_after_a_restart(cluster, 400, size=10, each=1)


def test_f60_a_node_without_data_gets_a_snapshot_that_is_longer_than_a_request(seed: int) -> None:
    cluster = running(
        seed,
        socket_request_max_bytes="2000",
        metadata_log_max_record_bytes_between_snapshots="20000",
    )
    make(cluster, create_topic(TOPIC, 200, 3))
    for number in range(60):
        assert created(Talk(cluster, 1).ask(create_topic(f"more-{number}", 3, 3)))
    behind = next(host for host in cluster.up if not host.node.is_active_controller)
    behind.kill()
    behind.wipe()

    behind.start()
    await_ready(cluster)

    await_true(cluster, lambda: images_agree(cluster))
    snapshots = [one for one in behind.disk.list(METADATA) if one.endswith(".checkpoint")]
    assert max(behind.disk.size(f"{METADATA}/{one}") for one in snapshots) > 4_000
    await_true(cluster, lambda: not out_of_sync(cluster))


def test_f60_a_request_that_its_controller_does_not_read_costs_its_broker_nothing() -> None:
    """A broker accepts a long request from a client, but its controller has a smaller limit."""
    cluster, asked = one_with_a_larger_limit()
    epoch = asked.node.image.brokers[asked.id].epoch
    fenced = 0

    def look(host: SimHost) -> None:
        nonlocal fenced
        broker = host.node.image.brokers[asked.id]
        fenced += broker.fenced or broker.epoch != epoch

    cluster.controllers[0].told = look
    wish = create_topic("long", on=[(1, 2, 3)] * 400, timeout_ms=8_000)

    answer = Talk(cluster, asked.id, patience_ms=20_000).ask(wish)

    assert answer.topics[0].error_code is ErrorCode.request_timed_out
    assert fenced == 0
    assert created(Talk(cluster, asked.id).ask(create_topic("short", 1, 3)))


def one_with_a_larger_limit() -> tuple[SimCluster, SimHost]:
    """A cluster, and the one node with a larger limit, which is not the active controller."""
    for seed in count():
        cluster = SimCluster(seed, overrides={"socket.request.max.bytes": "3000"})
        larger = cluster.hosts[3]
        larger.settings = node_settings(3, 3, {"socket.request.max.bytes": "100000"})
        cluster.start()
        await_ready(cluster)
        if larger not in cluster.controllers:
            return cluster, larger
    raise AssertionError
