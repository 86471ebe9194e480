"""The audit finds exactly the faults that were planted in segments, and DuckDB finds the same."""

from collections import Counter
from pathlib import Path

import duckdb
import pytest
from bench.audit_data import (
    BATCH,
    CORRUPTED,
    DUPLICATED,
    LOST,
    PARTITIONS,
    REORDERED,
    TOPIC,
    Faults,
    plan,
    write_ledger,
    write_segments,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog_pipelines.jobs.audit import Inputs, conduct
from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.contents import on_disks
from tidelog_pipelines.sources.event_logs import recorded_events
from tidelog_pipelines.sources.ledgers import acknowledged
from tidelog_pipelines.transformations.range_digests import Stretch
from tidelog_pipelines.transformations.verdict import Verdict

ROWS = 60_000


class Planted:
    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.faults: Faults = plan(ROWS)
        self.ledger, self.readable = str(home / "ledger"), str(home / "readable")
        write_segments(home / "data", ROWS, self.faults)
        write_ledger(spark, self.ledger, ROWS)
        on_disks(spark, [TOPIC], {1: str(home / "data")}).write.parquet(self.readable)
        inputs = Inputs(
            acknowledged(spark, [self.ledger]),
            spark.read.parquet(self.readable),
            recorded_events(spark, KafkaSettings(), "none"),
            reread=lambda few: on_disks(spark, [TOPIC], {1: str(home / "data")}, few),
        )
        self.verdict, self.tables = conduct(inputs, lambda table, name: table.localCheckpoint())


@pytest.fixture(scope="module")
def planted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return Planted(spark, tmp_path_factory.mktemp("planted"))


def places(table: DataFrame) -> set[tuple[int, int]]:
    return {(row["partition"], row["offset"]) for row in table.collect()}


def test_exactly_the_planted_faults_are_found(planted: Planted) -> None:
    assert planted.verdict == Verdict(
        acknowledged=ROWS,
        readable=ROWS - LOST + DUPLICATED,
        lost=LOST,
        duplicated=DUPLICATED,
        reordered=REORDERED,
        corrupted=CORRUPTED,
    )
    faults, tables = planted.faults, planted.tables
    assert places(tables["lost"]) == faults.lost
    assert places(tables["corrupted"]) == faults.corrupted
    assert places(tables["reordered"]) == set(faults.reordered)
    copied = tables["duplicated"].select("partition", tables["duplicated"]["first_offset"])
    assert places(copied.withColumnRenamed("first_offset", "offset")) == faults.duplicated


def test_duckdb_counts_the_same(planted: Planted) -> None:
    """DuckDB classifies the records in one query, without the digests and stages of the audit."""
    found = duckdb.sql(
        f"""
        WITH a AS (SELECT * FROM '{planted.ledger}/*.parquet'),
             r AS (SELECT * FROM '{planted.readable}/*.parquet' WHERE damage IS NULL),
             absent AS (SELECT * FROM a ANTI JOIN r USING (partition, "offset", checksum)),
             stray AS (SELECT * FROM r ANTI JOIN a USING (partition, "offset", checksum))
        SELECT CASE
            WHEN checksum IN (SELECT checksum FROM stray) THEN 'reordered'
            WHEN (partition, "offset") IN (SELECT (partition, "offset") FROM stray) THEN 'corrupted'
            ELSE 'lost' END AS kind
        FROM absent
        UNION ALL
        SELECT 'duplicated' FROM stray
        WHERE checksum IN (SELECT checksum FROM a)
          AND checksum NOT IN (SELECT checksum FROM absent)
        """
    ).fetchall()

    assert Counter(kind for (kind,) in found) == {
        "lost": planted.verdict.lost,
        "corrupted": planted.verdict.corrupted,
        "reordered": planted.verdict.reordered,
        "duplicated": planted.verdict.duplicated,
    }


def test_a_few_stretches_are_read_again_without_the_rest(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_segments(tmp_path, 6 * 5 * BATCH)
    few = [Stretch(TOPIC, 2, BATCH + 1, 2 * BATCH + 1), Stretch(TOPIC, 4, 0, 1)]

    found = (
        on_disks(spark, [TOPIC], {1: str(tmp_path)}, few)
        .groupBy("partition")
        .agg(f.min("offset").alias("first"), f.max("offset").alias("last"))
    )

    assert {tuple(row) for row in found.collect()} == {
        (2, BATCH, 3 * BATCH - 1),
        (4, 0, BATCH - 1),
    }
    assert on_disks(spark, [TOPIC], {1: str(tmp_path)}, []).isEmpty()


def test_every_partition_is_read_by_a_task_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    write_segments(tmp_path, 12)

    assert on_disks(spark, [TOPIC], {1: str(tmp_path)}).rdd.getNumPartitions() == PARTITIONS
