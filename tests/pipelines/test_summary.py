"""The summary of a run has the number of records that were read, and how the run ended."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipelines import records

from tidelog.testing import Cluster
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import ingest
from tidelog_pipelines.sinks.columns import TableMismatch


def test_each_run_is_counted_on_its_own(
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    file = tmp_path / "summary.json"

    def summary(where: str = str(file), **more: object) -> dict[str, object]:
        chosen = {
            "bootstrap_server": cluster.bootstrap,
            "topics": topic,
            "out": str(tmp_path / "lake"),
            "once": True,
            "group": "",
            "compact_every": 0,
            "summary": where,
            **more,
        }
        ingest.run(spark, ingest.IngestSettings(**chosen))  # type: ignore[arg-type]
        text = file.read_text() if where != "-" else capsys.readouterr().out
        found: dict[str, object] = json.loads(text)
        seconds = found.pop("seconds")
        assert isinstance(seconds, float)
        assert seconds > 0
        return found

    records.produce(cluster.bootstrap, topic, ['{"id":1}', "{", "{", b"\xff", '{"id":2}'])
    assert summary(max_per_batch=3) == {
        "batches": 2,
        "records": 5,
        "rows": 2,
        "quarantined": {"the value is not JSON": 2, "the value is not UTF-8": 1},
        "offsets": {topic: {"0": 5}},
        "exit": "complete",
        "error": None,
    }
    records.produce(cluster.bootstrap, topic, ['{"id":3}'])
    with pytest.raises((TableMismatch, JobFailed)):
        summary(schema="id STRING")
    failed = json.loads(file.read_text())
    assert (failed["batches"], failed["records"], failed["exit"]) == (0, 0, "failed")
    assert "value.id is bigint there, and string here" in failed["error"]
    assert summary(where="-") == {
        "batches": 1,
        "records": 1,
        "rows": 1,
        "quarantined": {},
        "offsets": {topic: {"0": 6}},
        "exit": "complete",
        "error": None,
    }
    with pytest.raises(JobFailed, match=r"--summary .* cannot be written: No such file"):
        summary(where=str(tmp_path / "none" / "summary.json"))
