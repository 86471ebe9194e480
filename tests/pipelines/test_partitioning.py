"""A new table is partitioned as chosen, and keeps its partitioning."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipelines import records
from tests.pipelines.quarantined_records import Lake

from tidelog.testing import Cluster
from tidelog_pipelines.jobs import ingest, replay


@pytest.mark.parametrize(("choice", "columns"), [("partition", ["partition"]), ("none", [])])
def test_a_table_keeps_the_partitioning_of_its_first_run(
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    choice: str,
    columns: list[str],
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)

    def run(value: bytes, **more: str) -> None:
        records.produce(cluster.bootstrap, topic, [value])
        chosen = ingest.IngestSettings(
            bootstrap_server=cluster.bootstrap,
            topics=topic,
            out=str(tmp_path),
            once=True,
            group="",
            compact_every=0,
            **more,  # type: ignore[arg-type]
        )
        ingest.run(spark, chosen)

    lake = Lake(spark, tmp_path)
    path = lake.tables.path(f"tables/{topic}")

    def partitioned_by() -> list[str]:
        (found,) = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()
        by: list[str] = found["partitionColumns"]
        return by

    run(b"\xff", partition_by=choice, value_format="string")
    assert partitioned_by() == columns
    # The table has no rows, so one of its columns can get another type.
    replay.run(spark, replay.ReplaySettings(out=str(tmp_path), value_format="raw"))
    assert partitioned_by() == columns
    run(b"two", value_format="raw")
    assert partitioned_by() == columns
    assert lake.rows(f"tables/{topic}", "partition", "offset", "value") == [
        (0, 0, bytearray(b"\xff")),
        (0, 1, bytearray(b"two")),
    ]
