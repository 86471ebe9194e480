"""Names that are nearly equal, names that the pipeline uses itself, and very old timestamps."""

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from tests.pipelines import records

from tidelog.testing import Cluster
from tidelog_pipelines.jobs import ingest, query
from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.kafka import Subscription, table

FIRST_SECOND_OF_OUR_ERA_MS = -62_135_596_800_000
BEFORE_THE_GREGORIAN_CALENDAR_MS = -12_219_292_800_001
TIMES = (FIRST_SECOND_OF_OUR_ERA_MS, BEFORE_THE_GREGORIAN_CALENDAR_MS, 1_700_000_000_000)


def test_topics_whose_names_differ_in_case_or_are_used_by_the_pipeline(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("case-a", "Case-A", "quarantine"):
        records.create(cluster.bootstrap, name, partitions=1, copies=1)
        records.produce(cluster.bootstrap, name, [f'{{"from":"{name}"}}', "bad"])
    chosen = ingest.IngestSettings(
        bootstrap_server=cluster.bootstrap,
        pattern="case-a|Case-A|quarantine",
        out=str(tmp_path),
        once=True,
        group="",
    )
    ingest.run(spark, chosen)

    def asked(sql: str) -> list[str]:
        capsys.readouterr()
        query.run(spark, query.QuerySettings(out=str(tmp_path), sql=sql))
        return capsys.readouterr().out.splitlines()

    assert asked("SELECT value.from FROM `case-a`") == ["case-a"]
    assert asked("SELECT value.from FROM `Case-A`") == ["Case-A"]
    assert asked("SELECT value.from FROM quarantine") == ["quarantine"]
    assert asked("SELECT topic, offset FROM `$quarantine` ORDER BY topic") == [
        "Case-A\t1",
        "case-a\t1",
        "quarantine\t1",
    ]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        asked("SELECT * FROM `CASE-A`")


def test_records_of_long_ago_keep_their_time(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    for time in TIMES:
        records.produce(cluster.bootstrap, topic, ["x"], timestamp=time)
    found = table(
        spark, KafkaSettings(bootstrap_server=cluster.bootstrap), Subscription((topic,))
    ).select(f.unix_millis("timestamp"))
    assert sorted(row[0] for row in found.collect()) == sorted(TIMES)
