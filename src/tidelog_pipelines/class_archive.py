"""An archive of the classes that Spark loads, so that a JVM starts in half the time.

Java calls it class data sharing: the JVM maps classes into its memory that are parsed and verified
already. The archive is made once for each combination of Java, Spark and jars, in the cache. A JVM
that cannot use the archive ignores it.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyspark

from tidelog_pipelines.java import program_of

DUMP = "TIDELOG_CLASS_ARCHIVE_DUMP"
"""Names the file in the process that makes the archive."""
SWITCH = "TIDELOG_CLASS_ARCHIVE"
"""`off` in this variable starts the JVM without an archive, and makes none."""
QUIETLY = "-Xshare:auto -Xlog:cds*=off -Xlog:class+path=off"


def jvm_options(cache: Path, java: Path, jars: Sequence[Path]) -> str:
    """The options for a JVM with these jars. The first use makes the archive."""
    if dump := os.environ.get(DUMP):
        return f"-XX:ArchiveClassesAtExit={dump} {QUIETLY}"
    if os.environ.get(SWITCH) == "off":
        return ""
    archive = cache / f"spark-classes-{_name(java, jars)}.jsa"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        with archive.with_suffix(".lock").open("w") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            if not archive.exists():  # another process may have made it meanwhile
                _make(archive)
    # If this Java cannot make an archive, the file is empty, and it is not tried again.
    return f"-XX:SharedArchiveFile={archive} {QUIETLY}" if archive.stat().st_size else ""


def _name(java: Path, jars: Sequence[Path]) -> str:
    """A hash of all that the archive depends on. An update of Java changes the program's time."""
    program = program_of(java).resolve()
    parts = [
        str(program),
        str(program.stat().st_mtime),
        pyspark.__version__,
        str(Path(pyspark.__file__).parent),
    ]
    return hashlib.sha256("\n".join([*parts, *map(str, jars)]).encode()).hexdigest()[:12]


def _make(archive: Path) -> None:
    began = time.monotonic()
    words = "tidelog: preparing Spark's classes, so that later starts are faster, once ..."
    print(words, end=" ", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        fresh = Path(scratch) / "archive"
        with archive.with_suffix(".log").open("w") as log:
            subprocess.run(
                [sys.executable, "-P", "-m", __name__, scratch],
                env={**os.environ, DUMP: str(fresh)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,
            )
        if not fresh.exists():
            fresh.touch()
        fresh.rename(archive)  # atomic
    print(f"done in {time.monotonic() - began:.0f} s", file=sys.stderr)


def _load_classes(scratch: Path) -> None:
    """Do in a small session what the jobs do, and end its JVM, which writes the archive."""
    from pyspark import SparkContext
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as f

    from tidelog_pipelines.session import spark_session
    from tidelog_pipelines.settings import SparkSettings
    from tidelog_pipelines.sinks.table_formats.delta_tables import DeltaTables
    from tidelog_pipelines.sinks.tables import Batch

    spark = spark_session(SparkSettings(master="local[2]"), "classes", is_short=True)
    tables = DeltaTables(spark, str(scratch))

    def append(rows: DataFrame, number: int) -> None:
        value = f.from_json(f.lit('{"id":1}'), "id INT, item STRING").alias("value")
        dated = rows.select(f.lit(0).alias("partition"), f.col("value").alias("offset"), value)
        tables.append("t", dated.withColumn("date", f.current_date()), Batch("q", number))

    append(spark.range(2).select(f.col("id").alias("value")), 0)
    rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
    stream = rates.writeStream.foreachBatch(lambda rows, number: append(rows, number + 1))
    query = stream.option("checkpointLocation", str(scratch / "c")).trigger(once=True).start()
    query.awaitTermination()
    tables.compact("t")
    found = tables.rows("t")
    assert found is not None
    found.createOrReplaceTempView("t")
    list(spark.sql("SELECT count(*), max(value.id) FROM t GROUP BY date").toLocalIterator())
    gateway = SparkContext._gateway
    assert gateway is not None
    java = gateway.jvm
    consumer = java.java.util.HashMap()
    consumer["bootstrap.servers"] = "127.0.0.1:1"
    for side in ("key", "value"):
        kind = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        consumer[f"{side}.deserializer"] = kind
    java.org.apache.kafka.clients.consumer.KafkaConsumer(consumer).close()
    spark.readStream.format("kafka").options(
        **{"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
    ).load()
    spark.stop()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    _load_classes(Path(sys.argv[1]))
