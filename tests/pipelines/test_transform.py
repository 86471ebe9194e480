"""`transform` on a real cluster: totals in a topic, a late record, and a retry."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipelines import records

from tidelog.testing import Cluster
from tidelog_pipelines.jobs import transform
from tidelog_pipelines.sources.kafka import Subscription, table

NOON_MS = 1_763_208_000_000
MINUTE_MS = 60_000


def order(item: str, amount: float, minute: float) -> str:
    return json.dumps({"item": item, "amount": amount, "at": NOON_MS + int(minute * MINUTE_MS)})


def last_epoch(spark: SparkSession, settings: transform.TransformSettings) -> int:
    return max(row["epoch"] for row in transform.read_results(spark, settings).collect())


def run_again_from(checkpoint: Path, batch: int) -> None:
    """Undo a batch in the checkpoint, as if the driver was killed before it recorded the batch."""
    for directory, first in (("commits", batch), ("offsets", batch + 1)):
        for file in (checkpoint / directory).glob("[0-9]*"):
            if int(file.name) >= first:
                file.unlink()
                file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def test_f93_totals_are_written_once_although_a_micro_batch_runs_twice(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = f"{topic}-totals"
    for name in (topic, target):
        records.create(cluster.bootstrap, name, partitions=1)
    settings = transform.TransformSettings(
        bootstrap_server=cluster.bootstrap,
        topic=topic,
        to=target,
        time_field="at",
        watermark="1 minute",
        checkpoint=str(tmp_path / "checkpoint"),
        quarantine=str(tmp_path / "quarantine"),
        once=True,
    )
    orders = [order("tea", 2, 0), order("tea", 3, 0.5), order("rum", 9, 0.2), order("tea", 1, 5)]
    records.produce(cluster.bootstrap, topic, [*orders, "{bad"])
    transform.run(spark, settings)
    assert "1 left out because they could not be decoded" in capsys.readouterr().err
    (bad,) = spark.read.format("delta").load(settings.quarantine).collect()
    assert (bad["offset"], bytes(bad["value"]), bad["reason"]) == (
        *(4, b"{bad"),
        "the value is not JSON",
    )
    late, in_time = order("tea", 100, 0.1), order("tea", 4, 5.5)
    records.produce(cluster.bootstrap, topic, [late, in_time])
    # Without micro-batches that have no data, the last micro-batch is the one with the last totals.
    key = "spark.sql.streaming.noDataMicroBatches.enabled"
    request.addfinalizer(lambda: spark.conf.unset(key))
    spark.conf.set(key, "false")
    transform.run(spark, settings)
    assert "1 too late for their window" in capsys.readouterr().err
    run_again_from(tmp_path / "checkpoint", batch=last_epoch(spark, settings))
    transform.run(spark, settings)

    # The last batch ran twice. The second run did not write the total of the fifth minute again.
    assert table(spark, settings, Subscription((target,)), committed=True).count() == 3 + 1
    transform.show(transform.read_results(spark, settings))
    assert capsys.readouterr().out.splitlines() == [
        "2025-11-15 12:00:00\trum\t1\t9",
        "2025-11-15 12:00:00\ttea\t2\t5",
        "2025-11-15 12:05:00\ttea\t2\t5",
    ]
