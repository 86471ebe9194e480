"""What is measured on one cluster, in groups that can be chosen.

A group is a function that puts load on a running cluster and reports figures. All groups of a
repeat run on the same cluster, in the order of `GROUPS`; the group `start` also starts it.
"""

import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

from kio.schema.produce.v9.response import ProduceResponse

from tidelog.bench.frames import batch_of, produce_request
from tidelog.bench.load import (
    SMALL_RECORD_BYTES,
    LoadTarget,
    consume_at_full_rate,
    leaders_of,
    produce_at_full_rate,
    produce_at_rate,
)
from tidelog.bench.measured_cluster import BROKERS, MeasuredCluster
from tidelog.bench.usage import SpanMeter, resident_mib
from tidelog.client import admin
from tidelog.client.client import Client, Moved
from tidelog.client.fetcher import Fetcher
from tidelog.client.log_offsets import LATEST
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition

PARTITIONS = 6
RATES = (200, 1_000)
RECORD_SIZES = (1_024, 100)
PERCENTILES = (50.0, 99.0, 99.9)


class Better(StrEnum):
    LOWER = "lower"
    HIGHER = "higher"


class Measure(NamedTuple):
    name: str
    unit: str
    better: Better = Better.LOWER


class Effort(NamedTuple):
    """How long the benchmark measures."""

    repeats: int
    seconds: float
    """The length of one load."""
    warm_seconds: float
    kills: int


FULL = Effort(repeats=3, seconds=10.0, warm_seconds=30.0, kills=3)
QUICK = Effort(repeats=1, seconds=3.0, warm_seconds=3.0, kills=1)

Report = Callable[[Measure, float, float], None]
"""Takes a measure, its value, and the share of a core that other processes used."""


class BenchRun(NamedTuple):
    """One repeat on one cluster."""

    cluster: MeasuredCluster
    client: Client
    effort: Effort
    report: Report


def start(cluster: MeasuredCluster, report: Report, idle_seconds: float) -> None:
    """Start the cluster, write a record, then let the cluster idle."""
    began = time.monotonic()
    meter = SpanMeter(())
    for node in cluster.node_ids:
        cluster.start(node)
    cluster.await_brokers()
    with Client(cluster.bootstrap) as client:
        create_topic(cluster, client, "start", 1)
        _await_write(cluster, client, TopicPartition("start", 0))
    seconds = time.monotonic() - began
    report(Measure("cold start to the first acks=all write", "s"), seconds, meter.end().others)
    time.sleep(idle_seconds)
    meter = SpanMeter(cluster.pids)
    time.sleep(idle_seconds)
    idle = meter.end()
    report(Measure("memory of three idle brokers", "MiB"), resident_mib(cluster.pids), idle.others)
    busy = 100 * idle.broker_cpu / idle.seconds
    report(Measure("CPU of three idle brokers", "% of a core"), busy, idle.others)


def warm_up(run: BenchRun) -> None:
    """Load of both kinds, of which nothing is reported. A JVM compiles its code meanwhile."""
    leaders = ready_topic(run, "warm-up")
    half = run.effort.warm_seconds / 2
    produce_at_rate(leaders, "warm-up", max(RATES), half)
    produce_at_full_rate(leaders, "warm-up", max(RECORD_SIZES), half)
    admin.delete_topics(run.client, ["warm-up"])


def requests(run: BenchRun) -> None:
    """One record per request, at steady rates."""
    leaders = ready_topic(run, "requests")
    for rate in RATES:
        meter = SpanMeter(run.cluster.pids)
        took = sorted(produce_at_rate(leaders, "requests", rate, run.effort.seconds))
        span = meter.end()
        where = f"{rate:,} requests/s"
        for percentile in PERCENTILES:
            value = took[min(len(took) - 1, int(len(took) * percentile / 100))]
            run.report(Measure(f"ack p{percentile:g}, {where}", "ms"), value, span.others)
        cost = 1e6 * span.broker_cpu / len(took)
        run.report(Measure(f"broker CPU per request, {where}", "us"), cost, span.others)
    admin.delete_topics(run.client, ["requests"])


