"""In the Spark part of the demo, all results agree, although a broker dies (real cluster)."""

import json
import threading
from pathlib import Path

from pyspark.sql import SparkSession
from tests.pipelines import records
from tests.pipelines.recorded_events import recorded_events

from tidelog.cli.demos.orders import OrderLoad
from tidelog.client.client import Client
from tidelog.model.ids import NodeId
from tidelog.testing import Cluster
from tidelog_pipelines.jobs.demo import Demo, DemoSettings


def has_elected(cluster: Cluster, topic: str, leader: NodeId) -> bool | None:
    """Whether an event reports that another broker replaced this leader."""
    with Client(cluster.bootstrap) as client:
        events = recorded_events(client)
    return (
        any(one.get("topic") == topic and one.get("leader_before") == leader for one in events)
        or None
    )


def test_orders_are_ingested_watched_and_audited_while_a_broker_dies(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=2)
    ledger = tmp_path / "ledger.jsonl"
    load = OrderLoad(cluster.bootstrap, topic, str(ledger))
    settings = DemoSettings(
        bootstrap_server=cluster.bootstrap, topic=topic, ledger=str(ledger), out=str(tmp_path)
    )
    demo, ended = Demo(spark, settings), threading.Event()
    watching = threading.Thread(target=demo.watch, args=(ended,))
    load.start()
    watching.start()

    cluster.wait_for(lambda: load.acknowledged > 200 or None, "the first orders")
    leader = cluster.leader_of(topic)
    cluster.kill(leader)
    before = load.acknowledged
    cluster.wait_for(lambda: load.acknowledged > before + 200 or None, "orders after the kill")
    cluster.start(leader)
    cluster.wait_for_isr(topic, size=3)
    cluster.wait_for(lambda: has_elected(cluster, topic, leader), "the election being recorded")
    load.stop()
    ended.set()
    watching.join()
    found = demo.answer()

    assert found["sentence"] == f"acknowledged {load.acknowledged:,}, lost 0, duplicated 0"
    assert found["rows"] == load.acknowledged
    assert f"took over from {leader}" in Path(str(found["page"])).read_text()
    first = spark.read.format("delta").load(str(found["table"])).select("value.*").first()
    assert first is not None
    assert first["total_cents"] == sum(
        line["quantity"] * line["price_cents"] for line in first["lines"]
    )
    assert json.loads(ledger.read_text().splitlines()[0])["topic"] == topic
