"""`replay` moves each record that can now be decoded to its table once, even after a kill."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from tests.pipelines import records
from tests.pipelines.quarantined_records import TIME, Bad, Lake

from tidelog.testing import Cluster
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import ingest, replay
from tidelog_pipelines.sinks.claims import claimed
from tidelog_pipelines.sinks.columns import TableMismatch

PATIENCE_SECONDS = 600.0


def replayed(spark: SparkSession, out: Path, **options: object) -> None:
    replay.run(spark, replay.ReplaySettings(out=str(out), **options))  # type: ignore[arg-type]


def test_records_that_pass_move_and_the_others_stay_with_the_newest_reason(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(spark, tmp_path)
    lake.quarantine(
        Bad("a", 0, 1, b'{"id":1}', "too large"),
        Bad("a", 0, 2, b"{", "too large"),
        Bad("a", 0, 3, b'{"id":3}', "the timestamp is beyond what a table can hold", time=None),
        Bad("a", 1, 1, b'{"id":4,"more":2.5}', "nested"),
        Bad("b", 0, 1, b'{"id":5}', "too large"),
    )
    before = lake.commits("quarantine")
    replayed(spark, tmp_path, topics="a", dry_run=True)
    assert capsys.readouterr().out.splitlines() == [
        "a: 2 would pass, 2 would stay in quarantine",
        "  1: the timestamp is beyond what a table can hold",
        "  1: the value is not JSON",
    ]
    assert lake.tables.rows("tables/a") is None
    assert lake.commits("quarantine") == before

    replayed(spark, tmp_path, topics="a", reason="too large")
    assert capsys.readouterr().out.splitlines() == [
        "a: 1 replayed, 1 still in quarantine",
        "  1: the value is not JSON",
    ]
    for _ in range(2):
        replayed(spark, tmp_path, topics="a,none")
        commits = lake.commits("tables/a"), lake.commits("quarantine")
    assert capsys.readouterr().out.splitlines()[-4:] == [
        "a: 0 replayed, 2 still in quarantine",
        "  1: the timestamp is beyond what a table can hold",
        "  1: the value is not JSON",
        "none: no such records in quarantine",
    ]
    replayed(spark, tmp_path, topics="a")  # a second replay changes nothing
    assert (lake.commits("tables/a"), lake.commits("quarantine")) == commits

    found = lake.rows("tables/a", "partition", "offset", "timestamp", "key", "value", "headers")
    headers = [Row(key="h", value=bytearray(b"v"))]
    assert [(*row[:2], *row[3:]) for row in found] == [
        (0, 1, "k", Row(id=1, more=None), headers),
        (1, 1, "k", Row(id=4, more=2.5), headers),
    ]
    assert {row["timestamp"].astimezone(TIME.tzinfo) for row in found} == {TIME}
    assert lake.rows("quarantine", "topic", "offset", "reason", "attempts") == [
        ("a", 2, "the value is not JSON", 2),
        ("a", 3, "the timestamp is beyond what a table can hold", None),
        ("b", 1, "too large", None),
    ]
    # A replay with other options counts as another attempt. A table with rows keeps its columns.
    replayed(spark, tmp_path, topics="a", max_depth=7)
    assert [row["attempts"] for row in lake.rows("quarantine", "offset", "attempts")] == [
        None,
        3,
        None,
    ]
    with pytest.raises(TableMismatch, match=r"value is struct<.*> there, and string here"):
        replayed(spark, tmp_path, topics="a", value_format="string")
    assert lake.in_quarantine() == [("a", 0, 2), ("a", 0, 3), ("b", 0, 1)]


def test_a_kill_between_the_two_commits_neither_loses_nor_doubles_a_record(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(spark, tmp_path / "lake")
    bad = [Bad("t", 0, offset, b'{"id":%d}' % offset, "too large") for offset in range(3)]
    lake.quarantine(*bad, Bad("t", 0, 3, b"{", "too large"))
    before = lake.commits("quarantine")
    log = tmp_path / "log"
    with log.open("wb") as file:
        job = subprocess.Popen(
            [
                *(sys.executable, "-m", "tidelog_pipelines.jobs.replay"),
                *("--out", str(tmp_path / "lake"), "--schema", "id BIGINT"),
                *("--master", "local[1]"),
            ],
            stdout=file,
            stderr=file,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            process_group=0,
        )
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while lake.commits("tables/t") < 2:  # the table is created, and then filled
            assert job.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.01)
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    assert lake.rows("tables/t", "offset") == [(0,), (1,), (2,)]
    assert len(lake.in_quarantine()) == 4, "the job was killed too late"

    replayed(spark, tmp_path / "lake", schema="id BIGINT")
    assert lake.rows("tables/t", "offset", "value") == [
        (0, Row(id=0)),
        (1, Row(id=1)),
        (2, Row(id=2)),
    ]
    assert lake.rows("quarantine", "offset", "attempts") == [(3, 2)]
    assert lake.commits("quarantine") <= before + 2
    assert "t: 3 replayed, 1 still in quarantine" in capsys.readouterr().out


def test_a_replayed_record_does_not_return_when_the_topic_is_read_again(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    records.produce(cluster.bootstrap, topic, [b"\xff", b"\xfe"])
    chosen = ingest.IngestSettings(
        bootstrap_server=cluster.bootstrap,
        topics=topic,
        out=str(tmp_path),
        once=True,
        group="",
        value_format="string",
    )
    ingest.run(spark, chosen)
    lake = Lake(spark, tmp_path)
    assert lake.in_quarantine() == [(topic, 0, 0), (topic, 0, 1)]
    # The table has no rows yet, so its columns can still change.
    replayed(spark, tmp_path, value_format="raw")
    whole = [(0, bytearray(b"\xff")), (1, bytearray(b"\xfe"))]
    assert lake.rows(f"tables/{topic}", "offset", "value") == whole
    assert lake.in_quarantine() == []

    shutil.rmtree(tmp_path / "checkpoint")
    records.produce(cluster.bootstrap, topic, [b"new"])
    raw = ingest.IngestSettings(**{**vars(chosen), "value_format": "raw", "key_format": "raw"})
    with pytest.raises(JobFailed, match="key is string there, and binary here"):
        ingest.run(spark, raw)
    ingest.run(spark, ingest.IngestSettings(**{**vars(chosen), "value_format": "raw"}))
    assert lake.rows(f"tables/{topic}", "offset", "value") == [*whole, (2, bytearray(b"new"))]
    assert lake.in_quarantine() == []


def test_a_directory_that_is_in_use_or_does_not_exist_is_named_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with claimed(str(tmp_path)):
        assert replay.main(["--out", str(tmp_path)]) == 1
    assert f"another job (process {os.getpid()}) writes to" in capsys.readouterr().err
    assert replay.main(["--out", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err == f"tidelog: --out {tmp_path}/none does not exist.\n"
    assert not (tmp_path / "none").exists()
    with pytest.raises(SystemExit, match="2"):
        replay.parsed(["--out", "o", "--value-format", "avro"])
    assert "--value-format avro needs a --schema" in capsys.readouterr().err


def test_a_lake_without_quarantine_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match="there is no quarantine of format delta in"):
        replayed(spark, tmp_path)
