"""A batch that is run again with another decoder leaves each record in exactly one place."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipelines import records
from tests.pipelines.single_ingest import lose_the_last_commit, rows, settings

from tidelog.testing import Cluster
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import ingest
from tidelog_pipelines.jobs.ingestion import Ingestion

SHALLOW, DEEP = 2, 9
DEEP_VALUE = '{"id":2,"a":{"b":{"c":1}}}'

Run = Callable[[int], None]


def places(spark: SparkSession, out: Path, topic: str) -> tuple[list[int], list[int]]:
    """The offsets in the table, and those in quarantine."""
    table = [row["offset"] for row in rows(spark, out, f"tables/{topic}", "offset")]
    if not (out / "quarantine").exists():
        return table, []
    return table, [row["offset"] for row in rows(spark, out, "quarantine", "offset")]


@pytest.fixture
def run(spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path) -> Run:
    """A function that ingests the topic, with a limit for the depth of values."""
    records.create(cluster.bootstrap, topic, partitions=1)

    def ingested(max_depth: int) -> None:
        ingest.run(spark, settings(cluster, tmp_path, topics=topic, max_depth=max_depth))

    return ingested


@pytest.mark.parametrize("values", [['{"id":1}', DEEP_VALUE], [DEEP_VALUE]])
def test_a_record_that_passes_after_a_kill_before_quarantine_is_in_the_table(
    values: list[str],
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records.produce(cluster.bootstrap, topic, values)

    def killed(*_: object) -> None:
        raise JobFailed("killed")

    with monkeypatch.context() as patched:
        patched.setattr(Ingestion, "_quarantine", killed)
        with pytest.raises(JobFailed, match="killed"):
            run(SHALLOW)
    run(DEEP)

    assert places(spark, tmp_path, topic) == (list(range(len(values))), [])


@pytest.mark.parametrize("values", [['{"id":1}', DEEP_VALUE], [DEEP_VALUE]])
@pytest.mark.parametrize("depths", [(SHALLOW, DEEP), (DEEP, SHALLOW)])
def test_a_record_stays_where_the_first_run_has_put_it(
    values: list[str],
    depths: tuple[int, int],
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    run: Run,
) -> None:
    records.produce(cluster.bootstrap, topic, values)
    run(depths[0])
    before = places(spark, tmp_path, topic)
    lose_the_last_commit(tmp_path)

    run(depths[1])

    assert places(spark, tmp_path, topic) == before
    assert sorted(before[0] + before[1]) == list(range(len(values)))
