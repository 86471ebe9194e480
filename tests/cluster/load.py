"""A producer of numbered records that remembers acknowledgements, even if the broker crashes."""

import struct
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from tests.clients.librdkafka import QUIET
from tests.clients.systems import PATIENCE, Broker

NUMBER = struct.Struct(">iq")


@dataclass
class NumberedLoad:
    """Writes values (producer, 0), (producer, 1), ... to one partition, and remembers the acks."""

    broker: Broker
    topic: str
    producer: int
    config: dict[str, Any] = field(default_factory=dict)
    acked: dict[int, int] = field(default_factory=dict)
    """Number of the record -> acknowledged offset."""
    failed: dict[int, str] = field(default_factory=dict)
    sent: int = 0

    def __enter__(self) -> "NumberedLoad":
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_problem: object) -> None:
        self._stopping.set()
        self._thread.join(2 * PATIENCE)
        assert not self._thread.is_alive(), "the producer does not come to an end"

    def await_acks(self, more: int) -> None:
        """Wait until `more` further records are acknowledged."""
        goal, deadline = len(self.acked) + more, time.monotonic() + PATIENCE
        while len(self.acked) < goal:
            assert time.monotonic() < deadline, (
                f"{len(self.acked)} acks, {goal} wanted: {self.failed}"
            )
            time.sleep(0.002)

    def _run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "linger.ms": 1,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "delivery.timeout.ms": PATIENCE * 1000,
                **QUIET,
                **self.config,
            }
        )
        while not self._stopping.is_set():
            if len(producer) < 500:
                value = NUMBER.pack(self.producer, self.sent).ljust(200, b".")
                producer.produce(self.topic, value, partition=0, on_delivery=self._delivered)
                self.sent += 1
                producer.poll(0)
            else:
                producer.poll(0.005)
        assert producer.flush(PATIENCE) == 0

    def _delivered(self, problem: KafkaError | None, message: Message) -> None:
        _producer, number = NUMBER.unpack_from(message.value() or b"")
        offset = message.offset()
        if problem is not None:
            self.failed[number] = problem.str()
        else:
            assert offset is not None
            self.acked[number] = offset
