"""The sink: the function for foreachBatch, which runs in the driver."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sinks.transactional import markers
from tidelog_pipelines.sinks.transactional.markers import Marker, Planned
from tidelog_pipelines.sinks.transactional.writer import (
    OUTCOME,
    PATIENCE_SECONDS,
    STEP_SECONDS,
    KafkaTransactions,
    Names,
    committed,
    group_configuration,
    insist,
    part_writer,
    sentence,
)
from tidelog_pipelines.sources.checkpoint import Checkpoint
from tidelog_pipelines.sources.kafka import Subscription, Topics, client_configuration

T = TypeVar("T")

TYPES = {
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "partition": "int",
}
"""The columns that become parts of a record. Only `value` is required."""


class Written(NamedTuple):
    """What the sink has done with a micro-batch."""

    epoch: int
    records: int
    repeated: int
    """How many writers had committed their part in an earlier try."""


class TransactionalSink:
    """Writes each micro-batch of a query in transactions, one per writer.

    With one writer, a micro-batch is one transaction, and the query may compute other rows when the
    micro-batch is tried again. With several writers, each has its own transaction, and the query
    must compute the same rows again.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topic: str,
        checkpoint: str,
        *,
        writers: int = 1,
        rewrites: bool = False,
        report: Callable[[Written], None] = lambda written: None,
    ) -> None:
        """`checkpoint` is the checkpoint of the query.

        With `rewrites`, a micro-batch is also written if its markers may have expired.
        """
        if writers < 1:
            raise ValueError("a sink has at least one writer")
        self._kafka = kafka
        self._topic = topic
        self._path = checkpoint
        self._writers = writers
        self._rewrites = rewrites
        self._report = report

    def __call__(self, records: DataFrame, epoch: int) -> None:
        checkpoint = Checkpoint(records.sparkSession, self._path)
        planned = planned_batch(checkpoint, epoch)
        names = Names(self._topic, f"tidelog-sink-{checkpoint.query_id()}")
        configuration = dict(client_configuration(self._kafka))
        self._require_partitions()
        try:
            writers = self._prepare(configuration, names, planned)
        except KafkaException as error:
            raise JobFailed(sentence(error, self._topic)) from None
        except markers.Refused as refusal:
            raise JobFailed(str(refusal)) from None
        marker = Marker(epoch, writers, planned.plan)
        parts = divided(records, writers)
        found = parts.mapInArrow(part_writer(configuration, names, marker), OUTCOME).collect()
        self._report(
            Written(
                epoch,
                sum(one["records"] for one in found),
                sum(one["is_repeated"] for one in found),
            )
        )

    def _require_partitions(self) -> None:
        found = Topics(self._kafka).partitions(Subscription((self._topic,)))
        if self._topic not in found:
            raise JobFailed(f"topic {self._topic} does not exist.")
        if (count := len(found[self._topic])) < self._writers:
            raise JobFailed(
                f"topic {self._topic} has {count} partitions, and the sink has {self._writers} "
                "writers: it can have at most one per partition."
            )

    def _prepare(self, configuration: dict[str, Any], names: Names, planned: Planned) -> int:
        """The number of writers of this micro-batch. Raises `Refused` if it must not be written."""
        before = self._stored_writers(configuration, names)
        if before not in (None, self._writers):
            for writer in range(before or 0):
                _fence(configuration, names, writer)
        seen = range(max(self._writers, before or 0))
        with _reading(configuration, names.group) as consumer:
            found = _insist(lambda: committed(consumer, names.topic, seen))
        markers.check(planned, found, time.time_ns() // 1_000_000, rewrites=self._rewrites)
        if before == self._writers:
            return before
        if before is not None and markers.must_keep_writers(planned.epoch, found):
            return before
        with _reading(configuration, names.settings_group) as consumer:
            number = TopicPartition(names.topic, 0, self._writers)
            _insist(lambda: consumer.commit(offsets=[number], asynchronous=False))
        return self._writers

    def _stored_writers(self, configuration: dict[str, Any], names: Names) -> int | None:
        """The number of writers of the last try of a micro-batch. None if there was none."""
        with _reading(configuration, names.settings_group) as consumer:
            asked = [TopicPartition(names.topic, 0)]
            [found] = _insist(lambda: consumer.committed(asked, timeout=STEP_SECONDS))
        if found.error is not None:
            raise KafkaException(found.error)
        return found.offset if found.offset > 0 else None


def _insist(call: Callable[[], T]) -> T:
    return insist(call, time.monotonic() + PATIENCE_SECONDS)


@contextmanager
def _reading(configuration: dict[str, Any], group: str) -> Iterator[Consumer]:
    consumer = Consumer(group_configuration(configuration, group))
    try:
        yield consumer
    finally:
        consumer.close()


def _fence(configuration: dict[str, Any], names: Names, writer: int) -> None:
    transactions = KafkaTransactions(configuration, names, writer)
    try:
        transactions.fence()
    finally:
        transactions.close()


def planned_batch(checkpoint: Checkpoint, epoch: int) -> Planned:
    """A micro-batch as Spark has planned it. A micro-batch that is tried again has the same plan.

    The plan is a digest of the end offsets of all sources.
    """
    settings, offsets = checkpoint.planned(epoch)
    digest = hashlib.sha256("\n".join(offsets).encode()).hexdigest()[:16]
    return Planned(epoch, digest, int(json.loads(settings)["batchTimestampMs"]))


def divided(records: DataFrame, writers: int) -> DataFrame:
    """The records in one partition per writer. All records of a key have the same writer."""
    names = [name for name in TYPES if name in records.columns]
    if "value" not in names:
        raise JobFailed(
            "the rows for a topic have a column named value, and may have key, headers "
            "and partition."
        )
    found = records.select(*(f.col(name).cast(TYPES[name]).alias(name) for name in names))
    return found.repartition(writers, _by(found.schema))


def _by(schema: StructType) -> Column:
    """The value that decides which writer gets a record."""
    if "key" not in schema.names:
        return f.xxhash64("value")
    return f.xxhash64(f.coalesce("key", "value"))
