"""The fixtures of tests/clients for brokers, which these tests kill."""

from tests.clients.conftest import broker, kafka_libs, schemas, start_broker, system, topic

__all__ = ["broker", "kafka_libs", "schemas", "start_broker", "system", "topic"]
