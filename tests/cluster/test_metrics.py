"""Prometheus metrics of a real cluster show that a broker is killed, and that it returns."""

from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families
from tests.clients.systems import PATIENCE
from tests.cluster.foreground import Up, await_seen, await_that, tidelog
from tests.cluster.ports import first_free_port

LEADERS = "kafka_server_replicamanager_leadercount"
UNDER_REPLICATED = "kafka_server_replicamanager_underreplicatedpartitions"
AT_MIN_ISR = "kafka_server_replicamanager_atminisrpartitioncount"
ISR_EXPANDS = "kafka_server_replicamanager_isrexpands_total"
MESSAGES_IN = "kafka_server_brokertopicmetrics_messagesin_total"
ACTIVE_CONTROLLERS = "kafka_controller_kafkacontroller_activecontrollercount"
FENCED_BROKERS = "kafka_controller_kafkacontroller_fencedbrokercount"


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    running = Up(tmp_path / "data", first_free_port(3), brokers=3)
    try:
        running.bootstrap()
        await_that(lambda: [answers(running, node) for node in (1, 2, 3)], [True] * 3)
        yield running
    finally:
        assert running.end() == 0


def answers(up: Up, node: int) -> bool:
    """Whether the metrics port answers. This port opens a moment after the broker's port."""
    try:
        return bool(scrape(up, node))
    except OSError:
        return False


def scrape(up: Up, node: int) -> dict[tuple[str, str], float]:
    """Every metric value; the key is the metric's name and the value of its label, or ""."""
    port = up.nodes()[node - 1]["ports"]["metrics"]
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        text = answer.read().decode()
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def total(up: Up, name: str, *nodes: int) -> float:
    return sum(scrape(up, node)[name, ""] for node in nodes)


def test_a_killed_broker_is_seen_in_the_numbers_and_so_is_its_return(up: Up) -> None:
    where = ("--bootstrap-server", f"127.0.0.1:{up.port}")
    tidelog("topics", "--create", "--topic", "orders", "--partitions", "6", *where)
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{up.port}"})
    for number in range(100):
        producer.produce("orders", str(number))
    assert producer.flush(PATIENCE) == 0
    # Wait, because the nodes learn of a change at different times.
    await_seen(lambda: total(up, LEADERS, 1, 2, 3), lambda leaders: leaders >= 7)
    await_that(lambda: total(up, UNDER_REPLICATED, 1, 2, 3), 0)
    await_that(lambda: total(up, ACTIVE_CONTROLLERS, 1, 2, 3), 1)
    await_seen(lambda: total(up, MESSAGES_IN, 1, 2, 3), lambda messages: messages >= 100)

    tidelog("node", "kill", "2", "--dir", str(up.directory))

    await_seen(lambda: total(up, UNDER_REPLICATED, 1, 3), lambda partitions: partitions >= 6)
    await_that(lambda: scrape(up, 1)[FENCED_BROKERS, ""], 1)
    await_seen(lambda: total(up, AT_MIN_ISR, 1, 3), lambda partitions: partitions >= 6)

    tidelog("node", "start", "2", "--dir", str(up.directory))
    await_that(lambda: total(up, UNDER_REPLICATED, 1, 3), 0)
    await_seen(lambda: total(up, ISR_EXPANDS, 1, 3), lambda expands: expands >= 6)


def test_what_is_told_of_requests_and_of_the_process(up: Up) -> None:
    where = ("--bootstrap-server", f"127.0.0.1:{up.port}")
    tidelog("topics", "--create", "--topic", "many", "--partitions", "300", *where)

    count = ("kafka_server_socket_server_metrics_connection_count", "PLAINTEXT")
    fetches = ("kafka_network_requestmetrics_totaltimems_count", "Fetch")
    # Wait, because followers may still be connecting to this node.
    found = await_seen(
        lambda: scrape(up, 1), lambda seen: seen[count] >= 2 and seen.get(fetches, 0) > 0
    )

    assert found["process_resident_memory_bytes", ""] > 10_000_000
    assert found["process_cpu_seconds_total", ""] > 0
    assert not [name for name in found if "many" in name], "no series of a single topic"
    assert len(found) < 700, "and no more of them with more partitions"