def throughput(run: BenchRun) -> None:
    """Batches of 1 MB as fast as the cluster takes them, then the same records read back."""
    for size in RECORD_SIZES:
        topic = f"throughput-{size}"
        leaders = ready_topic(run, topic)
        what = f"records of {size:,} B"
        meter = SpanMeter(run.cluster.pids)
        moved = produce_at_full_rate(leaders, topic, size, run.effort.seconds)
        span = meter.end()
        rate = Measure(f"produce, {what}", "MB/s", Better.HIGHER)
        run.report(rate, moved.megabytes / moved.seconds, span.others)
        cost = 1e3 * span.broker_cpu / moved.megabytes
        run.report(Measure(f"broker CPU, produce, {what}", "s/GB"), cost, span.others)
        if size == max(RECORD_SIZES):
            _consume(run, leaders, topic, what)
        admin.delete_topics(run.client, [topic])
    memory = Measure("memory of three brokers after load", "MiB")
    run.report(memory, resident_mib(run.cluster.pids), span.others)


def _consume(run: BenchRun, leaders: list[LoadTarget], topic: str, what: str) -> None:
    fetcher = Fetcher(run.client, topic)
    ends = {one: fetcher.end_of(one, LATEST) for lead in leaders for one in lead.partitions}
    meter = SpanMeter(run.cluster.pids)
    moved = consume_at_full_rate(leaders, topic, ends)
    span = meter.end()
    rate = Measure(f"consume, {what}", "MB/s", Better.HIGHER)
    run.report(rate, moved.megabytes / moved.seconds, span.others)
    cost = 1e3 * span.broker_cpu / moved.megabytes
    run.report(Measure(f"broker CPU, consume, {what}", "s/GB"), cost, span.others)


def failover(run: BenchRun) -> None:
    """kill -9 of a leader, until a record is acknowledged again."""
    topic = "failover"
    ready_topic(run, topic, partitions=1)
    for _ in range(run.effort.kills):
        await_in_sync(run.cluster, run.client, topic)
        (described,) = admin.describe_from_metadata(run.client, [topic])
        leader = described.partitions[0].leader
        with Client(run.cluster.bootstrap_without(leader)) as survivors:
            _await_write(run.cluster, survivors, TopicPartition(topic, 0))
            meter = SpanMeter(())
            killed = time.monotonic()
            run.cluster.kill(leader)
            _await_write(run.cluster, survivors, TopicPartition(topic, 0))
            value = 1e3 * (time.monotonic() - killed)
        run.report(Measure("no writes after kill -9 of a leader", "ms"), value, meter.end().others)
        run.cluster.start(leader)
    await_in_sync(run.cluster, run.client, topic)


def _await_write(cluster: MeasuredCluster, client: Client, partition: TopicPartition) -> None:
    """Wait until the leader in the metadata acknowledges a record."""
    batch = batch_of(SMALL_RECORD_BYTES, 1)
    request = produce_request(partition.topic, partition.partition, batch)

    def is_acknowledged() -> bool:
        client.metadata((partition.topic,))
        try:
            answer = client.ask_leader(partition, request, ProduceResponse)
        except Moved:
            return False
        (produced,) = answer.responses[0].partition_responses
        return produced.error_code is ErrorCode.none

    cluster.await_condition(is_acknowledged, "accepts writes")


# -- Topics ----------------------------------------------------------------------------------------


def ready_topic(run: BenchRun, topic: str, partitions: int = PARTITIONS) -> list[LoadTarget]:
    """Create a topic, and return its leaders when all partitions accept writes."""
    create_topic(run.cluster, run.client, topic, partitions)
    # A broker may open a partition a moment after the metadata has named its leader.
    for partition in range(partitions):
        _await_write(run.cluster, run.client, TopicPartition(topic, partition))
    return leaders_of(run.client, topic)


def create_topic(cluster: MeasuredCluster, client: Client, topic: str, partitions: int) -> None:
    def is_created() -> bool:
        with admin.topic_may_exist():
            admin.create_topic(
                client,
                topic,
                partitions=partitions,
                replication_factor=BROKERS,
                assignment=(),
                configs={},
            )
        return True

    cluster.await_condition(is_created, f"creates the topic {topic}")
    await_in_sync(cluster, client, topic)


def await_in_sync(cluster: MeasuredCluster, client: Client, topic: str) -> None:
    """Wait until each partition has a leader and all replicas in sync."""

    def is_in_sync() -> bool:
        (described,) = admin.describe_from_metadata(client, [topic])
        return bool(described.partitions) and all(
            one.leader in cluster.node_ids and len(one.isr) == BROKERS
            for one in described.partitions
        )

    cluster.await_condition(is_in_sync, f"has all replicas of {topic} in sync")


GROUPS: Mapping[str, Callable[[BenchRun], None]] = {
    "requests": requests,
    "throughput": throughput,
    "failover": failover,
}
"""The groups that need a running cluster, in order."""
