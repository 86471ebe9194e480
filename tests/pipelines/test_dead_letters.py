"""Quarantined records are also sent to a topic, with their origin and the reason."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from pyspark.sql import SparkSession
from tests.pipelines import records
from tests.pipelines.quarantined_records import Lake

from tidelog.testing import Cluster
from tidelog_pipelines.jobs import ingest
from tidelog_pipelines.sinks.dead_letters import LARGEST_BYTES

Letter = tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]


def read(bootstrap: str, topic: str, count: int) -> list[Letter]:
    """The first `count` records of a topic, sorted by their original offset."""
    group = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **group, **records.QUIET})
    consumer.subscribe([topic])
    found: list[Letter] = []
    while len(found) < count:
        message = consumer.poll(records.PATIENCE_SECONDS)
        assert message is not None, found
        assert message.error() is None, message.error()
        given: Any = message.headers() or []
        headers = [(name, bytes(value)) for name, value in given]
        found.append((message.key(), message.value(), headers))
    consumer.close()
    return sorted(found, key=lambda letter: dict(letter[2])["tidelog.offset"])


def test_bad_records_are_sent_with_their_origin(
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dead = f"{topic}-dead"
    for name in (topic, dead):
        records.create(cluster.bootstrap, name, partitions=1, copies=1)
    large = b"[%s" % (b"x" * LARGEST_BYTES)
    records.produce(
        cluster.bootstrap, topic, ['{"id":1}', "{", large], key="k", headers={"h": b"v"}
    )
    chosen = ingest.IngestSettings(
        bootstrap_server=cluster.bootstrap,
        topics=topic,
        out=str(tmp_path),
        once=True,
        group="",
        compact_every=0,
        dead_letter_topic=dead,
    )
    ingest.run(spark, chosen)

    def origin(offset: bytes) -> list[tuple[str, bytes]]:
        return [
            ("tidelog.topic", topic.encode()),
            ("tidelog.partition", b"0"),
            ("tidelog.offset", offset),
            ("tidelog.reason", b"the value is not JSON"),
        ]

    assert read(cluster.bootstrap, dead, 2) == [
        (b"k", b"{", [("h", b"v"), *origin(b"1")]),
        (None, None, [*origin(b"2"), ("tidelog.content", b"left out")]),
    ]
    assert Lake(spark, tmp_path).rows("quarantine", "offset", "value") == [
        (1, bytearray(b"{")),
        (2, bytearray(large)),
    ]
    where = ["--bootstrap-server", cluster.bootstrap, "--out", str(tmp_path), "--topics", topic]
    assert ingest.main([*where, "--dead-letter-topic", "nowhere"]) == 1
    assert "topic nowhere does not exist at 127.0.0.1:" in capsys.readouterr().err
