"""Exactly once: the table has every acknowledged record once, whatever process is killed.

With --mode upsert, the table has the newest record of each key, as a model in DuckDB has it.

The full run takes a quarter of an hour: `./test tests/pipelines/test_ingest_kills.py` with
--ingest-records 1000000 --driver-kills 10 --broker-kills 20. With --system kafka the source is
Apache Kafka.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession
from tests.cluster.apache import KafkaCluster
from tests.pipelines import records
from tests.pipelines.chaos import QUICK, Driver, Load, driver_kills, kill_brokers

from tidelog.testing import Cluster

PARTITIONS = 3


@pytest.fixture
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    if request.config.getoption("--system") == "kafka":
        libs = request.getfixturevalue("kafka_libs")
        with KafkaCluster(libs, 3, directory=tmp_path / "kafka") as cluster:
            yield cluster
    else:
        yield request.getfixturevalue("cluster")


def ingested(
    options: argparse.Namespace, source: Cluster, topic: str, directory: Path, *, keys: int
) -> Load:
    """Ingest records, by key if there are keys, while the driver and the brokers are killed."""
    records.create(source.bootstrap, topic, PARTITIONS)
    dice = random.Random(7)
    driver = Driver(
        [
            *("--bootstrap-server", source.bootstrap, "--topics", topic),
            *("--out", str(directory / "out"), "--mode", "upsert" if keys else "append"),
            *("--value-format", "json", "--schema", "number BIGINT, filler STRING"),
            *("--every", "0 seconds", "--compact-every", "5", "--max-per-batch", "100000"),
            *("--master", "local[2,4]", "--conf", QUICK),
        ],
        directory / "driver.log",
    )
    try:
        with (
            Load(source.bootstrap, topic, options.ingest_records, PARTITIONS, keys=keys) as load,
            driver_kills(driver, load, options.driver_kills, dice),
        ):
            kill_brokers(source, topic, options.broker_kills, dice)
        driver.start("--once")
        assert driver.wait() == 0
    finally:
        driver.kill()
        print(driver.said())
    assert not load.failed
    assert load.acknowledged == options.ingest_records
    return load


def test_every_acknowledged_record_is_in_the_table_once(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    source: Cluster,
    topic: str,
    tmp_path: Path,
) -> None:
    load = ingested(request.config.option, source, topic, tmp_path, keys=0)
    table = spark.read.format("delta").load(str(tmp_path / "out" / "tables" / topic))
    files = table.inputFiles()
    rows = duckdb.sql(  # an independent count of the rows in the table's files
        f'SELECT partition, count(*), count(DISTINCT "offset"), max("offset"), '
        f"count(DISTINCT value.number) FROM read_parquet({files!r}) GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    print(f"acknowledged {load.acknowledged:,}, rows {table.count():,}, files {len(files)}")
    assert rows == [
        (partition, len(acked), len(acked), max(acked), len(acked))
        for partition, acked in enumerate(load.acked)
    ]
    assert table.count() == load.acknowledged


def test_every_key_has_its_newest_record_whatever_is_killed(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    source: Cluster,
    topic: str,
    tmp_path: Path,
) -> None:
    keys = max(PARTITIONS, request.config.option.ingest_records // 30 * PARTITIONS)
    load = ingested(request.config.option, source, topic, tmp_path, keys=keys)
    table = spark.read.format("delta").load(str(tmp_path / "out" / "tables" / topic))
    found = table.select("key", "value.number").toArrow()
    newest = (  # a model that reads no table: the load has written the numbers in this order
        f"SELECT CAST(n % {keys} AS VARCHAR), max(n) FROM range({load.acknowledged}) AS t(n) "
        "GROUP BY ALL"
    )
    with duckdb.connect() as model:
        model.register("found", found)
        differing = model.sql(
            f"(SELECT key, number FROM found EXCEPT ALL {newest}) UNION ALL "
            f"({newest} EXCEPT ALL SELECT key, number FROM found)"
        ).fetchall()
    print(f"acknowledged {load.acknowledged:,}, keys {keys:,}, rows {found.num_rows:,}")
    assert differing == []
