"""`ingest` reads what the official serializers write, whatever registry keeps the schemas.

By default, the registry is the one of these tests. With `--schema-registry URL` it is a real one,
such as Apicurio Registry, whose URL ends with /apis/ccompat/v7.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import Row, SparkSession
from tests.pipelines import records
from tests.pipelines.nasty.independent_protobuf import LINE, SCHEMA, class_of
from tests.pipelines.nasty.tables_of_ingest import run, written
from tests.pipelines.schema_registry import running

from tidelog.testing import Cluster
from tidelog_pipelines.sources import protobuf_schemas

UNKNOWN = (2**31 - 1).to_bytes(4, "big")
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "item", "type": "string"}],
}
JSON = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}


@pytest.fixture
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if real := request.config.getoption("--schema-registry"):
        yield real
        return
    with running() as found:
        found.sources = {"odd/line.proto": LINE, protobuf_schemas.ROOT: SCHEMA}
        yield found.url


def serialized(url: str, kind: str, topic: str) -> bytes:
    client = SchemaRegistryClient({"url": url})
    value: Any = {"id": 1, "item": "tea"}
    if kind == "protobuf":
        value = class_of("odd.Second")()
        value.extra, value.odd.w["k"].n = "x", 5
    serializer: Any = {
        "avro": lambda: AvroSerializer(client, json.dumps(AVRO)),
        "json": lambda: JSONSerializer(json.dumps(JSON), client),
        "protobuf": lambda: ProtobufSerializer(
            type(value), client, {"use.deprecated.format": False}
        ),
    }[kind]()
    found = serializer(value, SerializationContext(topic, MessageField.VALUE))
    assert isinstance(found, bytes)
    return found


@pytest.mark.parametrize("kind", ["avro", "json", "protobuf"])
def test_a_record_is_decoded_and_one_of_an_unknown_schema_is_quarantined(
    spark: SparkSession, cluster: Cluster, url: str, topic: str, tmp_path: Path, kind: str
) -> None:
    topic = f"{topic}-{uuid4().hex}"  # a real registry keeps the subjects of earlier runs
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    good = serialized(url, kind, topic)
    bad = good[:1] + UNKNOWN + good[5:]
    records.produce(cluster.bootstrap, topic, [good, bad])
    run(spark, cluster, topic, tmp_path, value_format=kind, schema_registry=url)
    found = written(spark, topic, tmp_path)
    assert list(found.rows) == [0]
    value = found.rows[0]["value"]
    if kind == "protobuf":
        assert (value["extra"], value["odd"]["w"]) == ("x", {"k": Row(n=5, suit="TEA")})
    else:
        assert value == Row(id=1, item="tea")
    reason = f"the schema registry has no schema with id {2**31 - 1}"
    assert found.quarantine == {1: (bad, reason)}
