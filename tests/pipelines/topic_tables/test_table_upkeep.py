"""The upkeep of topic tables: rows expire, files are merged, and unused files are removed."""

import datetime
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession

from tidelog_pipelines.jobs.topic_tables import table_upkeep
from tidelog_pipelines.jobs.topic_tables.book import Book
from tidelog_pipelines.jobs.topic_tables.table_settings import TableSettings
from tidelog_pipelines.jobs.topic_tables.table_upkeep import TableUpkeep
from tidelog_pipelines.jobs.topic_tables.watch import Look, TableTopic
from tidelog_pipelines.sinks.stored_formats import StoredFormats
from tidelog_pipelines.sinks.table_formats.delta_tables import DeltaTables
from tidelog_pipelines.sinks.tables import Batch, Layout

AN_HOUR = datetime.timedelta(hours=1)
ROW = "partition INT, offset BIGINT, timestamp TIMESTAMP, date DATE"
CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def test_rows_expire_and_files_are_merged_and_removed(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tables, book = DeltaTables(spark, str(tmp_path)), Book(str(tmp_path / "states"))
    now = datetime.datetime.now(datetime.UTC)
    for number, time in enumerate((now, now, now - 3 * AN_HOUR, now - 72 * AN_HOUR)):
        rows = tables.frame([(0, number, time, time.date())], ROW)
        tables.append("tables/t", rows.coalesce(1), Batch("q", number), layout=Layout())
    rows = tables.frame([(0, 9, None, None)], ROW)
    tables.append("tables/t", rows.coalesce(1), Batch("q", 9), layout=Layout())
    book.written("t", {0: 10}, rows=5)
    settings = TableSettings(retention_ms=2 * 3_600_000)
    look = Look({"t": TableTopic(settings), "none": TableTopic(settings)}, frozenset(), {})

    def files() -> int:
        return len(list((tmp_path / "tables" / "t").glob("*.parquet")))

    stored = StoredFormats(spark, str(tmp_path), "delta")
    upkeep = TableUpkeep(stored, str(tmp_path), book, every_seconds=0, vacuum_seconds=-1)
    interrupted = Event()
    interrupted.set()
    upkeep.if_due(look, interrupted)
    assert book.of("t").rows == 5, "after Ctrl-C, nothing begins"
    upkeep.if_due(look, Event())
    found = tables.rows("tables/t")
    assert found is not None
    assert sorted(row["offset"] for row in found.collect()) == [0, 1, 9]
    assert len(found.inputFiles()) == 1
    assert book.of("t").rows == 3
    assert book.of("t").vacuumed is not None
    assert files() > 1, "a new table keeps its unused files"
    monkeypatch.setattr(table_upkeep, "SAFE_HOURS", 0)
    spark.conf.set(CHECK, "false")
    try:
        upkeep.if_due(look, Event())
    finally:
        spark.conf.unset(CHECK)
    assert files() == 1
    assert capsys.readouterr().err == "tables/t: 2 rows expired\n"
    (tmp_path / "tables" / "t" / "_delta_log" / f"{99:020}.json").write_text("{")
    TableUpkeep(stored, str(tmp_path), book, every_seconds=0).if_due(look, Event())
    assert "tidelog: the upkeep of tables/t has failed: " in capsys.readouterr().err
