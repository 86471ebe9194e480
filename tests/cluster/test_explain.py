"""`tidelog explain` on a cluster that is hurt: it says who is missing, since when, why, and what
would help; and so does the topic of events that it reads.
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
"""One more than can be busy: `follower` finds one whoever leads and decides."""

PROPERTIES = {"tidelog.replication.events.enable": "true", "broker.session.timeout.ms": "60000"}


@contextmanager
def running(properties: Mapping[str, str]) -> Iterator[Cluster]:
    """A cluster whose brokers all have the topic."""
    with Cluster(BROKERS, properties=properties) as cluster:
        cluster.create_topic("orders", 1, BROKERS)
        cluster.wait_for_isr(REPLICATION_EVENTS, size=3)
        yield cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """One where nobody leaves the in-sync set because the machine was busy."""
    with running(PROPERTIES) as cluster:
        yield cluster


@pytest.fixture
def impatient_cluster() -> Iterator[Cluster]:
    """One where who stands still is stuck before it is dead, on any machine."""
    with running({**PROPERTIES, "replica.lag.time.max.ms": "1500"}) as cluster:
        yield cluster


def await_explained(cluster: Cluster, *sentences: str, subject: str = "orders-0") -> None:
    """Wait until all of this is said; whoever is asked may learn of a change a little later."""

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
    """One that leads neither the topic nor its events, and does not decide.

    A controller that falls silent is soon dead and not stuck.
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
    write(cluster)  # is acknowledged when the one that stands still has left

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
        """How often the topic tells of what; nodes tell in no common order, so only counts hold."""
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
    # What a controller has not written yet dies with it, and the victim may be the controller.
    await_seen(event_counts, lambda counts: counts["leader_elected"] == 1)
    cluster.kill(victim)
    cluster.wait_for_isr("orders", size=BROKERS - 1)
    cluster.start(victim)
    cluster.wait_for_isr("orders", size=BROKERS)

    expected = {"leader_elected": 2, "isr_shrink": 1, "isr_expand": 1, "broker_fenced": 1}
    await_that(lambda: {event: event_counts()[event] for event in expected}, expected)
