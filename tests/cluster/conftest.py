"""The same brokers as in tests/clients, here to be killed."""

from tests.clients.conftest import broker, kafka_libs, schemas, start_broker, system, topic

__all__ = ["broker", "kafka_libs", "schemas", "start_broker", "system", "topic"]
