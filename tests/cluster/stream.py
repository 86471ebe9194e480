"""An idempotent acks=all producer at full rate; record n of a partition must get offset n.

No other producer writes to the topic. If a record gets another offset, some record was therefore
lost or duplicated.

Some acknowledgements have no offset. This happens if a broker refuses a batch because it no longer
leads, and then leads again and accepts the next batch. From the sequence numbers, librdkafka
concludes that the first batch is in the log. It reports the batch's records as delivered, but does
not know their offsets. This module counts these records. The tests that read the topic back check
their offsets.
"""

import struct
import threading
import time
from itertools import cycle
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from tests.clients.librdkafka import QUIET
from tests.clients.systems import PATIENCE

NUMBER = struct.Struct(">iq")
VALUE_BYTES = 100
IN_FLIGHT = 10_000


class Stream:
    """A thread that writes to all partitions in turn, while its context is open."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int = 1,
        *,
        in_flight: int = IN_FLIGHT,
        per_second: float | None = None,
        **config: Any,
    ) -> None:
        """`per_second` limits the rate; without it the rate is unlimited."""
        self.topic = topic
        self._in_flight = in_flight
        self._pause_seconds = 0.0 if per_second is None else 1 / per_second
        self.sent = [0] * partitions
        self.acked = [0] * partitions
        self.strays: list[str] = []
        """Acknowledgements that came out of order or have an unexpected offset."""
        self.without_offset = 0
        """The number of records that were acknowledged without an offset (explained at the top)."""
        self.failed: list[str] = []
        self._gaps = [0.0] * partitions
        self._last_acks = [time.monotonic()] * partitions
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stream", daemon=True)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "message.timeout.ms": 0,
                **QUIET,
                **{key.replace("_", "."): value for key, value in config.items()},
            }
        )

    def __enter__(self) -> "Stream":
        self._thread.start()
        return self

    def __exit__(self, *_problem: object) -> None:
        """Stop sending, and wait until every sent record is answered."""
        self._stopping.set()
        self._thread.join(4 * PATIENCE)
        assert not self._thread.is_alive(), f"not answered: {len(self._producer)}"

    def abandon(self) -> None:
        """Drop all unanswered records, because the cluster has failed and will not answer."""
        self._stopping.set()
        while self._thread.is_alive():
            self._producer.purge()
            self._thread.join(0.1)

    def await_acks(self, more: int = 1) -> None:
        """Wait until `more` further records of each partition are acknowledged."""
        goals = [count + more for count in self.acked]
        deadline = time.monotonic() + PATIENCE
        while any(count < goal for count, goal in zip(self.acked, goals, strict=True)):
            assert not self.failed, self.failed[:3]
            assert time.monotonic() < deadline, f"acknowledged {self.acked}, awaited {goals}"
            time.sleep(0.002)

    @property
    def longest_gap(self) -> float:
        """The longest wait, in seconds, for the next acknowledgement of a partition."""
        return max(self._gaps)

    def forget_gaps(self) -> None:
        self._gaps[:] = [0.0] * len(self._gaps)

    def _run(self) -> None:
        for partition in cycle(range(len(self.sent))):
            if self._stopping.is_set():
                break
            while len(self._producer) >= self._in_flight:
                self._producer.poll(0.005)
            value = NUMBER.pack(partition, self.sent[partition]).ljust(VALUE_BYTES, b".")
            self._producer.produce(
                self.topic, value, partition=partition, on_delivery=self._delivered
            )
            self.sent[partition] += 1
            self._producer.poll(0)
            self._rest()
        self._producer.flush(3 * PATIENCE)

    def _rest(self) -> None:
        """Wait until the next record is due."""
        due = time.monotonic() + self._pause_seconds
        while (left := due - time.monotonic()) > 0 and not self._stopping.is_set():
            self._producer.poll(left)

    def _delivered(self, problem: KafkaError | None, message: Message) -> None:
        partition, number = NUMBER.unpack_from(message.value() or b"")
        if problem is not None:
            self.failed.append(f"{partition}: {number}: {problem.str()}")
            return
        now = time.monotonic()
        self._gaps[partition] = max(self._gaps[partition], now - self._last_acks[partition])
        self._last_acks[partition] = now
        if message.offset() is None:
            self.without_offset += 1
        if number != self.acked[partition] or message.offset() not in (None, number):
            due = self.acked[partition]
            self.strays.append(f"{partition}: {number} at {message.offset()}, due was {due}")
        self.acked[partition] = number + 1
