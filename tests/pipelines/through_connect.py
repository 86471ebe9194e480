"""Uses the API through Spark Connect, and prints the results as one JSON object.

This is a separate program, because a process has either regular sessions or sessions of Connect.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.pipelines.event_stories import a_bad_day

from tidelog_pipelines import api
from tidelog_pipelines.jars import cache_directory
from tidelog_pipelines.java import java_home
from tidelog_pipelines.session import JAVA_OPTIONS

SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def session() -> SparkSession:
    os.environ["JAVA_HOME"] = str(java_home(cache_directory()))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_TESTING"] = "1"  # use a free port; other tests may run
    builder = SparkSession.builder.remote("local[2]")
    needed = api.configuration()
    needed[JAVA_OPTIONS] += " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    for key, value in {**needed, **SMALL}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def refusal(function: Any, *arguments: Any, **options: Any) -> str:
    try:
        function(*arguments, **options)
    except api.JobFailed as failed:
        return str(failed)
    return "nothing was refused"


def results(spark: SparkSession, bootstrap: str, topic: str, home: Path) -> dict[str, Any]:
    options: dict[str, Any] = {
        "bootstrap_server": bootstrap,
        "topics": topic,
        "out": home / "lake",
        "group": "",
        "compact_every": 0,
    }
    first = api.ingest(spark, **options)
    with api.start_ingest(spark, **options) as running:
        running.query.processAllAvailable()
        second = running.stop()
    data, ledger = home / "data", home / "ledger.jsonl"
    api.register(spark)
    segments = spark.read.format("segments").load(str(data))
    source = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    decoded = api.decode(source.option("subscribe", topic).load())
    audit: dict[str, Any] = {"ledger": ledger, "replica": {1: data}, "events": "none"}
    found = api.audit(spark, **audit, out=home / "audit")
    events = home / "events.jsonl"
    events.write_text("\n".join(a_bad_day(partitions=4, every=600)) + "\n")
    return {
        "ingested": [first.batches, first.rows, first.quarantined, second.rows],
        "decoded": [row["value"]["id"] for row in decoded.rows.orderBy("offset").collect()],
        "quarantine": decoded.quarantine.count(),
        "segments": segments.count(),
        "audit": [found.verdict.sentence(), found.tables["lost"].count()],
        "flapping": [row["broker"] for row in api.health(spark, events=events).flapping.collect()],
        "refused": [
            refusal(api.audit, spark, **audit),
            refusal(api.ingest, spark, **options, metrics_port=9999),
        ],
    }


if __name__ == "__main__":
    spark = session()
    print(json.dumps(results(spark, sys.argv[1], sys.argv[2], Path(sys.argv[3]))))
    spark.stop()
