"""A table has each record once, even if a batch is repeated or a record is read again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidelog_pipelines.sinks.table_formats.formats import FORMATS
from tidelog_pipelines.sinks.tables import Batch, Tables, unseen, within
from tidelog_pipelines.sources.checkpoint import Span

COLUMNS = "partition INT, offset BIGINT, date DATE"


@pytest.fixture(params=list(FORMATS))
def tables(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Tables]:
    return FORMATS[request.param](spark, str(tmp_path))


def offsets(tables: Tables, name: str = "t") -> list[int]:
    found = tables.rows(name)
    assert found is not None
    return sorted(row["offset"] for row in found.collect())


def rows(spark: SparkSession, *numbers: int) -> list[tuple[object, ...]]:
    return [(0, number, None) for number in numbers]


def test_a_batch_is_written_once_however_often_it_is_run(
    spark: SparkSession, tables: Tables
) -> None:
    assert tables.rows("t") is None
    batch = Batch("query", 0)
    for _ in range(2):
        found = tables.frame(rows(spark, 1, 2), COLUMNS)
        assert tables.append("t", found, batch) == 2
    assert tables.append("t", tables.frame(rows(spark, 3), COLUMNS), Batch("query", 1)) == 1
    assert offsets(tables) == [1, 2, 3]
    # A new checkpoint numbers its batches from 0.
    assert tables.append("t", tables.frame(rows(spark, 4), COLUMNS), Batch("other", 0)) == 1
    tables.compact("t")
    assert offsets(tables) == [1, 2, 3, 4]


def test_parts_of_a_batch_do_not_replace_each_other(spark: SparkSession, tables: Tables) -> None:
    batch = Batch("query", 0)
    for number, part in ((1, "a"), (2, "b"), (1, "a")):
        tables.append("t", tables.frame(rows(spark, number), COLUMNS), batch, part)
    assert offsets(tables) == [1, 2]


def test_what_another_checkpoint_has_written_is_left_out(
    spark: SparkSession, tables: Tables
) -> None:
    tables.append("t", tables.frame(rows(spark, 1, 2), COLUMNS), Batch("lost", 0))
    existing = tables.rows("t")
    assert existing is not None
    again = tables.frame(rows(spark, 1, 2, 3), COLUMNS)
    old = tables.not_of(existing, Batch("new", 0)).where(within([Span(0, 1, 4), Span(1, 0, 9)]))
    assert [row["offset"] for row in unseen(again, old).collect()] == [3]
