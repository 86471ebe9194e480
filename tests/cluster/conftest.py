"""Makes the fixtures of tests/clients available to these tests."""

from tests.clients.conftest import broker, kafka_libs, schemas, start_broker, system, topic

__all__ = ["broker", "kafka_libs", "schemas", "start_broker", "system", "topic"]
