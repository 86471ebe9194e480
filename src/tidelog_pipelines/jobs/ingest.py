"""`ingest`: writes topics to tables, one per topic or one for all, each record exactly once.

--out contains the directories `tables/TOPIC`, `quarantine` and `checkpoint`.
"""

import re
import sys
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidelog_pipelines import failures, streams
from tidelog_pipelines.jobs import caught_up
from tidelog_pipelines.jobs.ingest_metrics import served
from tidelog_pipelines.jobs.ingestion import Ingestion, compact
from tidelog_pipelines.jobs.plan import Plan
from tidelog_pipelines.jobs.resuming import resume
from tidelog_pipelines.jobs.summary import INTERRUPTED, summarized
from tidelog_pipelines.jobs.table_choice import TableChoice
from tidelog_pipelines.jobs.value_formats import ValueSource, registry_plan, value_format
from tidelog_pipelines.session import spark_session
from tidelog_pipelines.settings import (
    KafkaSettings,
    check_times,
    located,
    parse,
    setting,
)
from tidelog_pipelines.sinks.catalogs import require_lasting, require_schema
from tidelog_pipelines.sinks.claims import claimed, turn
from tidelog_pipelines.sinks.destinations import destination
from tidelog_pipelines.sinks.group_offsets import GroupOffsets
from tidelog_pipelines.sinks.identities import Identities
from tidelog_pipelines.sinks.modes import APPEND, MODES, Mode
from tidelog_pipelines.sinks.table_formats.formats import FORMATS, ICEBERG
from tidelog_pipelines.sources.checkpoint import Checkpoint, parse_ends
from tidelog_pipelines.sources.kafka import Subscription, Topics, stream
from tidelog_pipelines.sources.registry import Registry, RegistryClient
from tidelog_pipelines.transformations.values.debezium import ENVELOPES, NO_ENVELOPE
from tidelog_pipelines.transformations.values.decoding import Raw, Text
from tidelog_pipelines.transformations.values.strict_json import DEFAULT_LIMITS, MOST_DEPTH, Limits

ABOUT = """\
Write the records of topics to tables, one per topic or one for all (--table), each record exactly
once, even if this job or a broker is killed (kill -9), or if all records are read again. Values are
decoded whole; records
that cannot be decoded go to the quarantine, with the reason. Offsets are also committed to a
consumer group, so that its lag is visible.
"""


