"""The metrics of a node."""

from typing import Any

import pytest
from tests.sim.messages import batch, create_topic, fetch_from, produce_to
from tests.unit.controller.support import broker, cluster, partition
from tests.unit.log.support import NOW, new_log
from tests.unit.node.bench import Bench
from tests.unit.node.following import TOPIC_ID, Owner

from tidelog.model.ids import TopicPartition
from tidelog.model.metrics import Counter, Gauge, Histogram, Metric, Summary
from tidelog.node.clock import Clock
from tidelog.node.events import metrics
from tidelog.node.events.counters import BOUNDS_MS, Counters, RequestTimes
from tidelog.node.partitions.replica import Replica
from tidelog.replication.isr.leader import IsrAgreed
from tidelog.replication.rules import ISR


def values(reported: list[Metric]) -> dict[str, int]:
    """The values of metrics with a single number."""
    return {
        metric.name: metric.samples[0][1]
        for metric in reported
        if isinstance(metric, Gauge | Counter) and metric.samples
    }


def test_a_broker_counts_what_it_holds_and_what_passes_through() -> None:
    bench = Bench()
    bench.ask(create_topic("orders", partitions=3))
    bench.ask(produce_to("orders", batch(b"a", b"bc")))
    bench.ask(fetch_from("orders", 0))

    reported = bench.node.metrics()

    found = values(reported)
    assert found["kafka_server_replicamanager_partitioncount"] == 3
    assert found["kafka_server_replicamanager_leadercount"] == 3
    assert found["kafka_server_replicamanager_underreplicatedpartitions"] == 0
    assert found["kafka_server_replicamanager_atminisrpartitioncount"] == 3
    assert found["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    assert found["kafka_controller_kafkacontroller_globalpartitioncount"] == 3
    assert found["kafka_server_brokertopicmetrics_messagesin"] == 2
    size = len(batch(b"a", b"bc"))
    assert found["kafka_server_brokertopicmetrics_bytesin"] == size
    assert found["kafka_server_brokertopicmetrics_bytesout"] == size
    elections = next(one for one in reported if isinstance(one, Summary))
    assert elections.count == 3
    requests = next(one for one in reported if one.name == "kafka_network_requestmetrics_requests")
    assert isinstance(requests, Counter)
    assert {labels[0][1]: count for labels, count in requests.samples} == {
        "CreateTopics": 1,
        "Produce": 1,
        "Fetch": 1,
    }


@pytest.mark.parametrize(("in_sync", "missed"), [((1, 2, 3), 0), ((1, 2), 1), ((1, 2, 4), 0)])
def test_a_replica_that_is_only_being_added_is_not_missed(
    in_sync: tuple[int, ...], missed: int
) -> None:
    """As in Kafka, replicas that are being added do not count, so the target size here is three."""
    replicas = (1, 2, 4, 3)
    held = Replica(TopicPartition("orders", 0), TOPIC_ID, new_log(), 0, Clock(NOW), Owner())
    held.lead(1, 5, IsrAgreed(frozenset(in_sync), frozenset(replicas), 7, 1), ISR)
    image = cluster(4, {"orders": partition(replicas, isr=in_sync, adding=(4,), removing=(3,))})

    reported = metrics.of_broker([held], image, 0, 0, 0, Counters())

    assert values(list(reported))["kafka_server_replicamanager_underreplicatedpartitions"] == missed


def test_every_name_is_given_once() -> None:
    names = [one.name for one in Bench().node.metrics()]
    assert len(names) == len(set(names)) > 25


def test_a_controller_counts_what_the_image_says() -> None:
    image = cluster(
        [broker(1), broker(2, fenced=True), broker(3)],
        {"a": [partition(), partition(leader=2)], "b": partition(leader=-1, isr=())},
    )
    found = values(list(metrics.of_controller(image, False, Counters())))
    of = "kafka_controller_kafkacontroller_"
    assert found[f"{of}activecontrollercount"] == 0
    assert (found[f"{of}activebrokercount"], found[f"{of}fencedbrokercount"]) == (2, 1)
    assert found[f"{of}offlinepartitionscount"] == 1
    assert found[f"{of}preferredreplicaimbalancecount"] == 2


def test_requests_fall_into_the_place_of_their_time() -> None:
    times = RequestTimes()
    for ms in (0, 1, 2, 3, 99_999):
        times.took(ms)
    counters = Counters()
    counters.requests[0] = times

    reported = list(metrics.of_requests(["PLAINTEXT", "CONTROLLER"], ["PLAINTEXT"] * 2, counters))

    histogram = next(one for one in reported if isinstance(one, Histogram))
    (sample,) = histogram.samples
    assert (sample.labels, sample.total) == ((("request", "Produce"),), 100_005)
    assert list(sample.places) == [2, 1, 1, *[0] * (len(BOUNDS_MS) - 3), 1]
    connections: Any = next(one for one in reported if "connection_count" in one.name)
    assert connections.samples == (
        ((("listener", "PLAINTEXT"),), 2),
        ((("listener", "CONTROLLER"),), 0),
    )
