"""Consume-transform-produce with confluent-kafka: copies a topic in transactions, exactly once."""

import threading
import time
from collections import Counter

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.clients.librdkafka import QUIET

PARTITIONS = 3
INPUT, OUTPUT = "input", "output"
SEND_SECONDS = 20


class ClientHangs(Exception):
    """A call of librdkafka does not return, although its timeout has passed."""


def fill(bootstrap: str, count: int) -> None:
    """Write the numbers below `count` to the input topic."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET})
    for number in range(count):
        producer.produce(INPUT, str(number).encode(), partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(120) == 0


class Copier(threading.Thread):
    """Copies the input to the output, and aborts every fifth transaction, until it has it all."""

    def __init__(self, bootstrap: str, wanted: int) -> None:
        super().__init__(daemon=True)
        self._servers = bootstrap
        self._wanted = wanted
        self.committed = 0
        self.aborted = 0
        self.failures: list[str] = []
        self.bug: BaseException | None = None

    def run(self) -> None:
        try:
            while self.committed < self._wanted:
                self._live()
        except BaseException as bug:  # shown by the test
            self.bug = bug

    def _live(self) -> None:
        """One life of a producer, until it is done or has a fatal error."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "copy",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **QUIET,
            }
        )
        producer = Producer(
            {"bootstrap.servers": self._servers, "transactional.id": "copy", **QUIET}
        )
        try:
            producer.init_transactions(60)
            consumer.subscribe([INPUT])
            self._copy(consumer, producer)
        except (KafkaException, ClientHangs) as error:
            self.failures.append(repr(error))
        finally:
            consumer.close()

    def _copy(self, consumer: Consumer, producer: Producer) -> None:
        turn = 0
        while self.committed < self._wanted:
            batch = [one for one in consumer.consume(100, 0.2) if one.error() is None]
            if not batch:
                self.committed = self._committed(consumer)
                continue
            turn += 1
            try:
                producer.begin_transaction()
                for one in batch:
                    producer.produce(OUTPUT, one.value(), partition=one.partition())
                    producer.poll(0)
                positions = consumer.position(consumer.assignment())
                group = consumer.consumer_group_metadata()
                self._send_offsets(producer, [at for at in positions if at.offset >= 0], group)
                if turn % 5 == 0:
                    self._abort(consumer, producer)
                else:
                    self._retry(producer.commit_transaction)
            except KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    raise
                self.failures.append(str(error))
                self._abort(consumer, producer)

    def _send_offsets(
        self, producer: Producer, offsets: list[TopicPartition], group: object
    ) -> None:
        """Send the offsets; raises `ClientHangs` if librdkafka does not return.

        It ignores the timeout of this call, and may wait forever if the coordinator dies (its
        issues 5456 and 5511). The next life fences the producer that is left behind.
        """
        failures: list[KafkaException] = []

        def send() -> None:
            try:
                producer.send_offsets_to_transaction(offsets, group, SEND_SECONDS)
            except KafkaException as failure:
                failures.append(failure)

        sending = threading.Thread(target=send, daemon=True)
        sending.start()
        sending.join(2 * SEND_SECONDS)
        if sending.is_alive():
            raise ClientHangs
        if failures:
            raise failures[0]

    def _abort(self, consumer: Consumer, producer: Producer) -> None:
        self._retry(producer.abort_transaction)
        self.aborted += 1
        for at in consumer.committed(consumer.assignment(), 60):
            consumer.seek(TopicPartition(at.topic, at.partition, max(at.offset, 0)))

    def _retry(self, end: object) -> None:
        while True:
            try:
                end(60)  # type: ignore[operator]
                return
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise

    def _committed(self, consumer: Consumer) -> int:
        assigned = consumer.assignment()
        if len(assigned) < PARTITIONS:
            return 0
        return sum(max(at.offset, 0) for at in consumer.committed(assigned, 60))


def check_copied(bootstrap: str, count: int) -> None:
    """Assert that the committed output has every number once, and each partition in order.

    A commit is answered before its markers are in all partitions. So the reader may meet the last
    stable offset before the last transaction; it waits for the rest, and then reads to the end.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "check",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            **QUIET,
        }
    )
    consumer.assign([TopicPartition(OUTPUT, index, 0) for index in range(PARTITIONS)])
    found: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}
    ended: set[int] = set()
    deadline = time.monotonic() + 120
    while len(ended) < PARTITIONS or sum(map(len, found.values())) < count:
        if time.monotonic() > deadline:
            break  # the records that are missing now are lost, or their transaction hangs (F72)
        one = consumer.poll(1)
        if one is None:
            continue
        if one.error() is not None:
            ended.add(one.partition() or 0)
            continue
        ended.discard(one.partition() or 0)
        found[one.partition() or 0].append(int(one.value() or b"-1"))
    consumer.close()
    for index, numbers in found.items():
        wanted = list(range(index, count, PARTITIONS))
        twice = [number for number, times in Counter(numbers).items() if times > 1]
        assert not twice, f"partition {index}: {len(twice)} numbers twice: {twice[:10]}"
        lost = set(wanted) - set(numbers)
        assert not lost, f"partition {index}: {len(lost)} numbers lost: {sorted(lost)[:10]}"
        assert numbers == wanted, f"partition {index}: out of order"
