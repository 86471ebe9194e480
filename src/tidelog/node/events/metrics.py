"""A node's metrics, with the names that the JMX exporter gives to Kafka's metrics.

The metrics are computed only when they are requested, in one pass over the replicas. No metric has
a series per partition, so the number of series does not depend on the number of partitions.
docs/metrics.md lists the metrics.
"""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidelog.api.registry import REGISTRY
from tidelog.controller.image.image import ClusterImage
from tidelog.model.metrics import (
    Counter,
    Gauge,
    Histogram,
    HistogramSample,
    Labels,
    Metric,
    Summary,
)
from tidelog.node.events.counters import BOUNDS_MS, Counters
from tidelog.node.partitions.replica import Replica

_REPLICAS = "kafka_server_replicamanager"
_CONTROLLER = "kafka_controller_kafkacontroller"
_STATS = "kafka_controller_controllerstats"
_TRAFFIC = "kafka_server_brokertopicmetrics"
_REQUESTS = "kafka_network_requestmetrics"


@dataclass(slots=True)
class _Held:
    """The counts from one pass over the replicas of a broker."""

    partitions: int = 0
    led: int = 0
    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    max_lag: int = 0


def of_broker(
    replicas: Iterable[Replica],
    image: ClusterImage,
    offline: int,
    strays: int,
    fetch_sessions: int,
    counters: Counters,
) -> Iterator[Metric]:
    held = _walk(replicas, image)
    yield _gauge(f"{_REPLICAS}_partitioncount", "Replicas on this broker.", held.partitions)
    yield _gauge(f"{_REPLICAS}_leadercount", "Partitions that this broker leads.", held.led)
    yield _gauge(
        f"{_REPLICAS}_underreplicatedpartitions",
        "Partitions that this broker leads with replicas out of sync.",
        held.under_replicated,
    )
    yield _gauge(
        f"{_REPLICAS}_underminisrpartitioncount",
        "Partitions that this broker leads with fewer replicas in sync than min.insync.replicas.",
        held.under_min_isr,
    )
    yield _gauge(
        f"{_REPLICAS}_atminisrpartitioncount",
        "Partitions that this broker leads with just min.insync.replicas in sync.",
        held.at_min_isr,
    )
    yield _gauge(
        f"{_REPLICAS}_offlinereplicacount", "Replicas in log directories that failed.", offline
    )
    yield _gauge(
        "tidelog_log_stray_directories",
        "Partition directories that were set aside and are kept.",
        strays,
    )
    yield _counter(
        f"{_REPLICAS}_isrshrinks", "ISR shrinks that this broker requested.", counters.isr_shrinks
    )
    yield _counter(
        f"{_REPLICAS}_isrexpands",
        "ISR expansions that this broker requested.",
        counters.isr_expands,
    )
    yield _counter(
        f"{_REPLICAS}_failedisrupdates", "ISR changes that failed.", counters.failed_isr_updates
    )
    yield _gauge(
        "kafka_server_replicafetchermanager_maxlag",
        "Committed records that the replica furthest behind its leader lacks.",
        held.max_lag,
        (("clientId", "Replica"),),
    )
    yield _gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "Fetch sessions.",
        fetch_sessions,
    )
    yield from _traffic(counters)


def _walk(replicas: Iterable[Replica], image: ClusterImage) -> _Held:
    held = _Held()
    for replica in replicas:
        held.partitions += 1
        leader = replica.leader
        if leader is None:
            lag = replica.highest_watermark - replica.log.log_end_offset
            held.max_lag = max(held.max_lag, lag)
            continue
        in_sync = len(leader.isr)
        held.led += 1
        placed = image.partition(replica.partition)
        # Replicas that a reassignment has not finished adding do not count as missing.
        adding = 0 if placed is None else len(placed.adding)
        held.under_replicated += in_sync < leader.replica_count - adding
        held.under_min_isr += in_sync < leader.minimum
        held.at_min_isr += in_sync == leader.minimum
    return held


def _traffic(counters: Counters) -> Iterator[Metric]:
    yield _counter(f"{_TRAFFIC}_bytesin", "Bytes that producers wrote.", counters.bytes_in)
    yield _counter(f"{_TRAFFIC}_messagesin", "Records that producers wrote.", counters.messages_in)
    yield _counter(f"{_TRAFFIC}_bytesout", "Bytes that consumers read.", counters.bytes_out)
    yield _counter(
        f"{_TRAFFIC}_replicationbytesout",
        "Bytes that followers read.",
        counters.replication_bytes_out,
    )


def of_controller(image: ClusterImage, is_active: bool, counters: Counters) -> Iterator[Metric]:
    yield _gauge(
        f"{_CONTROLLER}_activecontrollercount", "1 on the active controller.", int(is_active)
    )
    fenced = sum(broker.fenced for broker in image.brokers.values())
    yield _gauge(
        f"{_CONTROLLER}_activebrokercount", "Unfenced brokers.", len(image.brokers) - fenced
    )
    yield _gauge(f"{_CONTROLLER}_fencedbrokercount", "Fenced brokers.", fenced)
    partitions = offline = imbalanced = 0
    for topic in image.topics.values():
        for placed in topic.partitions.values():
            partitions += 1
            offline += not placed.has_leader
            imbalanced += placed.leader != placed.preferred_leader
    yield _gauge(f"{_CONTROLLER}_globaltopiccount", "Topics.", len(image.topics))
    yield _gauge(f"{_CONTROLLER}_globalpartitioncount", "Partitions of all topics.", partitions)
    yield _gauge(f"{_CONTROLLER}_offlinepartitionscount", "Partitions without a leader.", offline)
    yield _gauge(
        f"{_CONTROLLER}_preferredreplicaimbalancecount",
        "Partitions that are not led by their preferred replica.",
        imbalanced,
    )
    yield Summary(
        f"{_STATS}_leaderelectionrateandtimems",
        "Elections that this controller decided, and the milliseconds until they were committed.",
        counters.elections,
        counters.election_ms,
    )
    yield _counter(
        f"{_STATS}_uncleanleaderelections",
        "Elections of a leader that may lack records.",
        counters.unclean_elections,
    )


def of_requests(
    listeners: Iterable[str], connections: Iterable[str], counters: Counters
) -> Iterator[Metric]:
    """The metrics of requests; `connections` holds the listener name of each open connection."""
    named = sorted(
        (api.name, counters.requests[key])
        for key, api in REGISTRY.items()
        if key in counters.requests
    )
    yield Counter(
        f"{_REQUESTS}_requests",
        "Requests that were answered.",
        tuple(((("request", name),), sum(times.places)) for name, times in named),
    )
    yield Histogram(
        f"{_REQUESTS}_totaltimems",
        "Milliseconds from a request until its answer was ready, waits included.",
        BOUNDS_MS,
        tuple(
            HistogramSample((("request", name),), tuple(times.places), times.total_ms)
            for name, times in named
        ),
    )
    by_listener = Tally(connections)
    yield Gauge(
        "kafka_server_socket_server_metrics_connection_count",
        "Connections.",
        tuple(((("listener", name),), by_listener[name]) for name in listeners),
    )
    yield _counter(
        "tidelog_replication_events_written", "Replication events written.", counters.events_written
    )
    yield _counter(
        "tidelog_replication_events_lost", "Replication events dropped.", counters.events_lost
    )


def _gauge(name: str, about: str, value: int, labels: Labels = ()) -> Gauge:
    return Gauge(name, about, ((labels, value),))


def _counter(name: str, about: str, value: int) -> Counter:
    return Counter(name, about, (((), value),))
