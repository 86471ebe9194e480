"""Reads topics as DataFrames through Spark's connector, and metadata through a Kafka client."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # they have no __all__
    AdminClient,
    TopicMetadata,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog_pipelines.failures import UNREACHABLE, JobFailed
from tidelog_pipelines.settings import KafkaSettings, pairs
from tidelog_pipelines.sources.checkpoint import Span
from tidelog_pipelines.transformations.record_time import instant

JAVA_ONLY = ("sasl.jaas.", "ssl.truststore.", "ssl.keystore.")
NATIVE_ONLY = "librdkafka."
"""The prefix of client configurations that apply only to librdkafka, not to the Java client."""
ANSWER_SECONDS = 5.0
READ_SECONDS = 30.0
_GONE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
"""The errors of a read at an offset whose record has expired."""
_GARBLED = (KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION, KafkaError.INVALID_MSG)
"""The errors of a read of a batch that cannot be decompressed or decoded."""
QUIET = {"log_level": 0, "socket.timeout.ms": 10_000}


def connector_options(settings: KafkaSettings) -> dict[str, str]:
    """The options of Spark's connector, for reading and for writing."""
    chosen = pairs(settings.kafka, "--kafka")
    options = {
        f"kafka.{key}": value for key, value in chosen.items() if not key.startswith(NATIVE_ONLY)
    }
    return {"kafka.bootstrap.servers": settings.bootstrap_server, **options}


def client_configuration(settings: KafkaSettings) -> dict[str, str | int | float | bool]:
    """The configuration of a confluent-kafka client."""
    chosen = pairs(settings.kafka, "--kafka")
    options = {
        key.removeprefix(NATIVE_ONLY): value
        for key, value in chosen.items()
        if not key.startswith(JAVA_ONLY)
    }
    return {"bootstrap.servers": settings.bootstrap_server, **QUIET, **options}


@dataclass(frozen=True)
class Subscription:
    """Topics by name, or all topics whose whole name matches a pattern."""

    names: tuple[str, ...] = ()
    pattern: str = ""

    @property
    def option(self) -> dict[str, str]:
        if self.pattern:
            return {"subscribePattern": self.pattern}
        return {"subscribe": ",".join(self.names)}

    def covers(self, topic: str) -> bool:
        if self.pattern:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.names


def stream(
    spark: SparkSession,
    settings: KafkaSettings,
    subscription: Subscription,
    starting_offsets: str,
    max_per_batch: int,
    *,
    may_vanish: bool = False,
) -> DataFrame:
    """The records of the topics as a stream. With `may_vanish`, deleted topics are no error."""
    reader = spark.readStream.format("kafka").options(**connector_options(settings))
    found = reader.options(
        **subscription.option,
        startingOffsets=starting_offsets,
        maxOffsetsPerTrigger=str(max_per_batch),
        includeHeaders="true",
        # Data loss: records expire, or their topic is deleted, before they are read.
        failOnDataLoss=str(not may_vanish).lower(),
        groupIdPrefix="tidelog-pipeline",
    ).load()
    return found.withColumn("timestamp", instant(f.col("timestamp")))


def table(
    spark: SparkSession,
    settings: KafkaSettings,
    subscription: Subscription,
    *,
    committed: bool = False,
) -> DataFrame:
    """All records that the topics hold now. With `committed`, without those of open transactions.

    Records of aborted transactions are left out in the same way.
    """
    reader = spark.read.format("kafka").options(**connector_options(settings))
    if committed:
        reader = reader.option("kafka.isolation.level", "read_committed")
    found = reader.options(**subscription.option, includeHeaders="true").load()
    return found.withColumn("timestamp", instant(f.col("timestamp")))


