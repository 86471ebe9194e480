"""`tables run`: writes each table topic to its table, with one streaming query for all topics.

--out contains the directories `tables/TOPIC`, `quarantine` and `checkpoints`, and the file
`_tables.json` with the states. Each start of the query uses a new checkpoint and begins at the
offsets in this file. So topics can be added and removed between two queries.
"""

import json
import shutil
import sys
import time
from dataclasses import dataclass, replace
from threading import Event
from uuid import uuid4

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from tidelog_pipelines import failures, streams
from tidelog_pipelines.failures import JobFailed, sentence_for
from tidelog_pipelines.jobs.ingest import IngestSettings
from tidelog_pipelines.jobs.topic_tables.book import ERROR, NAME, Book
from tidelog_pipelines.jobs.topic_tables.choice import Chosen, choose
from tidelog_pipelines.jobs.topic_tables.table_ingestion import TableIngestion
from tidelog_pipelines.jobs.topic_tables.table_metrics import served_tables
from tidelog_pipelines.jobs.topic_tables.table_plans import TablePlans
from tidelog_pipelines.jobs.topic_tables.table_upkeep import TableUpkeep
from tidelog_pipelines.jobs.topic_tables.topic_failures import topics_own
from tidelog_pipelines.jobs.topic_tables.watch import Look, Watch
from tidelog_pipelines.session import spark_session
from tidelog_pipelines.settings import (
    KafkaSettings,
    check_times,
    has_scheme,
    like,
    located,
    parse,
    setting,
)
from tidelog_pipelines.sinks.claims import claimed
from tidelog_pipelines.sinks.destinations import destination
from tidelog_pipelines.sinks.group_offsets import GroupOffsets
from tidelog_pipelines.sinks.quarantine import QUARANTINE
from tidelog_pipelines.sinks.stored_formats import StoredFormats, needs_iceberg
from tidelog_pipelines.sinks.table_formats.formats import CHANGING, DELTA, ICEBERG
from tidelog_pipelines.sources.checkpoint import Ends
from tidelog_pipelines.sources.kafka import Subscription, stream
from tidelog_pipelines.sources.registry import Registry

QUERY = "tables"
EARLIEST = -2
"""The number by which Spark's connector denotes the first offset of a partition."""
ABOUT = """\
Keep a table of each topic that has the setting tidelog.table.enable, with one Spark query for all
of them. Topics are added and removed while the job runs. A topic that fails does not hold up the
others. `tidelog tables` shows the states. For brokers that do not know the setting, --topics and
--tables-file choose the topics.
"""


@dataclass(frozen=True, kw_only=True)
class TablesSettings(KafkaSettings):
    out: str = setting(metavar="DIR", meaning="the directory of the tables and all other output")
    topics: str = setting(
        "", metavar="NAME,...", meaning="topics that are tables with the default settings"
    )
    tables_file: str = setting(
        "",
        metavar="FILE",
        meaning="a TOML file of tables: a section [TOPIC] with value-format, mode, partition-by, "
        "cluster-by, retention-ms and format; it is read again at each look",
    )
    format: str = setting(
        DELTA,
        choices=tuple(CHANGING),
        meaning="the format of tables whose topics do not set tidelog.table.format",
    )
    interval: float = setting(
        10.0, metavar="SECONDS", meaning="how often to look for new tables and changed settings"
    )
    once: bool = setting(False, meaning="read all available records, and end")
    every: str = like(IngestSettings, "every")
    max_per_batch: int = like(IngestSettings, "max_per_batch")
    group: str = setting(
        "tidelog-tables", metavar="ID", meaning="the group to commit offsets to; '' for none"
    )
    compact_every: int = setting(
        20, metavar="N", meaning="compact a table after every N micro-batches of it; 0 for never"
    )
    upkeep_seconds: float = setting(
        3600.0,
        metavar="SECONDS",
        meaning="how often to delete expired rows and merge small files",
    )
    schema_registry: str = setting(
        "", metavar="URL", meaning="the schema registry of topics of format avro and protobuf"
    )
    schema_registry_auth: str = like(IngestSettings, "schema_registry_auth")
    state_file: str = setting(
        "", metavar="FILE", meaning="a local file for the states, if --out is not a local directory"
    )
    patience_seconds: int = like(IngestSettings, "patience_seconds")
    metrics_port: int = like(IngestSettings, "metrics_port")
    metrics_host: str = like(IngestSettings, "metrics_host")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.remote:
            raise ValueError("--remote is not possible: this process runs the batches")
        if not 0 <= self.metrics_port < 1 << 16:
            raise ValueError("--metrics-port is a number from 1 to 65535")
        if not (0 < self.interval <= 86_400 and self.upkeep_seconds > 0):
            raise ValueError("--interval and --upkeep-seconds are above 0; --interval up to a day")
        if has_scheme(self.out) and not self.state_file:
            raise ValueError("an --out that is not a local directory needs a --state-file")
        if self.schema_registry and not self.schema_registry.startswith(("http://", "https://")):
            raise ValueError("--schema-registry is a URL such as http://HOST:8081")
        check_times(every=self.every)

    @property
    def state_path(self) -> str:
        return located(self.state_file or f"{self.out}/{NAME}")

    @property
    def checkpoints(self) -> str:
        """The directory of the checkpoints. Each query has its own checkpoint."""
        return f"{located(self.out)}/checkpoints"

    @property
    def plans(self) -> TablePlans:
        return TablePlans(
            KafkaSettings(bootstrap_server=self.bootstrap_server, kafka=self.kafka),
            located(self.out),
            Registry(self.schema_registry, self.schema_registry_auth),
            self.compact_every,
            self.format,
        )


