"""A streaming query reads each record once while leaders change, replicas move and nodes restart.

Spark's connector fails with "offset was changed" if a partition's end moves back (F50). It reads a
partition again from its start if the partition is missing from one answer (F51).
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.cluster.reassignments import reassign
from tests.pipelines import records
from tests.pipelines.chaos import Load

from tidelog.model.errors import ErrorCode
from tidelog.testing import Cluster
from tidelog_pipelines import streams
from tidelog_pipelines.jobs import ingest
from tidelog_pipelines.jobs.ingestion import Ingestion

STAGES = 4


@pytest.fixture
def four() -> Iterator[Cluster]:
    with Cluster(brokers=4, network_faults=False) as cluster:
        yield cluster


def ends(query: StreamingQuery) -> dict[int, int]:
    found = [streams.read_progress(one) for one in query.recentProgress]
    return next(iter(found[-1].ends.values()), {}) if found else {}


def await_all(query: StreamingQuery, load: Load, share: float) -> None:
    """Let this share of the load be written, and wait until the query has read it."""
    load.allowed = share
    while load.acknowledged < share * load.records or sum(ends(query).values()) < load.acknowledged:
        assert query.isActive, query.exception()
        assert not load.failed
        time.sleep(0.05)


def test_a_query_goes_through_whatever_moves(
    spark: SparkSession, four: Cluster, topic: str, tmp_path: Path
) -> None:
    records.create(four.bootstrap, topic, partitions=1)
    settings = ingest.IngestSettings(
        bootstrap_server=four.bootstrap,
        topics=topic,
        out=str(tmp_path),
        value_format="raw",
        every="0 seconds",
    )
    query = ingest.start(spark, settings, Ingestion(ingest.plan(settings)))
    try:
        with Load(four.bootstrap, topic, 8_000, partitions=1) as load:
            await_all(query, load, 1 / STAGES)
            leader = four.leader_of(topic)
            four.kill(leader)
            await_all(query, load, 2 / STAGES)
            four.start(leader)
            replicas = list(four.topics()[topic][0].replica_nodes)
            (spare,) = set(four.nodes) - set(replicas)
            target = [spare, *replicas[:2]]
            assert reassign(four, topic, target) is ErrorCode.none
            four.wait_for_replicas(topic, 0, target)
            await_all(query, load, 3 / STAGES)
            for node in four.nodes:
                four.restart(node)
                four.wait_for_isr(topic, 0, size=3)
            await_all(query, load, 1.0)
        progress = [json.loads(one.json) for one in query.recentProgress]
    finally:
        query.stop()
    assert len({one["runId"] for one in progress}) == 1
    # The sum of all reads is the number of records, so no record was read twice.
    assert sum(one["numInputRows"] for one in progress) == load.acknowledged == load.records
    table = spark.read.format("delta").load(str(tmp_path / "tables" / topic))
    assert table.count() == table.select("offset").distinct().count() == load.records