@dataclass(frozen=True, kw_only=True)
class IngestSettings(KafkaSettings):
    topics: str = setting("", metavar="NAME,...", meaning="the topics to read")
    pattern: str = setting("", metavar="REGEX", meaning="or all topics whose whole name matches")
    out: str = setting(metavar="DIR", meaning="the directory of the tables and all other output")
    table: str = setting(
        "",
        metavar="NAME",
        meaning="one table for the records of all topics, with the topic in a column: a name in "
        "--out, or of a catalog such as main.sales.orders; each topic has its own, if left out",
    )
    format: str = setting("delta", choices=tuple(FORMATS), meaning="the format of the tables")
    value_format: str = setting(
        "json",
        choices=("json", "avro", "protobuf", "string", "raw"),
        meaning="how values are decoded",
    )
    schema: str = setting(
        "",
        metavar="FILE|DDL",
        meaning="the schema of json values (as 'id BIGINT, item STRING'; inferred, and grown as "
        "values change, if left out), of avro values (a file) or of protobuf values (a .proto file "
        "or a compiled set of descriptors)",
    )
    message: str = setting(
        "", metavar="NAME", meaning="the full name of the protobuf message in --schema"
    )
    schema_registry: str = setting(
        "",
        metavar="URL",
        meaning="a schema registry (Confluent's API); avro and protobuf values are decoded with "
        "the schema that their first bytes name, and tables grow by new schemas; json values are "
        "validated by it",
    )
    schema_registry_auth: str = setting(
        "", metavar="FILE", meaning="a file with user:password for the schema registry"
    )
    avro_registry_header: bool = setting(
        False, meaning="without --schema-registry: avro values begin with its five bytes"
    )
    avro_schema_id: int = setting(
        -1, metavar="ID", meaning="the id of the schema in these bytes; others go to quarantine"
    )
    max_value_bytes: int = setting(
        DEFAULT_LIMITS.value_bytes,
        metavar="N",
        meaning="json, avro and protobuf values that are larger go to quarantine",
    )
    max_depth: int = setting(
        DEFAULT_LIMITS.depth, metavar="N", meaning="json values nested deeper go to quarantine"
    )
    max_fields: int = setting(
        1_000,
        metavar="N",
        meaning="how many fields of json values become columns, if their types are inferred; "
        "further fields are kept in _rescued",
    )
    key_format: str = setting("string", choices=("string", "raw"), meaning="how keys are decoded")
    starting_offsets: str = setting(
        "earliest",
        metavar="earliest|latest|JSON",
        meaning="where the first run begins; later runs continue from the checkpoint",
    )
    on_topic_deleted: str = setting(
        "stop",
        choices=("stop", "skip"),
        meaning="what to do if a topic is deleted that was read before",
    )
    once: bool = setting(False, meaning="read all available records, and end")
    every: str = setting("2 seconds", metavar="TIME", meaning="how often a micro-batch starts")
    max_per_batch: int = setting(
        1_000_000, metavar="N", meaning="the most records of one micro-batch"
    )
    group: str = setting(
        "tidelog-ingest",
        metavar="ID",
        meaning="the group to commit offsets to; '' for none",
    )
    checkpoint: str = setting("", metavar="DIR", meaning="a directory other than OUT/checkpoint")
    compact_every: int = setting(
        20, metavar="N", meaning="compact small files every N micro-batches; 0 for never"
    )
    patience_seconds: int = setting(
        300, metavar="N", meaning="how long to wait for a cluster that does not answer"
    )
    summary: str = setting(
        "", metavar="FILE|-", meaning="write a summary of the run, one JSON object; - for stdout"
    )

    partition_by: str = setting(
        "auto",
        choices=("auto", "date", "partition", "none"),
        meaning="the column that partitions the files of a new Delta table; auto is date, and none "
        "if rows change by key or with --cluster-by",
    )
    cluster_by: str = setting(
        "",
        metavar="COLUMN,...",
        meaning="cluster the tables by these columns, such as key or value.id, once they have them",
    )
    mode: str = setting(
        APPEND,
        choices=MODES,
        meaning="append: a row per record; upsert: a row per key, that of its newest record, and "
        "none if that has no value; history: a row per record, with the time of its validity",
    )
    envelope: str = setting(
        NO_ENVELOPE,
        choices=ENVELOPES,
        meaning="the envelope of values: the row after the change is the value; not with append",
    )
    dead_letter_topic: str = setting(
        "", metavar="NAME", meaning="send quarantined records to this topic, too, at least once"
    )
    metrics_port: int = setting(
        0, metavar="PORT", meaning="serve metrics for Prometheus at this port while the job runs"
    )
    metrics_host: str = setting(
        "127.0.0.1",
        metavar="ADDRESS",
        meaning="the address of this machine for --metrics-port; 0.0.0.0 means all addresses",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.metrics_port < 1 << 16:
            raise ValueError("--metrics-port is a number from 1 to 65535")
        if self.metrics_port and self.remote:
            raise ValueError(
                "--metrics-port does not work with --remote: a server runs the batches"
            )
        if bool(self.topics) == bool(self.pattern):
            raise ValueError("give either --topics or --pattern")
        self.source.check()
        if not 1 <= self.max_depth <= MOST_DEPTH:
            raise ValueError(f"--max-depth is a number from 1 to {MOST_DEPTH}")
        if self.max_value_bytes < 1 or self.max_fields < 1:
            raise ValueError("--max-value-bytes and --max-fields are at least 1")
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ValueError(f"--pattern is not a regular expression: {error}") from None
        is_word = self.starting_offsets.lower() in ("earliest", "latest")
        if not is_word and not parse_ends(self.starting_offsets):
            raise ValueError(
                "--starting-offsets is earliest, latest, or JSON such as "
                f'{{"orders":{{"0":23}}}}, not {self.starting_offsets!r}'
            )
        self.tables.check(self.source)
        if self.dead_letter_topic and self.subscription.covers(self.dead_letter_topic):
            raise ValueError("--dead-letter-topic is one of the topics that the job reads")
        check_times(every=self.every)

    @property
    def tables(self) -> TableChoice:
        """The settings that determine how tables are created."""
        return TableChoice(
            self.table,
            self.format,
            Mode(self.mode, self.envelope),
            self.partition_by,
            self.cluster_by,
        )

    @property
    def limits(self) -> Limits:
        return Limits(self.max_value_bytes, self.max_depth)

    @property
    def source(self) -> ValueSource:
        """The settings that determine how values are decoded."""
        return ValueSource(
            self.value_format,
            self.schema,
            self.message,
            Registry(self.schema_registry, self.schema_registry_auth),
            self.avro_schema_id,
            self.avro_registry_header,
            self.limits,
        )

    @property
    def subscription(self) -> Subscription:
        return Subscription(tuple(filter(None, self.topics.split(","))), self.pattern)

    @property
    def query_name(self) -> str:
        """The name of Spark's query. A session may run several ingests, each with its own --out."""
        return f"ingest {located(self.out)}"

    @property
    def checkpoint_path(self) -> str:
        return located(self.checkpoint or f"{self.out}/checkpoint")


def main(arguments: list[str] | None = None) -> int:
    return failures.run(lambda: ingest(parsed(sys.argv[1:] if arguments is None else arguments)))


def parsed(arguments: list[str]) -> IngestSettings:
    return parse(IngestSettings, "ingest", arguments, ABOUT)


def ingest(settings: IngestSettings) -> int:
    """Run the job in its own session."""
    require(settings)
    with claimed(located(settings.out)):
        found = caught_up.UNKNOWN
        if settings.once:
            path, options = settings.checkpoint_path, caught_up.digest(settings)
            found = caught_up.backlog(settings, settings.subscription, path, options)
        if found.is_nothing:
            caught_up.rest(settings, settings.checkpoint_path, settings.group, settings.summary)
            return 0
        is_iceberg = settings.format == ICEBERG
        spark = spark_session(settings, "ingest", iceberg=is_iceberg, is_short=found.is_short)
        try:
            require_lasting(spark, settings.table)
            run_claimed(spark, settings)
        finally:
            spark.stop()
    return 0


def require(settings: IngestSettings) -> None:
    """Raise if a topic does not exist, or if the cluster or the registry does not answer."""
    topics = Topics(settings)
    topics.require(settings.subscription)
    if settings.dead_letter_topic:
        topics.require(Subscription((settings.dead_letter_topic,)))
    if (registered := registry_plan(settings.source)) is not None:
        RegistryClient(registered.registry).require()


def run(
    spark: SparkSession, settings: IngestSettings, caller: streams.Caller = streams.COMMAND
) -> bool:
    """Run the job in this session. With --once, the job ends when all records are read.

    Returns True if the job has ended by itself, and False if it was interrupted.
    """
    with claimed(located(settings.out)):
        return run_claimed(spark, settings, caller)


def run_claimed(
    spark: SparkSession, settings: IngestSettings, caller: streams.Caller = streams.COMMAND
) -> bool:
    """As `run`, for a caller that has already claimed --out."""
    tables = FORMATS[settings.format](spark, located(settings.out))
    tables.require()
    require_schema(spark, settings.table, is_iceberg=settings.format == ICEBERG)
    checkpoint = Checkpoint(spark, settings.checkpoint_path)
    offsets = GroupOffsets(settings, settings.group) if settings.group else None
    ingestion = Ingestion(plan(settings), report=caller.report)

    def tell(progress: streams.Progress) -> None:
        bad = f", {ingestion.quarantined:,} in quarantine" if ingestion.quarantined else ""
        caller.report(streams.line(progress) + bad)
        if offsets and (refusal := offsets.commit(progress.ends)):
            caller.report(f"tidelog: {refusal}")

    with (
        summarized(settings.summary, checkpoint, tables) as ending,
        served(
            spark,
            (settings.metrics_host, settings.metrics_port),
            settings.query_name,
            ingestion,
        ),
    ):
        try:
            identities = Identities(tables, Topics(settings), settings.table)
            if refusal := resume(checkpoint, settings.subscription, identities, offsets):
                caller.report(f"tidelog: {refusal}")
            is_complete = streams.run(
                lambda: [start(spark, settings, ingestion)],
                tell,
                settings.patience_seconds,
                caller,
            )
            if not is_complete:
                ending.exit = INTERRUPTED
        finally:
            if offsets:
                offsets.close()
        if settings.once and is_complete:
            ends = checkpoint.committed_ends()
            if settings.compact_every:
                with turn(located(settings.out)):
                    compact(tables, [destination(topic, settings.table) for topic in ends])
            if ends:
                ids = identities.check(list(ends))
                caught_up.note(checkpoint, ids, caught_up.digest(settings))
    return is_complete


def start(spark: SparkSession, settings: IngestSettings, ingestion: Ingestion) -> StreamingQuery:
    """Start the query from its checkpoint."""
    ingestion.forget()
    records = stream(
        spark,
        settings,
        settings.subscription,
        settings.starting_offsets,
        settings.max_per_batch,
        may_vanish=settings.on_topic_deleted == "skip",
    )
    writer = records.writeStream.foreachBatch(ingestion).queryName(settings.query_name)
    writer = writer.option("checkpointLocation", settings.checkpoint_path)
    if settings.once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=settings.every).start()


def plan(settings: IngestSettings) -> Plan:
    """The plan: the settings, with formats and schemas in place of their names."""
    return Plan(
        kafka=KafkaSettings(bootstrap_server=settings.bootstrap_server, kafka=settings.kafka),
        out=located(settings.out),
        format=settings.format,
        checkpoint=settings.checkpoint_path,
        key=Text() if settings.key_format == "string" else Raw(),
        value=value_format(settings.source),
        registry=registry_plan(settings.source),
        compact_every=settings.compact_every,
        skips_deleted=settings.on_topic_deleted == "skip",
        limits=settings.limits,
        most_fields=settings.max_fields,
        dead_letter_topic=settings.dead_letter_topic,
        layout=settings.tables.layout,
        table=settings.table,
        mode=settings.mode,
        envelope=settings.envelope,
    )


if __name__ == "__main__":
    sys.exit(main())
