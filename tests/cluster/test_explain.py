"""`tidelog explain` on a cluster with faults.

The command names the missing replica, the time, the reason and the remedy. The topic of
replication events, which the command reads, has the same facts.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from tests.clients.systems import PATIENCE
from tests.cluster.foreground import attempt, await_seen, await_that, tidelog

from tidelog.model.replication_events import REPLICATION_EVENTS
from tidelog.testing import Cluster

BROKERS = 4
"""At most three brokers are the active controller or a leader, so `follower` finds another one."""

PROPERTIES = {"tidelog.replication.events.enable": "true", "broker.session.timeout.ms": "60000"}


@contextmanager
def running(properties: Mapping[str, str]) -> Iterator[Cluster]:
    """A cluster whose brokers all have a replica of the topic."""
    with Cluster(BROKERS, properties=properties) as cluster:
        cluster.create_topic("orders", 1, BROKERS)
        cluster.wait_for_isr(REPLICATION_EVENTS, size=3)
        yield cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster in which no replica leaves the in-sync set because the machine is busy."""
    with running(PROPERTIES) as cluster:
        yield cluster


@pytest.fixture
def impatient_cluster() -> Iterator[Cluster]:
    """A cluster in which a paused replica leaves the ISR before its broker is fenced."""
    with running({**PROPERTIES, "replica.lag.time.max.ms": "1500"}) as cluster:
        yield cluster


def await_explained(cluster: Cluster, *sentences: str, subject: str = "orders-0") -> None:
    """Wait until `explain` prints all of these sentences; nodes learn of changes with a delay."""

    def said() -> str:
        done = attempt("explain", subject, "--bootstrap-server", cluster.bootstrap)
        return " ".join((done.stdout + done.stderr).split())

    await_seen(said, lambda words: all(one in words for one in sentences))


def write(cluster: Cluster, count: int = 100) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(count):
        producer.produce("orders", str(number))
    assert producer.flush(PATIENCE) == 0


def follower(cluster: Cluster) -> int:
    """A broker that is not the active controller, and leads no partition of the two topics.

    If the active controller is paused, it is soon replaced and fenced. Its replica would then count
    as dead instead of stuck.
    """
    busy = {
        cluster.controller(),
        cluster.leader_of("orders"),
        cluster.leader_of(REPLICATION_EVENTS),
    }
    return next(node for node in cluster.nodes if node not in busy)


def test_killed_and_back(cluster: Cluster) -> None:
    await_explained(cluster, "orders-0 is healthy: broker ")
    victim = follower(cluster)
    cluster.kill(victim)

    await_explained(
        cluster,
        "orders-0 is under-replicated",
        f"Broker {victim} left the in-sync set at",
        "it was dead (its port refused connections: the process was gone).",
        f"Start broker {victim}.",
    )
    await_explained(cluster, "orders: its only partition is not healthy.", subject="orders")

    cluster.start(victim)
    await_explained(cluster, "orders-0 is healthy")


def test_a_follower_that_stands_still_is_stuck(impatient_cluster: Cluster) -> None:
    cluster = impatient_cluster
    victim = follower(cluster)
    cluster.pause(victim)
    write(cluster)  # returns when the paused replica has left the ISR

    await_explained(
        cluster,
        "orders-0 is under-replicated",
        f"Broker {victim} left the in-sync set at",
        "it was stuck, without a fetch for",
    )

    cluster.resume(victim)
    await_explained(cluster, "orders-0 is healthy")


def test_without_a_leader_it_is_said_who_could_lead(cluster: Cluster) -> None:
    write(cluster)
    leader = cluster.leader_of("orders")
    others = [node for node in cluster.nodes if node != leader]
    tidelog(
        *("topics", "--create", "--topic", "alone", "--replica-assignment", str(others[0])),
        *("--bootstrap-server", cluster.bootstrap),
    )
    cluster.kill(others[0])
    cluster.wait_for_no_leader("alone")

    await_explained(
        cluster,
        "alone-0 has no leader, so it can be neither written nor read.",
        f"Start broker {others[0]}: it holds everything that was committed.",
        subject="alone-0",
    )


def test_the_events_tell_the_same_story(cluster: Cluster) -> None:
    def event_counts() -> Counter[str]:
        """The number of events of each kind; different nodes write events in no common order."""
        done = attempt(
            *("consume", "--topic", REPLICATION_EVENTS, "--from-beginning"),
            *("--timeout-ms", "500", "--bootstrap-server", cluster.bootstrap),
        )
        records = [json.loads(line) for line in done.stdout.splitlines()]
        return Counter(
            one["event"]
            for one in records
            if one.get("topic") == "orders" or one.get("broker") == victim
        )

    victim = cluster.leader_of("orders")
    # The victim may be the controller, and a killed controller loses its unwritten events.
    await_seen(event_counts, lambda counts: counts["leader_elected"] == 1)
    cluster.kill(victim)
    cluster.wait_for_isr("orders", size=BROKERS - 1)
    cluster.start(victim)
    cluster.wait_for_isr("orders", size=BROKERS)

    expected = {"leader_elected": 2, "isr_shrink": 1, "isr_expand": 1, "broker_fenced": 1}
    await_that(lambda: {event: event_counts()[event] for event in expected}, expected)
