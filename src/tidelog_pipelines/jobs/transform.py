"""`transform`: writes windowed totals of a topic to another topic. It is an example to copy.

A record is counted if it arrives before the watermark has passed its window. The totals are written
in transactions, so a reader with isolation.level=read_committed sees each of them once. Each result
contains the query id, the epoch and the window, which tell a newer total from an older one.
"""

import sys
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidelog_pipelines import failures, streams
from tidelog_pipelines.session import spark_session
from tidelog_pipelines.settings import KafkaSettings, check_times, located, parse, setting
from tidelog_pipelines.sinks.transactional import TransactionalSink
from tidelog_pipelines.sources.checkpoint import Checkpoint
from tidelog_pipelines.sources.kafka import (
    Subscription,
    Topics,
    stream,
    table,
)
from tidelog_pipelines.transformations.totals import (
    events,
    events_or_reasons,
    newest,
    not_events,
    result_records,
    results,
    totals,
)

ABOUT = """\
Count and sum the JSON records of a topic per time window and name, and write the totals to another
topic, exactly once for readers with isolation.level=read_committed. Each result carries the query's
id, the epoch and the window; --show prints the newest total of each window. Records that are not
such JSON are counted, and kept with --quarantine.
"""


@dataclass(frozen=True, kw_only=True)
class TransformSettings(KafkaSettings):
    topic: str = setting("", metavar="NAME", meaning="the topic to read")
    to: str = setting(metavar="NAME", meaning="the topic of the results")
    name_field: str = setting("item", metavar="FIELD", meaning="group by this field")
    amount_field: str = setting("amount", metavar="FIELD", meaning="sum this field")
    time_field: str = setting(
        "", metavar="FIELD", meaning="the event time; the record's timestamp, if left out"
    )
    window: str = setting("1 minute", metavar="TIME", meaning="the length of a window")
    watermark: str = setting("2 minutes", metavar="TIME", meaning="how late a record may arrive")
    mode: str = setting(
        "update",
        choices=("update", "append"),
        meaning="write a total whenever it changes, or once when its window is closed",
    )
    checkpoint: str = setting("", metavar="DIR", meaning="where the query keeps its state")
    quarantine: str = setting(
        "", metavar="DIR", meaning="a table for records that are not such events, with the reason"
    )
    writers: int = setting(
        1,
        metavar="N",
        meaning="how many transactions a micro-batch has, at most one per partition of --to",
    )
    rewrite: bool = setting(
        False,
        meaning="write a micro-batch although it is unknown whether an earlier try was committed",
    )
    once: bool = setting(False, meaning="read all available records, and end")
    every: str = setting("2 seconds", metavar="TIME", meaning="how often a micro-batch starts")
    max_per_batch: int = setting(1_000_000, metavar="N", meaning="the most records of one batch")
    show: bool = setting(False, meaning="print the newest results instead, and end")
    patience_seconds: int = setting(
        300, metavar="N", meaning="how long to wait for a cluster that does not answer"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.show and not (self.topic and self.checkpoint):
            raise ValueError("give --topic and --checkpoint, or --show")
        if self.writers < 1:
            raise ValueError("--writers is a number of at least 1")
        check_times(window=self.window, watermark=self.watermark, every=self.every)


def main(arguments: list[str] | None = None) -> int:
    return failures.run(lambda: transform(parsed(sys.argv[1:] if arguments is None else arguments)))


def parsed(arguments: list[str]) -> TransformSettings:
    return parse(TransformSettings, "transform", arguments, ABOUT)


def transform(settings: TransformSettings) -> int:
    """Run the job in its own session."""
    read = () if settings.show else (settings.topic,)
    Topics(settings).require(Subscription((*read, settings.to)))
    spark = spark_session(settings, "transform")
    try:
        run(spark, settings)
    finally:
        spark.stop()
    return 0


def run(spark: SparkSession, settings: TransformSettings) -> None:
    """Run the job in this session. With --once, the job ends when all records are read."""
    if settings.show:
        show(read_results(spark, settings))
        return
    checkpoint = Checkpoint(spark, located(settings.checkpoint))

    def examined() -> DataFrame:
        subscription = Subscription((settings.topic,))
        records = stream(spark, settings, subscription, "earliest", settings.max_per_batch)
        fields = (settings.name_field, settings.amount_field, settings.time_field)
        return events_or_reasons(records, *fields)

    sink = TransactionalSink(
        KafkaSettings(bootstrap_server=settings.bootstrap_server, kafka=settings.kafka),
        settings.to,
        checkpoint.path,
        writers=settings.writers,
        rewrites=settings.rewrite,
    )

    def write(found: DataFrame, epoch: int) -> None:
        sink(result_records(found, checkpoint.query_id(), epoch), epoch)

    def start() -> StreamingQuery:
        bad = f.count_if(f.col("reason").isNotNull()).alias(streams.BAD)
        happened = events(examined().observe(streams.OBSERVED, bad))
        found = totals(happened, settings.window, settings.watermark)
        writer = found.writeStream.foreachBatch(write).outputMode(settings.mode)
        return _started(writer.queryName("transform"), settings, checkpoint.path)

    def start_quarantine() -> StreamingQuery:
        writer = not_events(examined()).writeStream.format("delta").outputMode("append")
        writer = writer.partitionBy("date").option("path", located(settings.quarantine))
        return _started(writer, settings, f"{located(settings.quarantine)}/_checkpoint")

    def tell(progress: streams.Progress) -> None:
        if progress.query:  # the query that writes the quarantine has no name
            streams.say(streams.line(progress))

    starts = [start, start_quarantine] if settings.quarantine else [start]
    streams.run(lambda: [one() for one in starts], tell, settings.patience_seconds)


def _started(
    writer: DataStreamWriter, settings: TransformSettings, checkpoint: str
) -> StreamingQuery:
    writer = writer.option("checkpointLocation", checkpoint)
    if settings.once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=settings.every).start()


def read_results(spark: SparkSession, settings: TransformSettings) -> DataFrame:
    """The newest total of each window and name."""
    written = table(spark, settings, Subscription((settings.to,)), committed=True)
    return newest(results(written))


def show(found: DataFrame) -> None:
    """Print the totals for users, one line per total."""
    begins = f.date_format("window_start", "yyyy-MM-dd HH:mm:ss").alias("begins")
    for row in found.orderBy("window_start", "name").select(begins, *found.columns).collect():
        print(row["begins"], row["name"], row["count"], f"{row['total']:g}", sep="\t")


if __name__ == "__main__":
    sys.exit(main())
