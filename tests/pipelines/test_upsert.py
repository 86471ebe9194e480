"""`ingest --mode upsert` and `--mode history` on a real cluster, even if the driver is killed."""

import json
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import Row, SparkSession
from tests.pipelines import records
from tests.pipelines.chaos import PATIENCE_SECONDS, QUICK, Driver
from tests.pipelines.key_models import MODELS, Raw, table
from tests.pipelines.records import Sent
from tests.pipelines.schema_registry import SchemaRegistry, running
from tests.pipelines.single_ingest import lose_the_last_commit, rows, settings

from tidelog.testing import Cluster
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import ingest
from tidelog_pipelines.sinks.modes import HISTORY, UPSERT
from tidelog_pipelines.sinks.table_formats.formats import FORMATS

START = 1_700_000_000_000
NO_KEY = "the record has no key"


def random_messages(dice: random.Random, count: int, keys: int) -> Iterator[Sent]:
    for number in range(count):
        key = dice.choice([None, *(f"key {one}" for one in range(keys))])
        good = f'{{"n":{number}}}'
        value = dice.choice([good, good, good, None, "bad"])
        yield Sent(key, value, START + number - dice.choice([0, 0, 500]))


def sent(cluster: Cluster, topic: str, messages: list[Sent]) -> list[Raw]:
    """Write the messages, and return the records as they are in the topic."""
    acks = records.produce_keyed(cluster.bootstrap, topic, messages)
    # Records of one key are in one partition, in the order in which they were sent.
    times: dict[str | None, list[int]] = {}
    for one in messages:
        times.setdefault(one.key, []).append(one.timestamp)
    found = []
    for ack in sorted(acks, key=lambda ack: (ack.partition, ack.offset)):
        key, value = (None if raw is None else raw.decode() for raw in (ack.key, ack.value))
        millis = START if key is None else times[key].pop(0)
        found.append(Raw(ack.partition, ack.offset, millis, key, value))
    assert len(found) == len(messages)
    return found


