"""Writes one part of a micro-batch in one transaction, in a Python worker of Spark.

The order of the steps makes the write exactly-once. (1) `fence` ends all transactions that an
earlier try of this writer has left, and no earlier try can commit afterwards. (2) `marker` then
tells for certain whether an earlier try was committed. (3) Only if not, the records and the new
marker are written in one transaction.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

import pyarrow as pa
from pyspark import TaskContext, cloudpickle

from tidelog_pipelines.failures import TRANSACTION_LOST
from tidelog_pipelines.sinks.transactional.markers import Marker, read_marker

T = TypeVar("T")

PATIENCE_SECONDS = 120.0
STEP_SECONDS = 15.0
PAUSE_SECONDS = 0.1
OUTCOME = "writer INT, records BIGINT, is_repeated BOOLEAN"


class Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None = None
    partition: int | None = None


class WriteFailed(Exception):
    """The part was not written, or nobody knows whether it was. The message is one sentence."""


class Transactions(Protocol):
    """The transactions of one writer. Tests have an implementation in memory."""

    def fence(self) -> None: ...

    def marker(self) -> Marker | None: ...

    def begin(self) -> None: ...

    def send(self, record: Record) -> None: ...

    def commit(self, marker: Marker) -> None: ...

    def abort(self) -> None: ...


class Outcome(NamedTuple):
    records: int
    is_repeated: bool
    """Whether an earlier try had committed the part, so that nothing was written."""


def write_once(transactions: Transactions, marker: Marker, records: Iterable[Record]) -> Outcome:
    """Write the records and the marker, unless an earlier try has committed them."""
    transactions.fence()
    before = transactions.marker()
    if before is not None and before.epoch >= marker.epoch:
        if before.epoch == marker.epoch and before != marker:
            raise WriteFailed(
                f"{TRANSACTION_LOST}: an earlier try of micro-batch {marker.epoch} has ended."
            )
        return Outcome(0, is_repeated=True)
    transactions.begin()
    count = 0
    try:
        for record in records:
            transactions.send(record)
            count += 1
        transactions.commit(marker)
    except BaseException:
        # The next try ends the transaction as well. Ending it now lets readers continue sooner.
        with contextlib.suppress(Exception):
            transactions.abort()
        raise
    return Outcome(count, is_repeated=False)


class Names(NamedTuple):
    """The names that belong to a query, and to no other."""

    topic: str
    prefix: str

    def transactional_id(self, writer: int) -> str:
        return f"{self.prefix}-{writer}"

    @property
    def group(self) -> str:
        """The group of the markers."""
        return self.prefix

    @property
    def settings_group(self) -> str:
        """The group whose only offset is the number of writers."""
        return f"{self.prefix}-writers"


class KafkaTransactions:
    """Transactions of a real cluster."""

    def __init__(self, configuration: dict[str, Any], names: Names, writer: int) -> None:
        from confluent_kafka import Consumer, Producer

        self._names, self._writer = names, writer
        self._deadline = time.monotonic() + PATIENCE_SECONDS
        self._producer = Producer(
            {
                "linger.ms": 20,
                "transaction.timeout.ms": 300_000,
                "partitioner": "murmur2_random",  # keys go where Java's clients put them
                **configuration,
                "transactional.id": names.transactional_id(writer),
                "enable.idempotence": True,
                "acks": "all",
            }
        )
        self._consumer = Consumer(group_configuration(configuration, names.group))

    def fence(self) -> None:
        insist(lambda: self._producer.init_transactions(STEP_SECONDS), self._deadline)

    def marker(self) -> Marker | None:
        topic, writers = self._names.topic, [self._writer]
        found = insist(lambda: committed(self._consumer, topic, writers), self._deadline)
        return found.get(self._writer)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, record: Record) -> None:
        fields: dict[str, Any] = {}
        if record.headers:
            fields["headers"] = record.headers
        if record.partition is not None:
            fields["partition"] = record.partition
        while True:
            try:
                self._producer.produce(self._names.topic, record.value, record.key, **fields)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def commit(self, marker: Marker) -> None:
        from confluent_kafka import TopicPartition

        where = TopicPartition(self._names.topic, self._writer, marker.offset, marker.metadata)
        group = self._consumer.consumer_group_metadata()
        self._deadline = time.monotonic() + PATIENCE_SECONDS
        send = self._producer.send_offsets_to_transaction
        insist(
            lambda: bounded(lambda: send([where], group, STEP_SECONDS), PATIENCE_SECONDS),
            self._deadline,
        )
        insist(lambda: self._producer.commit_transaction(STEP_SECONDS), self._deadline)

    def abort(self) -> None:
        self._producer.abort_transaction(STEP_SECONDS)

    def close(self) -> None:
        self._consumer.close()


def bounded(call: Callable[[], T], seconds: float) -> T:
    """The result of a call that may never return; raises `WriteFailed` if it takes too long.

    librdkafka ignores the timeout of send_offsets_to_transaction, and may wait forever if the
    group's coordinator dies (its issues 5456 and 5511). The thread is left behind. The next try
    fences its producer.
    """
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failures:
        raise failures[0]
    if not results:
        raise WriteFailed(f"{TRANSACTION_LOST}: the client waited for a coordinator that is gone.")
    return results[0]


def insist(call: Callable[[], T], deadline: float) -> T:
    """Repeat a call until it succeeds, fails for good, or the deadline has passed."""
    from confluent_kafka import KafkaException

    while True:
        try:
            return call()
        except KafkaException as error:
            if not _may_pass(error.args[0]) or time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_SECONDS)


def _may_pass(problem: Any) -> bool:
    """Whether a client's error is due to a coordinator that moves, or to a transaction that ends.

    The calls of transactions mark such errors themselves; other calls do not.
    """
    from confluent_kafka import KafkaError

    return problem.retriable() or problem.code() in (
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._WAIT_COORD,
    )


def group_configuration(configuration: dict[str, Any], group: str) -> dict[str, Any]:
    """The configuration of a client that reads and commits offsets of a group.

    The client waits for offsets of open transactions, because its isolation level is
    read_committed.
    """
    own = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed"}
    return {**configuration, **own}


def committed(consumer: Any, topic: str, writers: Iterable[int]) -> dict[int, Marker]:
    """The markers of these writers."""
    from confluent_kafka import KafkaException, TopicPartition

    asked = [TopicPartition(topic, writer) for writer in writers]
    found = {}
    for one in consumer.committed(asked, timeout=STEP_SECONDS):
        if one.error is not None:
            raise KafkaException(one.error)
        if (marker := read_marker(one.offset, one.metadata)) is not None:
            found[one.partition] = marker
    return found


def part_writer(
    configuration: dict[str, Any], names: Names, marker: Marker
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that writes each partition of a DataFrame in a transaction of its own.

    The number of the partition is the number of the writer.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        writer = context.partitionId()
        assert writer < marker.writers
        outcome = _written(configuration, names, writer, marker, batches)
        for _ in batches:  # Spark expects that a task reads all of its input
            pass
        columns = (
            pa.array([writer], pa.int32()),
            pa.array([outcome.records], pa.int64()),
            pa.array([outcome.is_repeated], pa.bool_()),
        )
        yield pa.RecordBatch.from_arrays(list(columns), ["writer", "records", "is_repeated"])

    return run


def _written(
    configuration: dict[str, Any],
    names: Names,
    writer: int,
    marker: Marker,
    batches: Iterable[pa.RecordBatch],
) -> Outcome:
    from confluent_kafka import KafkaException

    transactions = KafkaTransactions(configuration, names, writer)
    try:
        return write_once(transactions, marker, _records(batches))
    except KafkaException as error:
        raise WriteFailed(sentence(error, names.topic)) from None
    finally:
        transactions.close()


def sentence(error: Exception, topic: str) -> str:
    """The sentence for a client's error. TRANSACTION_LOST begins it if a new try may succeed."""
    from confluent_kafka import KafkaError

    problem = error.args[0]
    for_good = (
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError._UNSUPPORTED_FEATURE,
        KafkaError._INVALID_ARG,
        KafkaError._UNKNOWN_PARTITION,
    )
    if problem.code() in for_good:
        return f"topic {topic} cannot be written: {problem.str()}."
    return f"{TRANSACTION_LOST}: {problem.str()}."


def _records(batches: Iterable[pa.RecordBatch]) -> Iterator[Record]:
    for batch in batches:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        nothing = [None] * batch.num_rows
        key, value, headers, partition = (
            columns[name].to_pylist() if name in columns else nothing
            for name in ("key", "value", "headers", "partition")
        )
        for one in zip(key, value, headers, partition, strict=True):
            found = one[2] and [(header["key"], header["value"]) for header in one[2]]
            yield Record(one[0], one[1], found, one[3])


for _name in (read_marker.__module__, __name__):
    # Executors need not have this package: the driver sends them the code.
    cloudpickle.register_pickle_by_value(sys.modules[_name])  # type: ignore[no-untyped-call]
