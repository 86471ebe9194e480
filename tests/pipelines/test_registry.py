"""`ingest` with a schema registry: records of the official serializers, and failures."""

import json
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import Row, SparkSession
from tests.pipelines import records
from tests.pipelines.schema_registry import SchemaRegistry, running

from tidelog.testing import Cluster
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import ingest
from tidelog_pipelines.sinks.table_formats.formats import FORMATS

MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
FIRST: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "int"}, {"name": "item", "type": "string"}],
}
SECOND = {
    **FIRST,
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "product", "type": "string", "aliases": ["item"]},
        {"name": "price", "type": ["null", MONEY], "default": None},
    ],
}
OTHER = {**FIRST, "fields": [{"name": "id", "type": "string"}]}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with running() as found:
        yield found


def serialized(registry: SchemaRegistry, topic: str, schema: Any, *values: Any) -> list[bytes]:
    client = SchemaRegistryClient({"url": registry.url})
    serializer = AvroSerializer(client, json.dumps(schema))
    context = SerializationContext(topic, MessageField.VALUE)
    found = [serializer(value, context) for value in values]
    return [value for value in found if value is not None]


def settings(
    cluster: Cluster, registry: SchemaRegistry, topic: str, out: Path, **more: object
) -> ingest.IngestSettings:
    chosen: dict[str, object] = {
        "bootstrap_server": cluster.bootstrap,
        "topics": topic,
        "out": str(out),
        "once": True,
        "compact_every": 0,
        "group": "",
        "value_format": "avro",
        "schema_registry": registry.url,
        **more,
    }
    return ingest.IngestSettings(**chosen)  # type: ignore[arg-type]


def rows(spark: SparkSession, out: Path, name: str, *columns: str) -> list[Row]:
    found = FORMATS["delta"](spark, str(out)).rows(name)
    return [] if found is None else found.select("offset", *columns).orderBy("offset").collect()


def test_each_record_is_decoded_with_the_schema_that_wrote_it(
    spark: SparkSession, cluster: Cluster, registry: SchemaRegistry, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    first = serialized(registry, topic, FIRST, {"id": 1, "item": "tea"})
    (newer,) = serialized(
        registry, topic, SECOND, {"id": 2**40, "product": "rum", "price": Decimal("2.50")}
    )
    (other,) = serialized(registry, topic, OTHER, {"id": "x"})
    json_id = registry.register("j-value", "{}", "JSON")
    unknown, of_json = (b"\0" + id.to_bytes(4, "big") + b"\2" for id in (99, json_id))
    bad = {
        2: (b"text", "the value is shorter than a schema registry's header"),
        3: (b"\1" + newer[1:], "the value begins with byte 1, not with a schema registry's 0"),
        4: (unknown, "the schema registry has no schema with id 99"),
        5: (newer + b"\0", "the value does not match the Avro schema: 1 bytes follow the record"),
        6: (other, "schema 3 does not fit the table: field id is STRING, and BIGINT in the table"),
        7: (of_json, "schema 4 is of type JSON, not AVRO"),
        8: (newer[:-1], "the value does not match the Avro schema: it ends too early"),
    }
    chosen = settings(cluster, registry, topic, tmp_path)
    records.produce(cluster.bootstrap, topic, first)
    ingest.run(spark, chosen)
    records.produce(cluster.bootstrap, topic, [newer, *(raw for raw, _ in bad.values()), None])
    records.produce(cluster.bootstrap, topic, first)
    ingest.run(spark, chosen)
    assert rows(spark, tmp_path, f"tables/{topic}", "value", "_rescued") == [
        (0, Row(id=1, item="tea", price=None), None),
        (1, Row(id=2**40, item="rum", price=Decimal("2.50")), None),
        (9, None, None),
        (10, Row(id=1, item="tea", price=None), None),
    ]
    found = rows(spark, tmp_path, "quarantine", "value", "reason")
    assert {row["offset"]: (bytes(row["value"]), row["reason"]) for row in found} == bad
    ids = [path for path in registry.asked if path.startswith("/schemas/ids/")]
    assert ids.count("/schemas/ids/1") == 1


def test_the_columns_of_a_readers_schema(
    spark: SparkSession, cluster: Cluster, registry: SchemaRegistry, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    reader = {
        **FIRST,
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "currency", "type": "string", "default": "EUR"},
        ],
    }
    (tmp_path / "reader.avsc").write_text(json.dumps(reader))
    values = serialized(registry, topic, FIRST, {"id": 1, "item": "tea"})
    values += serialized(registry, topic, OTHER, {"id": "x"})
    records.produce(cluster.bootstrap, topic, values)
    chosen = settings(
        cluster, registry, topic, tmp_path / "out", schema=str(tmp_path / "reader.avsc")
    )
    ingest.run(spark, chosen)
    assert rows(spark, tmp_path / "out", f"tables/{topic}", "value", "_rescued") == [
        (0, Row(id=1, currency="EUR"), '{"item":"tea"}')
    ]
    (bad,) = rows(spark, tmp_path / "out", "quarantine", "reason")
    assert bad["reason"].endswith("field id is STRING, and BIGINT in the table")


def test_records_wait_for_a_registry_that_is_down(
    spark: SparkSession,
    cluster: Cluster,
    registry: SchemaRegistry,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    values = serialized(registry, topic, FIRST, {"id": 1, "item": "tea"})
    records.produce(cluster.bootstrap, topic, values)
    registry.stop()
    with pytest.raises(JobFailed, match="the schema registry does not answer at http://127"):
        ingest.run(spark, settings(cluster, registry, topic, tmp_path, patience_seconds=0))
    assert not (tmp_path / "quarantine").exists()
    assert not (tmp_path / "tables").exists()
    retried = threading.Event()

    def start_again() -> None:
        while "Trying again." not in capsys.readouterr().err:
            time.sleep(0.05)
        registry.start()
        retried.set()

    threading.Thread(target=start_again, daemon=True).start()
    ingest.run(spark, settings(cluster, registry, topic, tmp_path))
    assert retried.is_set()
    assert rows(spark, tmp_path, f"tables/{topic}", "value") == [(0, Row(id=1, item="tea"))]
    assert not (tmp_path / "quarantine").exists()
    # Schemas that were read before are available without the registry, even after a restart.
    registry.stop()
    records.produce(cluster.bootstrap, topic, values)
    ingest.run(spark, settings(cluster, registry, topic, tmp_path, patience_seconds=0))
    assert len(rows(spark, tmp_path, f"tables/{topic}")) == 2


def test_a_registry_is_asked_before_spark_starts(
    cluster: Cluster,
    registry: SchemaRegistry,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    registry.credentials = "reader:secret"
    auth = tmp_path / "auth"
    auth.write_text("reader:wrong\n")
    where = ["--bootstrap-server", cluster.bootstrap, "--out", str(tmp_path), "--topics", topic]
    where += ["--value-format", "avro", "--schema-registry", registry.url]
    assert ingest.main([*where, "--schema-registry-auth", str(auth)]) == 1
    assert "refuses the credentials (status 401)" in capsys.readouterr().err
    auth.write_text("reader")
    assert ingest.main([*where, "--schema-registry-auth", str(auth)]) == 1
    assert "does not hold one line user:password" in capsys.readouterr().err
    registry.stop()
    assert ingest.main(where) == 1
    assert "tidelog: the schema registry does not answer at http" in capsys.readouterr().err
