"""`ingest` of JSON with a schema registry: a value that breaks its schema is quarantined."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import Row, SparkSession
from tests.pipelines import records
from tests.pipelines.nasty.tables_of_ingest import run, written
from tests.pipelines.schema_registry import SchemaRegistry, running

from tidelog.testing import Cluster
from tidelog_pipelines.transformations.values.json_validation import (
    JsonSchema,
    JsonSchemas,
    ValidatingParser,
)
from tidelog_pipelines.transformations.values.strict_json import DEFAULT_LIMITS, Refused

ORDER: dict[str, Any] = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer", "minimum": 1}, "item": {"type": "string"}},
    "required": ["id"],
}
HEADER = b"\0\0\0\0\1"


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with running() as found:
        yield found


def parser(schema: Any, *references: tuple[str, str]) -> ValidatingParser:
    known = JsonSchema(json.dumps(schema), references)
    return ValidatingParser(DEFAULT_LIMITS, JsonSchemas({1: known}, {2: "no"}))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (HEADER + b'{"id":0}', "by schema 1: $.id: 0 is less than the minimum of 1"),
        (HEADER + b'{"id":"1"}', "by schema 1: $.id: '1' is not of type 'integer'"),
        (HEADER + b'{"id":1.00000000000000000001}', "is not of type 'integer'"),
        (HEADER + b"{}", "by schema 1: $: 'id' is a required property"),
        (HEADER + b'{"id":1}{}', "the value is not JSON"),
        (HEADER + b'{"id":1,"id":2}', 'the value has the name "id" twice in one object'),
        (b'{"id":1}', "the value begins with byte 123, not with a schema registry's 0"),
        (b"\0\0\0\0\2{}", "no"),
        (b"\0\0\0\0\3{}", "schema 3 was not known when the records were examined"),
    ],
)
def test_what_is_not_valid_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(Refused) as refusal:
        parser(ORDER).parse(raw)
    assert str(refusal.value).endswith(reason)


def test_numbers_of_any_size_are_valid() -> None:
    raw = HEADER + b'{"id":123456789012345678901234567890,"more":0.12345678901234567890123}'
    assert parser(ORDER).parse(raw)["id"] == 123456789012345678901234567890


def test_references_are_resolved_or_named() -> None:
    schema = {"properties": {"order": {"$ref": "order.json"}}}
    known = parser(schema, ("order.json", json.dumps(ORDER)))
    assert known.parse(HEADER + b'{"order":{"id":1}}') == {"order": {"id": 1}}
    with pytest.raises(Refused, match="'id' is a required property"):
        known.parse(HEADER + b'{"order":{}}')
    with pytest.raises(Refused, match=r"it refers to order\.json, which the registry does not"):
        parser(schema).parse(HEADER + b'{"order":{}}')


@pytest.mark.parametrize(
    ("text", "reason"), [("{", "it is not JSON"), ('{"type": 5}', "it is not a valid JSON Schema")]
)
def test_a_schema_that_cannot_be_used(text: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        JsonSchema(text).validator()


def test_records_of_the_official_serializer(
    spark: SparkSession, cluster: Cluster, registry: SchemaRegistry, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    serializer = JSONSerializer(json.dumps(ORDER), SchemaRegistryClient({"url": registry.url}))
    context = SerializationContext(topic, MessageField.VALUE)
    good = serializer({"id": 1, "item": "tea"}, context)
    assert good is not None
    avro = registry.register("a-value", '"string"')
    bad = {
        1: (HEADER + b'{"id":0,"lost":1}', "the value is not valid by schema 1: "),
        2: (b"\0" + avro.to_bytes(4, "big") + b"{}", f"schema {avro} is of type AVRO, not JSON"),
        3: (b"\0\0\0\0\x63{}", "the schema registry has no schema with id 99"),
    }
    records.produce(cluster.bootstrap, topic, [good, *(raw for raw, _ in bad.values())])
    chosen = {"value_format": "json", "schema_registry": registry.url}
    for out, schema in ((tmp_path / "inferred", ""), (tmp_path / "chosen", "id BIGINT")):
        run(spark, cluster, topic, out, **chosen, schema=schema)
        found = written(spark, topic, out)
        expected = Row(id=1) if schema else Row(id=1, item="tea")
        assert {offset: row["value"] for offset, row in found.rows.items()} == {0: expected}
        assert found.rows[0]["_rescued"] == ('{"item":"tea"}' if schema else None)
        for offset, (raw, reason) in bad.items():
            assert found.quarantine[offset][0] == raw
            assert found.quarantine[offset][1].startswith(reason)
