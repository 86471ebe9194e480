"""A batch that is run again with another decoder leaves each record in exactly one place."""

from collections.abc import Callable, Iterable
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
VALUES = {"some": ['{"id":1}', DEEP_VALUE], "only": [DEEP_VALUE]}
"""By topic: some of its values are deep, or all of them, so that its table may not exist yet."""

Run = Callable[[int], None]
Places = dict[str, tuple[list[int], list[int]]]


@pytest.fixture
def run(spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path) -> Run:
    """A function that ingests the topics, with a limit for the depth of values."""

    def ingested(max_depth: int) -> None:
        pattern = f"{topic}-.*"
        ingest.run(spark, settings(cluster, tmp_path, pattern=pattern, max_depth=max_depth))

    return ingested


def write(cluster: Cluster, topic: str, names: Iterable[str]) -> None:
    for name in names:
        records.create(cluster.bootstrap, f"{topic}-{name}", partitions=1)
        records.produce(cluster.bootstrap, f"{topic}-{name}", VALUES[name])


def places(spark: SparkSession, out: Path, topic: str, names: Iterable[str]) -> Places:
    """The offsets in each table, and those in quarantine."""
    bad = []
    if (out / "quarantine").exists():
        bad = rows(spark, out, "quarantine", "topic", "offset")
    return {
        name: (
            [row["offset"] for row in rows(spark, out, f"tables/{topic}-{name}", "offset")],
            [row["offset"] for row in bad if row["topic"] == f"{topic}-{name}"],
        )
        for name in names
    }


@pytest.mark.parametrize("name", VALUES)
def test_a_record_that_passes_after_a_kill_before_quarantine_is_in_the_table(
    name: str,
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(cluster, topic, [name])

    def killed(*_: object) -> None:
        raise JobFailed("killed")

    with monkeypatch.context() as patched:
        patched.setattr(Ingestion, "_quarantine", killed)
        with pytest.raises(JobFailed, match="killed"):
            run(SHALLOW)
    run(DEEP)

    expected = list(range(len(VALUES[name])))
    assert places(spark, tmp_path, topic, [name]) == {name: (expected, [])}


@pytest.mark.parametrize("depths", [(SHALLOW, DEEP), (DEEP, SHALLOW)])
def test_a_record_stays_where_the_first_run_has_put_it(
    depths: tuple[int, int],
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    run: Run,
) -> None:
    write(cluster, topic, VALUES)
    run(depths[0])
    before = places(spark, tmp_path, topic, VALUES)
    lose_the_last_commit(tmp_path)

    run(depths[1])

    assert places(spark, tmp_path, topic, VALUES) == before
    for name, (table, quarantine) in before.items():
        assert sorted(table + quarantine) == list(range(len(VALUES[name])))