def await_commits(driver: Driver, log: Path, count: int) -> None:
    """Wait until a table has this many commits."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(list(log.glob("*.json"))) < count:
        assert driver.is_running(), driver.said()
        assert time.monotonic() < deadline, driver.said()
        time.sleep(0.01)


@pytest.mark.parametrize("mode", [UPSERT, HISTORY])
def test_the_table_agrees_with_the_model_after_kills_of_the_driver(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, mode: str
) -> None:
    records.create(cluster.bootstrap, topic, partitions=2)
    raw = sent(cluster, topic, list(random_messages(random.Random(5), 2_000, keys=150)))
    out = tmp_path / "out"
    driver = Driver(
        [
            *("--bootstrap-server", cluster.bootstrap, "--topics", topic, "--out", str(out)),
            *("--mode", mode, "--schema", "n BIGINT", "--group", "", "--compact-every", "2"),
            *("--max-per-batch", "700", "--once", "--master", "local[2,4]", "--conf", QUICK),
            *("--conf", "spark.sql.shuffle.partitions=2"),
        ],
        tmp_path / "driver.log",
    )
    log = out / "tables" / topic / "_delta_log"
    try:
        driver.start()
        await_commits(driver, log, 2)  # the table is created, and the first batch is applied
        driver.kill()
        driver.start()
        assert driver.wait() == 0
    finally:
        driver.kill()
        print(driver.said())
    assert table(spark, out / "tables" / topic, mode) == MODELS[mode](raw)
    bad = [(one.partition, one.offset) for one in raw if one.key is None or one.value == "bad"]
    assert rows(spark, out, "quarantine", "partition", "offset") == sorted(bad)


def change(op: str, before: Any, after: Any) -> str:
    source = {"connector": "postgresql", "lsn": 1}
    return json.dumps({"before": before, "after": after, "op": op, "source": source, "ts_ms": 1})


def wrapped(envelope: str) -> str:
    return json.dumps({"schema": {"type": "struct"}, "payload": json.loads(envelope)})


def test_debezium_changes_are_applied_and_read_again_without_effect(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    chosen = settings(
        cluster,
        tmp_path,
        topics=topic,
        group="",
        mode=UPSERT,
        envelope="debezium",
        summary=str(tmp_path / "summary.json"),
    )
    tea, rum = {"id": 1, "item": "tea"}, {"id": 2, "item": "rum"}
    messages = [
        Sent("1", change("r", None, tea), START),
        Sent("2", wrapped(change("c", None, rum)), START),
        Sent("2", change("u", rum, {**rum, "price": 2.5}), START),
        Sent("3", change("c", None, {"id": 3, "item": "gin"}), START),
        Sent("3", wrapped(change("d", {"id": 3}, None)), START),
        Sent("3", None, START),
        Sent("4", change("t", None, None), START),
        Sent(None, change("c", None, {"id": 5}), START),
        Sent("1", '{"id":1}', START),
    ]
    sent(cluster, topic, messages)
    ingest.run(spark, chosen)
    good = [
        ("1", 0, Row(id=1, item="tea", price=None), None),
        ("2", 2, Row(id=2, item="rum", price=2.5), None),
    ]
    bad = [
        (6, "the Debezium envelope is a truncate (op t), not of one row"),
        (7, NO_KEY),
        (8, "the value is not a Debezium envelope: it has no op"),
    ]

    def is_whole() -> bool:
        found = rows(spark, tmp_path, f"tables/{topic}", "key", "offset", "value", "_rescued")
        return (found, rows(spark, tmp_path, "quarantine", "offset", "reason")) == (good, bad)

    assert is_whole()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["records"], summary["rows"], len(summary["quarantined"])) == (9, 2, 3)
    lose_the_last_commit(tmp_path)
    ingest.run(spark, chosen)
    assert is_whole()
    shutil.rmtree(tmp_path / "checkpoint")
    sent(cluster, topic, [Sent("1", change("d", tea, None), START)])
    ingest.run(spark, chosen)
    good.pop(0)
    assert is_whole()
    assert rows(spark, tmp_path, f"deleted/{topic}", "key", "offset") == [("1", 9), ("3", 5)]
    lose_the_last_commit(tmp_path)
    for mode in (HISTORY, "append"):
        other = settings(cluster, tmp_path, topics=topic, group="", mode=mode)
        with pytest.raises(JobFailed, match=f"upsert --envelope debezium, not --mode {mode}"):
            ingest.run(spark, other)


ROW: dict[str, Any] = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
}
ENVELOPE: dict[str, Any] = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", ROW], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "op", "type": "string"},
    ],
}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with running() as found:
        yield found


def test_debezium_changes_in_avro_become_a_history(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, registry: SchemaRegistry
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    client = SchemaRegistryClient({"url": registry.url})
    place = SerializationContext(topic, MessageField.VALUE)

    def of(schema: Any, value: Any) -> bytes:
        found = AvroSerializer(client, json.dumps(schema))(value, place)
        assert isinstance(found, bytes)
        return found

    tea, rum = {"id": 1, "item": "tea"}, {"id": 1, "item": "rum"}
    values = [
        of(ENVELOPE, {"before": None, "after": tea, "op": "c"}),
        of(ENVELOPE, {"before": tea, "after": rum, "op": "u"}),
        of(ROW, tea),
        of(ENVELOPE, {"before": rum, "after": None, "op": "d"}),
        None,
    ]
    for number, value in enumerate(values):
        records.produce_keyed(cluster.bootstrap, topic, [Sent("1", value, START + 1_000 * number)])
    chosen = settings(
        cluster,
        tmp_path,
        topics=topic,
        group="",
        mode=HISTORY,
        envelope="debezium",
        value_format="avro",
        schema_registry=registry.url,
    )
    ingest.run(spark, chosen)
    times = ("unix_millis(_valid_from)", "unix_millis(_valid_to)")
    found = FORMATS["delta"](spark, str(tmp_path)).rows(f"tables/{topic}")
    assert found is not None
    versions = found.orderBy("offset").selectExpr("offset", "value", *times, "_is_current")
    assert versions.collect() == [
        (0, Row(**tea), START, START + 1_000, False),
        (1, Row(**rum), START + 1_000, START + 3_000, False),
    ]
    (bad,) = rows(spark, tmp_path, "quarantine", "offset", "reason")
    assert bad == (
        2,
        "schema 2 does not fit the table: it is not the schema of a Debezium envelope",
    )
