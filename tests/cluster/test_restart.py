"""A starting broker may refuse clients, but must not report an existing topic as unknown.

A client that gets UNKNOWN_TOPIC once may give up on the topic. For example, librdkafka then fails
every queued record.
"""

import time
from collections.abc import Callable

import pytest
from tests.clients.librdkafka import create
from tests.clients.systems import PATIENCE, Broker

NO_ERROR, LEADER_NOT_AVAILABLE = 0, 5


@pytest.mark.parametrize("turn", range(5))
def test_a_starting_broker_never_denies_its_topics(
    start_broker: Callable[..., Broker], topic: str, turn: int
) -> None:
    broker = start_broker()
    names = [f"{topic}-{n}" for n in range(20)]
    for name in names:
        create(broker, name, 2)
    broker.kill()
    broker.launch()
    asked = {"topics": [{"name": name} for name in names], "allowAutoTopicCreation": False}
    deadline = time.monotonic() + PATIENCE
    while True:
        assert time.monotonic() < deadline, "it does not come up"
        try:
            with broker.connect(timeout=5) as wire:
                answer = wire.ask("Metadata", 12, asked)
        except OSError:
            continue
        if isinstance(answer, dict):
            errors = {found["errorCode"] for found in answer["topics"]}
            assert errors <= {NO_ERROR, LEADER_NOT_AVAILABLE}, errors
            if answer["brokers"] and errors == {NO_ERROR}:
                break