def main(arguments: list[str] | None = None) -> int:
    return failures.run(lambda: tables(parsed(sys.argv[1:] if arguments is None else arguments)))


def parsed(arguments: list[str]) -> TablesSettings:
    return parse(TablesSettings, "run", arguments, ABOUT, "tables")


def tables(settings: TablesSettings) -> int:
    """Run the job in its own session."""
    with claimed(located(settings.out)):
        watch = _watch(settings)
        first = watch.look()
        spark = spark_session(settings, "tables", iceberg=_needs_iceberg(settings, first))
        try:
            TablesJob(spark, settings, watch, first).run()
        finally:
            spark.stop()
    return 0


def run(spark: SparkSession, settings: TablesSettings) -> None:
    """Run the job in this session. With --once, the job ends when all records are read."""
    with claimed(located(settings.out)):
        watch = _watch(settings)
        TablesJob(spark, settings, watch, watch.look()).run()


def _needs_iceberg(settings: TablesSettings, look: Look) -> bool:
    chosen = {one.settings.table_format for one in look.tables.values()}
    return ICEBERG in {settings.format, *chosen} or needs_iceberg(located(settings.out))


def _watch(settings: TablesSettings) -> Watch:
    return Watch(settings, filter(None, settings.topics.split(",")), settings.tables_file)


