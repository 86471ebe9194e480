"""`maintain` compacts tables, expires rows and removes unused files, while an ingest runs."""

import datetime
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipelines.quarantined_records import Bad, Lake

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import maintain
from tidelog_pipelines.sinks.claims import turn
from tidelog_pipelines.sinks.tables import Batch

ROW = "partition INT, offset BIGINT, key STRING, date DATE"
YEARS_AGO = datetime.datetime(2019, 1, 1, tzinfo=datetime.UTC)
PATIENCE_SECONDS = 600.0


def test_rows_expire_files_are_merged_and_old_ones_removed(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, today = Lake(spark, tmp_path), datetime.datetime.now(datetime.UTC).date()
    named = lake.tables.frame([("t", "id", today)], "topic STRING, topic_id STRING, date DATE")
    lake.tables.append("topics", named, Batch("q", 0))
    for number, day in enumerate((today, today, YEARS_AGO.date())):
        rows = lake.tables.frame([(0, number, "k", day)], ROW)
        lake.tables.append("tables/t", rows.coalesce(1), Batch("q", number))
    gone = lake.tables.frame([(0, 9, "k", YEARS_AGO.date())], ROW)  # does not expire
    lake.tables.append("deleted/t", gone.coalesce(1), Batch("q", 0))
    lake.quarantine(
        Bad("t", 0, 7, b"x", "old", time=YEARS_AGO),
        Bad("t", 0, 8, b"x", "without a time", time=None),
    )
    chosen = maintain.MaintainSettings(
        out=str(tmp_path),
        retain=300,
        zorder="key",
        vacuum_hours=0,
        conf=(f"{maintain.CHECK}=false",),
    )
    files = list((tmp_path / "tables" / "t").rglob("*.parquet"))
    assert len(files) == 3
    done = threading.Event()

    def run() -> None:
        maintain.run(spark, chosen)
        done.set()

    with turn(str(tmp_path)):  # as an ingest does while it writes a micro-batch
        other = threading.Thread(target=run, daemon=True)
        other.start()
        assert len(lake.rows("tables/t", "offset")) == 3
        assert not done.is_set()
    assert done.wait(PATIENCE_SECONDS)
    other.join()
    assert capsys.readouterr().out.splitlines() == [
        "tables/t: 1 rows expired, 2 files compacted to 1, 3 old files removed",
        "deleted/t: 0 rows expired, 0 files compacted to 0, 0 old files removed",
        "quarantine: 1 rows expired, 0 files compacted to 0, 1 old files removed",
    ]
    assert lake.rows("tables/t", "offset") == [(0,), (1,)]
    assert lake.in_quarantine() == [("t", 0, 8)]
    assert not any(file.exists() for file in files)
    with pytest.raises(JobFailed, match=r"there is no table of topic u in .*; there are t"):
        maintain.run(spark, maintain.MaintainSettings(out=str(tmp_path), topics="u"))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--vacuum-hours", "1"], "--vacuum-hours is at least 168"),
        (["--retain", "-1"], "--retain is a number of days"),
        (["--retain", "x"], "invalid int value"),
    ],
)
def test_a_wrong_command_line_ends_with_a_sentence(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        maintain.parsed(["--out", "o", *arguments])
    assert complaint in capsys.readouterr().err


def test_a_directory_that_does_not_exist_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert maintain.main(["--out", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err == f"tidelog: --out {tmp_path}/none does not exist.\n"
