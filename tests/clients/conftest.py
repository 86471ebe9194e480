"""A running broker for tests with real clients: Tidelog, or Apache Kafka with --system kafka."""

import itertools
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.clients.schema import Schemas
from tests.clients.systems import ROOT, SYSTEMS, Broker

StartBroker = Callable[..., Broker]


@pytest.fixture(scope="session")
def kafka_libs() -> Path:
    """The directory of Apache Kafka's jars, fetched on first use."""
    done = subprocess.run([ROOT / "tools/kafka-jars"], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, "tools/kafka-jars failed; it says why above"
    return Path(done.stdout.strip())


@pytest.fixture(scope="session")
def schemas(kafka_libs: Path) -> Schemas:
    return Schemas(kafka_libs)


@pytest.fixture(scope="session")
def system(request: pytest.FixtureRequest) -> type[Broker]:
    return SYSTEMS[request.config.getoption("--system")]


@pytest.fixture(scope="session")
def broker(
    system: type[Broker], schemas: Schemas, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """The shared broker, for tests that affect only their own topic."""
    shared = system(tmp_path_factory.mktemp("shared"), schemas)
    yield from _running(shared)


def _running(broker: Broker) -> Iterator[Broker]:
    broker.format()
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


@pytest.fixture
def start_broker(system: type[Broker], schemas: Schemas, tmp_path: Path) -> Iterator[StartBroker]:
    """Start a separate broker with these properties; the test may kill it or fill its disk."""
    brokers: list[Broker] = []

    def start(properties: Mapping[str, object] | None = None, data: Path | None = None) -> Broker:
        broker = system(tmp_path / f"broker-{len(brokers)}", schemas, properties, data)
        brokers.append(broker)
        broker.format()
        broker.start()
        return broker

    yield start
    for broker in brokers:
        broker.kill()


_numbers = itertools.count(1)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses."""
    return (
        re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name).strip("-")[:200] + f"-{next(_numbers)}"
    )
