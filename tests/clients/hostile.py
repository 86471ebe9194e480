"""For tests of bad input: a well-behaved client that must be served, and checks of the log."""

import itertools
import time
from collections.abc import Callable
from typing import Any

from tests.clients.batches import NOW, Batch, Record, records
from tests.clients.systems import PATIENCE, Broker
from tests.clients.talk import SETUP, creation, fetching
from tests.clients.wire import Wire

_numbers = itertools.count(1)


def eventually(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < deadline, f"still waiting: {what}"
        time.sleep(0.01)


class Bystander:
    """A well-behaved client with a connection and a topic of its own."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.name, self.sent = broker, f"bystander-{next(_numbers)}", 0
        self.wire = broker.connect()
        self._ask("CreateTopics", creation(self.name))
        eventually(self._is_led, "a leader for the bystander's topic")

    def _ask(self, api: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.wire.ask(api, SETUP[api], body)
        assert isinstance(answer, dict), f"the broker hung up on a bystander's {api}"
        return answer

    def _is_led(self) -> bool:
        return self._produce(b"first")

    def _produce(self, value: bytes) -> bool:
        batch = Batch(records=(Record(value=value),), base_timestamp=NOW).encode()
        topic = {"name": self.name, "partitionData": [{"index": 0, "records": batch}]}
        answer = self._ask("Produce", {"acks": -1, "timeoutMs": 30000, "topicData": [topic]})
        (response,) = answer["responses"][0]["partitionResponses"]
        if response["errorCode"] == 0:
            assert response["baseOffset"] == self.sent
            self.sent += 1
        return bool(response["errorCode"] == 0)

    def is_served(self) -> None:
        """Assert that the first connection can write a record and a new connection can read it."""
        value = f"still here {self.sent}".encode()
        assert self._produce(value)
        with self.broker.connect() as fresh:
            assert self._last_value(fresh) == value

    def _last_value(self, wire: Wire) -> bytes | None:
        topic = {"topic": self.name, "partitions": [{"partition": 0, "fetchOffset": self.sent - 1,
                                                     "partitionMaxBytes": 1 << 20}]}  # fmt: skip
        answer = wire.ask("Fetch", SETUP["Fetch"], fetching([]) | {"topics": [topic]})
        assert isinstance(answer, dict)
        data = answer["responses"][0]["partitions"][0]["records"]
        return records(data)[-1].value


def log_lines_about(broker: Broker, peer: str) -> list[str]:
    """The log lines of the broker that name this peer, except for reports of slow loop passes."""
    lines = broker.log_text().splitlines()
    return [line for line in lines if peer in line and "a pass of the loop took" not in line]


def await_room_in_the_log(broker: Broker) -> None:
    """Wait until the broker logs little, because it omits similar lines if it logs too many."""

    def is_quiet() -> bool:
        second = time.strftime("%H:%M:%S")
        return sum(line.startswith(second) for line in broker.log_text().splitlines()[-50:]) < 8

    eventually(is_quiet, "a quiet second in the log")


def tells_once(broker: Broker, peer: str) -> None:
    """Assert that the broker's log has exactly one line about this peer."""
    if broker.logs_one_line_per_bad_peer:
        eventually(lambda: bool(log_lines_about(broker, peer)), f"a log line about {peer}")
        assert len(log_lines_about(broker, peer)) == 1, log_lines_about(broker, peer)


class Memory:
    """Compares the broker's resident memory with its size when this object was created."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.before = broker, broker.rss_mib()

    def grew_at_most(self, mib: float) -> None:
        grown = self.broker.rss_mib() - self.before
        assert grown <= mib, f"{grown:.0f} MiB more than before, {mib} allowed"
