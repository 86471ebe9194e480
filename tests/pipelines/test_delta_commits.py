"""The rows of a commit are counted from Delta's log as `DESCRIBE HISTORY` counts them."""

import json
from pathlib import Path

from pyspark.sql import SparkSession

from tidelog_pipelines.sinks.table_formats.delta_commits import rows_of_commit
from tidelog_pipelines.sinks.table_formats.delta_tables import DeltaTables
from tidelog_pipelines.sinks.tables import Batch


def log_of(table: Path, *commits: dict[str, object]) -> None:
    (table / "_delta_log").mkdir()
    for version, info in enumerate(commits):
        lines = [json.dumps({"commitInfo": info}, separators=(",", ":")), '{"add":{}}']
        (table / "_delta_log" / f"{version:020}.json").write_text("\n".join(lines))


def test_the_newest_three_commits_are_searched(tmp_path: Path) -> None:
    log_of(
        tmp_path,
        {"userMetadata": "old", "operationMetrics": {"numOutputRows": "9"}},
        {"userMetadata": "mine", "operationMetrics": {"numOutputRows": "3"}},
        {"userMetadata": "without", "operationMetrics": None},
        {"operation": "OPTIMIZE"},
    )
    (tmp_path / "_delta_log" / f"{1:020}.{3:020}.compacted.json").touch()
    (tmp_path / "_delta_log" / "_last_checkpoint").touch()
    assert rows_of_commit(tmp_path, "mine") == 3
    assert rows_of_commit(tmp_path, "without") == 0
    assert rows_of_commit(tmp_path, "old") == 0


def test_a_log_that_is_not_here_or_damaged_has_no_answer(tmp_path: Path) -> None:
    assert rows_of_commit(tmp_path, "mine") is None
    log_of(tmp_path)
    assert rows_of_commit(tmp_path, "mine") is None
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text('{"commitInfo"')
    assert rows_of_commit(tmp_path, "mine") is None


def test_a_table_counts_the_rows_of_its_commit(spark: SparkSession, tmp_path: Path) -> None:
    tables = DeltaTables(spark, str(tmp_path))
    rows = spark.sql("SELECT id AS offset, DATE'2020-01-01' AS date FROM range(5)")
    assert tables.append("t", rows, Batch("q", 0)) == 5
    assert tables.append("t", rows, Batch("q", 0)) == 5, "the same batch is written once"
    assert tables.append("t", rows.limit(2), Batch("q", 1)) == 2
    (history,) = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path}/t` LIMIT 1").collect()
    assert history["operationMetrics"]["numOutputRows"] == "2"
