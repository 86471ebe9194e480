"""A job for tests: copies a topic to another one through the transactional sink."""

import argparse
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidelog_pipelines import failures, streams
from tidelog_pipelines.session import spark_session
from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sinks.transactional import TransactionalSink
from tidelog_pipelines.sources.kafka import Subscription, stream


def run(
    spark: SparkSession,
    kafka: KafkaSettings,
    topics: tuple[str, str],
    checkpoint: Path,
    *,
    once: bool = True,
    columns: tuple[str, ...] = ("key", "value", "headers"),
    max_per_batch: int = 20_000,
    patience_seconds: float = 0.0,
    **how: int,
) -> None:
    source, target = topics
    sink = TransactionalSink(kafka, target, str(checkpoint), **how)

    def write(records: DataFrame, epoch: int) -> None:
        sink(records.selectExpr(*columns), epoch)

    def start() -> StreamingQuery:
        found = stream(spark, kafka, Subscription((source,)), "earliest", max_per_batch)
        writer = found.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
        trigger = {"availableNow": True} if once else {"processingTime": "0 seconds"}
        return writer.trigger(**trigger).start()  # type: ignore[arg-type]

    def tell(progress: streams.Progress) -> None:
        streams.say(streams.line(progress))

    streams.run(lambda: [start()], tell, patience_seconds)


def main() -> int:
    parser = argparse.ArgumentParser()
    for flag in ("--bootstrap-server", "--from", "--to", "--checkpoint", "--master", "--conf"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--writers", type=int, default=1)
    parser.add_argument("--once", action="store_true")
    given = vars(parser.parse_args())
    kafka = KafkaSettings(
        bootstrap_server=given["bootstrap_server"],
        master=given["master"],
        conf=(given["conf"],),
    )
    spark = spark_session(kafka, "copy")
    run(
        spark,
        KafkaSettings(bootstrap_server=given["bootstrap_server"]),
        (given["from"], given["to"]),
        Path(given["checkpoint"]),
        once=given["once"],
        writers=given["writers"],
        patience_seconds=300.0,
    )
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(failures.run(main))
