"""Runs `ingest` on a topic, with different divisions into batches, and reads its tables."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DataType
from tests.pipelines import records
from tests.pipelines.nasty.cuts import random_cuts

from tidelog.testing import Cluster
from tidelog_pipelines.jobs import ingest
from tidelog_pipelines.sinks.table_formats.formats import FORMATS


class Written(NamedTuple):
    type: DataType
    """The type of the column `value`."""
    rows: dict[int, Row]
    quarantine: dict[int, tuple[bytes, str]]
    """Offset -> (the original bytes, the reason)."""


def run(spark: SparkSession, cluster: Cluster, topic: str, out: Path, **more: Any) -> None:
    chosen = ingest.IngestSettings(
        bootstrap_server=cluster.bootstrap,
        topics=topic,
        out=str(out),
        once=True,
        group="",
        compact_every=0,
        **more,
    )
    ingest.run(spark, chosen)


def written(spark: SparkSession, topic: str, out: Path, value: Column | None = None) -> Written:
    tables = FORMATS["delta"](spark, str(out))
    table, quarantine = tables.rows(f"tables/{topic}"), tables.rows("quarantine")
    assert table is not None
    assert quarantine is not None
    kind = table.schema["value"].dataType
    if value is not None:
        table = table.withColumn("value", value)
    rows, bad = table.collect(), quarantine.where(f.col("topic") == topic).collect()
    assert len({row["offset"] for row in rows}) == len(rows)
    assert len({row["offset"] for row in bad}) == len(bad)
    return Written(
        kind,
        {row["offset"]: row for row in rows},
        {row["offset"]: (bytes(row["value"]), row["reason"]) for row in bad},
    )


def lose_the_last_commit(out: Path) -> None:
    """Undo the last commit, as if the driver was killed after a write and before its commit."""
    last = max((out / "checkpoint" / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


MODE = "spark.sql.codegen.factoryMode"


@contextmanager
def generated_code(spark: SparkSession) -> Iterator[None]:
    """Decode values by generated code, not by interpreted expressions."""
    before = spark.conf.get(MODE)
    spark.conf.set(MODE, "FALLBACK")  # Spark's default
    try:
        yield
    finally:
        spark.conf.set(MODE, before or "FALLBACK")


def three_cuts(
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    out: Path,
    values: list[bytes | None],
    **more: Any,
) -> list[Path]:
    """Ingest the values three times, each time into another directory.

    The first ingest uses random batches and loses commits, the second uses one batch, and the third
    uses many. Only the second one generates code, as a job does. The others interpret expressions,
    as most of these tests do. So equal tables show that both give the same rows.
    """
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    dice = random.Random(9)
    outs = [out / name for name in ("random", "whole", "many")]
    for number, cut in enumerate(random_cuts(dice, len(values), 2)):
        records.produce(cluster.bootstrap, topic, values[cut])
        size = max(1, (cut.stop - cut.start) // dice.randrange(1, 3))
        run(spark, cluster, topic, outs[0], max_per_batch=size, **more)
        if number % 2:
            lose_the_last_commit(outs[0])
    run(spark, cluster, topic, outs[0], **more)
    with generated_code(spark):
        run(spark, cluster, topic, outs[1], **more)
    run(spark, cluster, topic, outs[2], max_per_batch=len(values) // 4 + 1, **more)
    return outs
