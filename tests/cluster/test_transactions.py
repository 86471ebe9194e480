"""Exactly once: consume-transform-produce loops of real clients, while brokers are killed."""

import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.update_features.v1.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.schema.update_features.v1.response import UpdateFeaturesResponse
from tests.clients.java import JVM, QUIET
from tests.cluster.copying import INPUT, OUTPUT, PARTITIONS, Copier, check_copied, fill

from tidelog.testing import Cluster

PROGRAM = Path(__file__).with_name("Copy.java")
COUNT = 6_000
PATIENCE = 600
SAFE_DOWNGRADE = 2


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    properties = {
        "group.initial.rebalance.delay.ms": 0,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        "offsets.topic.num.partitions": 5,
        "transaction.state.log.num.partitions": 5,
    }
    with Cluster(directory=tmp_path, properties=properties, network_faults=False) as cluster:
        for topic in (INPUT, OUTPUT):
            cluster.create_topic(topic, partitions=PARTITIONS, replication_factor=3)
        fill(cluster.bootstrap, COUNT)
        yield cluster


def kill_in_turn(cluster: Cluster, is_busy: Callable[[], bool]) -> int:
    """Kill one broker after another, among them leaders and coordinators, until the copy ends."""
    kills, deadline = 0, time.monotonic() + PATIENCE
    while is_busy():
        assert time.monotonic() < deadline, "the copy does not end"
        if kills < 6:
            node = 1 + kills % 3
            cluster.kill(node)
            cluster.start(node)
            cluster.wait_for_isr(OUTPUT, size=3)
            kills += 1
        else:
            time.sleep(0.2)
    return kills


def set_transaction_version(cluster: Cluster, level: int) -> None:
    key = FeatureUpdateKey(
        feature="transaction.version", max_version_level=level, upgrade_type=SAFE_DOWNGRADE
    )
    request = UpdateFeaturesRequest(
        timeout=timedelta(seconds=30), feature_updates=(key,), validate_only=False
    )
    answer = cluster.ask(request, UpdateFeaturesResponse)
    assert answer.error_code is ErrorCode.none, answer


def test_f74_confluent_kafka_copies_exactly_once_while_brokers_die(cluster: Cluster) -> None:
    copier = Copier(cluster.bootstrap, COUNT)
    copier.start()
    kill_in_turn(cluster, copier.is_alive)
    assert copier.bug is None, copier.bug
    check_copied(cluster.bootstrap, COUNT)
    assert copier.aborted > 0


@pytest.mark.parametrize("version", [2, 1])
def test_f74_java_copies_exactly_once_while_brokers_die(
    cluster: Cluster, kafka_libs: Path, version: int
) -> None:
    """The Java client uses the finalised transaction version. librdkafka knows only version 1."""
    if version != 2:
        set_transaction_version(cluster, version)
    command = ["java", *JVM, *QUIET, "-cp", f"{kafka_libs}/*", str(PROGRAM)]
    with subprocess.Popen(
        [*command, cluster.bootstrap, str(COUNT)], stdout=subprocess.PIPE, text=True
    ) as copy:
        try:
            kill_in_turn(cluster, lambda: copy.poll() is None)
            assert copy.stdout is not None
            assert "done" in copy.stdout.read()
        finally:
            copy.kill()
    check_copied(cluster.bootstrap, COUNT)