class TablesJob:
    def __init__(
        self, spark: SparkSession, settings: TablesSettings, watch: Watch, look: Look
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._watch, self._look = watch, look
        self._next_look = time.monotonic() + settings.interval
        self._book = Book(settings.state_path, settings.interval)
        self._tables = StoredFormats(spark, located(settings.out), settings.format)
        self._plans = replace(settings.plans, has_iceberg=self._tables.can_be(ICEBERG))
        self._upkeep = TableUpkeep(
            self._tables, located(settings.out), self._book, settings.upkeep_seconds
        )
        self._patience = streams.Patience(settings.patience_seconds)
        self._offsets = GroupOffsets(settings, settings.group) if settings.group else None

    def run(self) -> None:
        self._count()
        with (
            streams.interruptions() as interrupted,
            served_tables(
                (self._settings.metrics_host, self._settings.metrics_port), self._book, self._ends
            ),
        ):
            try:
                self._work(interrupted)
                if self._settings.once:
                    self._upkeep.run(self._look, interrupted)
                    self._report_failed()
            finally:
                self._book.rest()
                if self._offsets:
                    self._offsets.close()

    def _report_failed(self) -> None:
        topics = self._look.tables
        if failed := [topic for topic in topics if self._book.of(topic).state == ERROR]:
            raise JobFailed(
                f"{len(failed)} of {len(topics)} tables have failed: "
                f"{', '.join(failed)}; `tidelog tables` shows why."
            )

    def _work(self, interrupted: Event) -> None:
        """Run queries one after the other.

        Ends when interrupted or, with --once, when all is read.
        """
        is_once = self._settings.once
        while not interrupted.is_set():
            chosen = choose(self._look, self._book, self._plans.of)
            try:
                if not chosen and not is_once:
                    interrupted.wait(self._settings.interval)
                    self._look_again()
                elif not chosen or not self._query(chosen, interrupted) or is_once:
                    return
            except (JobFailed, StreamingQueryException) as error:
                self._wait_or_raise(error, interrupted)

    def _wait_or_raise(self, error: Exception, interrupted: Event) -> None:
        """Wait, then look for the topics again.

        If the failures have lasted for too long, raise the error instead.
        """
        sentence = sentence_for(error)
        if sentence is None or self._patience.is_over():
            raise error
        streams.say(f"tidelog: {sentence} Trying again.")
        interrupted.wait(streams.RETRY_SECONDS)
        self._next_look = time.monotonic()
        self._look_again()

    def _query(self, chosen: Chosen, interrupted: Event) -> bool:
        """Read these topics until the choice of topics changes; returns False if interrupted."""
        self._remove_checkpoints()  # a killed job leaves its checkpoint
        # If the state file is lost, the numbers of checkpoints start again. Old checkpoints may
        # still exist, so the name also has a random part.
        name = f"{self._book.next_checkpoint()}-{uuid4().hex}"
        checkpoint = f"{self._settings.checkpoints}/{name}"
        plans = {topic: self._plans.of(one, checkpoint) for topic, one in chosen.items()}
        ingestion = TableIngestion(self._plans.shared(checkpoint), plans, self._book)
        starts = self._starts(chosen)

        def is_enough() -> bool:
            if self._settings.once:
                return False
            self._look_again()
            self._upkeep.if_due(self._look, interrupted)
            if choose(self._look, self._book, self._plans.of) != chosen:
                ingestion.close()
            return ingestion.is_closed and ingestion.is_idle

        try:
            return streams.run(
                lambda: [self._start(ingestion, checkpoint, starts)],
                lambda progress: self._tell(progress, ingestion),
                self._settings.patience_seconds,
                streams.Caller(stop=interrupted),
                is_enough,
            )
        finally:
            self._remove_checkpoints()

    def _remove_checkpoints(self) -> None:
        """Remove the checkpoints of earlier queries, if they are on the local file system."""
        if not has_scheme(self._settings.out):
            shutil.rmtree(self._settings.checkpoints, ignore_errors=True)

    def _starts(self, chosen: Chosen) -> Ends:
        """For each topic and partition, the offset at which the query begins."""
        return {
            topic: {
                partition: self._book.of(topic).offsets.get(partition, EARLIEST)
                for partition in self._look.tables[topic].partitions
            }
            for topic in chosen
        }

    def _start(self, ingestion: TableIngestion, checkpoint: str, starts: Ends) -> StreamingQuery:
        ingestion.forget()
        records = stream(
            self._spark,
            self._settings,
            Subscription(tuple(starts)),
            json.dumps(starts),
            self._settings.max_per_batch,
            may_vanish=True,
        )
        writer = records.writeStream.foreachBatch(ingestion).queryName(QUERY)
        writer = writer.option("checkpointLocation", checkpoint)
        if self._settings.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=self._settings.every).start()

    def _tell(self, progress: streams.Progress, ingestion: TableIngestion) -> None:
        self._patience.succeed()
        records = ingestion.first_records if progress.batch == 0 else progress.records
        if records:
            streams.say(streams.line(progress._replace(records=records)))
        if self._offsets and (refusal := self._offsets.commit(self._book.offsets())):
            streams.say(f"tidelog: {refusal}")

    def _look_again(self) -> None:
        """Ask the cluster for its topics, if it is time.

        After an error, use the last answer.
        """
        if time.monotonic() < self._next_look:
            return
        try:
            self._look = self._watch.look()
        except (JobFailed, OSError) as error:
            streams.say(f"tidelog: {sentence_for(error)}")
        self._next_look = time.monotonic() + self._settings.interval

    def _ends(self) -> Ends:
        return self._look.ends

    def _count(self) -> None:
        """Count the rows of existing tables; a killed job may not have noted its last rows."""
        bad = self._tables.own.rows(QUARANTINE)
        counts = [] if bad is None else bad.groupBy("topic").agg(f.count("*").alias("n")).collect()
        quarantined = {row["topic"]: row["n"] for row in counts}
        for topic in self._book.tables:
            self._book.note(topic, quarantined=quarantined.get(topic, 0))
            try:
                name = destination(topic).table
                rows = self._tables.of(name).rows(name)
                self._book.note(topic, rows=0 if rows is None else rows.count())
            except Exception as error:
                if (sentence := topics_own(error)) is None:
                    raise
                streams.say(f"tidelog: {topic}: {sentence}")


if __name__ == "__main__":
    sys.exit(main())