def table_of_spans(
    spark: SparkSession,
    settings: KafkaSettings,
    topic: str,
    spans: Sequence[Span],
    *,
    may_vanish: bool,
) -> DataFrame:
    """The records of a topic in these spans. There must be at least one span.

    With `may_vanish`, records that have expired are left out. Otherwise the read fails.
    """

    def read(span: Span) -> DataFrame:
        reader = spark.read.format("kafka").options(**connector_options(settings))
        found = reader.options(
            assign=json.dumps({topic: [span.partition]}),
            startingOffsets=json.dumps({topic: {span.partition: span.start}}),
            endingOffsets=json.dumps({topic: {span.partition: span.end}}),
            includeHeaders="true",
            failOnDataLoss=str(not may_vanish).lower(),
        ).load()
        return found.withColumn("timestamp", instant(f.col("timestamp")))

    return reduce(DataFrame.unionByName, map(read, spans))


class RecordGarbled(Exception):
    """No client can read a record, because its batch cannot be decompressed or decoded."""


def single_record(
    settings: KafkaSettings, topic: str, partition: int, offset: int
) -> Message | None:
    """One record, read by a Kafka client without Spark. None if this offset has no record.

    Raises `RecordGarbled` if this client cannot read the record either.
    """
    configuration = {
        "group.id": "tidelog-pipeline",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_uncommitted",
    }
    consumer = Consumer({**client_configuration(settings), **configuration})
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        found = consumer.poll(READ_SECONDS)
    finally:
        consumer.close()
    if found is not None and (error := found.error()) is not None:
        if error.code() in _GONE:
            return None
        if error.code() in _GARBLED:
            raise RecordGarbled(error.str())
    if found is None or found.error() is not None:
        raise JobFailed(f"{UNREACHABLE}: offset {offset} of {topic}-{partition} was not received.")
    return found if found.offset() == offset else None


def earliest(settings: KafkaSettings, topic: str, partition: int) -> int:
    """The first offset of a partition that can still be read."""
    consumer = Consumer({**client_configuration(settings), "group.id": "tidelog-pipeline"})
    try:
        where = TopicPartition(topic, partition)
        first, _ = consumer.get_watermark_offsets(where, timeout=READ_SECONDS) or (0, 0)
    except KafkaException as error:
        raise JobFailed(f"{UNREACHABLE}: {error.args[0].str()}.") from None
    finally:
        consumer.close()
    return int(first)


class Topics:
    """The topics of a cluster, queried over a persistent connection."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._where = settings.bootstrap_server
        try:
            self._admin = AdminClient(client_configuration(settings))
        except KafkaException as error:
            raise JobFailed(f"--kafka: {error.args[0].str()}.") from None

    def require(self, subscription: Subscription) -> list[str]:
        """The topics of a subscription. Raises if a topic of the subscription does not exist."""
        existing = self._existing()
        missing = [name for name in subscription.names if name not in existing]
        if missing:
            own = [name for name in existing if not name.startswith("__")]
            there = f"there are {', '.join(own)}" if own else "there are none"
            raise JobFailed(f"topic {missing[0]} does not exist at {self._where}; {there}.")
        return [name for name in existing if subscription.covers(name)]

    def partitions(self, subscription: Subscription) -> dict[str, list[int]]:
        """The partitions of each existing topic of a subscription."""
        found = self._listed()
        return {name: sorted(found[name].partitions) for name in found if subscription.covers(name)}

    def exists(self, name: str) -> bool:
        return name in self._existing()

    def ids(self, names: list[str]) -> dict[str, str]:
        """The id of each existing topic. A topic that is deleted and created again has a new id."""
        if not names:
            return {}
        found = {}
        asked = self._admin.describe_topics(TopicCollection(names), request_timeout=ANSWER_SECONDS)
        for name, answer in asked.items():
            try:
                found[name] = str(answer.result().topic_id)
            except KafkaException:
                continue  # the topic is deleted or unreachable, and the query will report this
        return found

    def _existing(self) -> list[str]:
        return sorted(self._listed())

    def _listed(self) -> dict[str, TopicMetadata]:
        try:
            return self._admin.list_topics(timeout=ANSWER_SECONDS).topics
        except KafkaException as error:
            raise JobFailed(
                f"{UNREACHABLE} at {self._where} ({error.args[0].str()}); is the cluster up, and "
                "--bootstrap-server right?"
            ) from None
