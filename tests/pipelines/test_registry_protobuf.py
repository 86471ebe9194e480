"""`ingest` of Protobuf: records of the official serializer, with and without a registry."""

import base64
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from pyspark.sql import Row, SparkSession
from tests.pipelines import records
from tests.pipelines.nasty import protobuf_corpus
from tests.pipelines.nasty.comparable import plain
from tests.pipelines.nasty.independent_protobuf import (
    LINE,
    REFERENCES,
    SCHEMA,
    NotProtobuf,
    class_of,
    decode,
)
from tests.pipelines.nasty.tables_of_ingest import run, three_cuts, written
from tests.pipelines.schema_registry import SchemaRegistry, running

from tidelog.testing import Cluster
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.sources import protobuf_schemas
from tidelog_pipelines.transformations.values.shapes import Incompatible
from tidelog_pipelines.transformations.values.strict_json import Refused

REFERENCE = {"name": "odd/line.proto", "subject": "odd/line.proto", "version": 1}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with running() as found:
        found.sources = {"odd/line.proto": LINE, protobuf_schemas.ROOT: SCHEMA}
        yield found


def serialized(registry: SchemaRegistry, topic: str, value: Any) -> bytes:
    client = SchemaRegistryClient({"url": registry.url})
    serializer = ProtobufSerializer(type(value), client, {"use.deprecated.format": False})
    found = serializer(value, SerializationContext(topic, MessageField.VALUE))
    assert found is not None
    return found


def test_each_record_is_decoded_with_its_message(
    spark: SparkSession, cluster: Cluster, registry: SchemaRegistry, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    second: Any = class_of("odd.Second")()
    second.extra, second.odd.f, second.odd.w["k"].n = "x", 2**64 - 1, 5
    whole = serialized(registry, topic, second)
    first = whole[:5] + b"\0" + b"\x18\x07"
    newer = registry.register(
        topic, 'syntax = "proto3"; message Second { bool extra = 1; }', "PROTOBUF"
    )
    values = [
        whole,
        whole + b"\xc8\x3e\x07",
        first,
        whole[:5] + b"\2\x0a",
        whole[:-1],
        b"\0" + newer.to_bytes(4, "big") + b"\0\x08\1",
        whole[:5] + b"\xff",
    ]
    records.produce(cluster.bootstrap, topic, values)
    run(spark, cluster, topic, tmp_path, value_format="protobuf", schema_registry=registry.url)
    found = written(spark, topic, tmp_path)
    assert sorted(found.rows) == [0, 1, 2]
    for offset in (0, 1):
        row = found.rows[offset]["value"]
        assert (row["extra"], row["odd"]["f"]) == ("x", Decimal(2**64 - 1))
        assert row["odd"]["w"] == {"k": Row(n=5, suit="TEA")}
        assert row["odd"]["r"] is None
    assert found.rows[1]["_rescued"] == '{"#1001":"yD4H"}'
    assert found.rows[2]["value"]["c"] == 7
    name = f"schema {newer} does not fit the table: "
    assert {offset: reason for offset, (_, reason) in found.quarantine.items()} == {
        3: "schema 2 does not fit the table: it has no message at position 5",
        4: "the value does not match the Protobuf schema: it ends too early",
        5: name + "field extra is BOOLEAN, and STRING in the table",
        6: "the header does not have the message indexes of Protobuf",
    }


def test_messages_without_a_registry(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    records.produce(cluster.bootstrap, topic, [b"\x08\x01\x12\x03tea", b"\x08", b"\x18\x05"])
    text = """syntax = "proto2"; package shop;
    message Order { optional int32 id = 1; optional string item = 2; }"""
    (tmp_path / "order.proto").write_text(text)
    (tmp_path / "order.desc").write_bytes(protobuf_schemas.descriptors(text, ()))
    for schema in ("order.proto", "order.desc"):
        out = tmp_path / schema.replace(".", "-")
        chosen = {"schema": str(tmp_path / schema), "value_format": "protobuf"}
        run(spark, cluster, topic, out, **chosen, message="shop.Order")
        found = written(spark, topic, out)
        assert found.rows[0]["value"] == Row(id=1, item="tea")
        assert found.rows[2]["_rescued"] == '{"#3":"GAU="}'
        assert list(found.quarantine) == [1]
    with pytest.raises(JobFailed, match=r"it has no message shop\.Ordre"):
        run(spark, cluster, topic, tmp_path, **chosen, message="shop.Ordre")


def test_the_corpus_in_one_batch_in_many_and_in_random_cuts(
    spark: SparkSession, cluster: Cluster, registry: SchemaRegistry, topic: str, tmp_path: Path
) -> None:
    values = protobuf_corpus.values()
    registry.register("odd/line.proto", LINE, "PROTOBUF")
    registry.register(topic, SCHEMA, "PROTOBUF", [REFERENCE])
    chosen = {"value_format": "protobuf", "schema_registry": registry.url}
    outs = three_cuts(spark, cluster, topic, tmp_path, values, **chosen)
    found = [written(spark, topic, out) for out in outs]
    assert sorted([*found[0].rows, *found[0].quarantine]) == list(range(len(values)))
    for offset, raw in enumerate(values):
        if offset in found[0].quarantine:
            assert found[0].quarantine[offset][0] == raw
            continue
        row = found[0].rows[offset]
        assert comparable(row["value"]) == (None if raw is None else expected(raw)), raw
    assert len(found[0].rows) > 300
    assert len(found[0].quarantine) > 200
    for other in found[1:]:
        assert repr(sorted(other.rows.items())) == repr(sorted(found[0].rows.items()))
        assert other.quarantine == found[0].quarantine


def expected(raw: bytes) -> Any:
    """The value as Protobuf's own runtime decodes it."""
    assert raw.startswith(protobuf_corpus.HEADER)
    try:
        return comparable(decode(raw[len(protobuf_corpus.HEADER) :]))
    except NotProtobuf:
        return "not decoded"


def comparable(value: Any) -> Any:
    """The value without empty lists, and without unknown fields, which are in `_rescued`."""
    found = plain(value)
    if isinstance(found, dict):
        kept = {name: comparable(one) for name, one in found.items() if name != "#"}
        return {name: one for name, one in kept.items() if one not in ([], {})}
    return [comparable(one) for one in found] if isinstance(found, list) else found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("message {", r"not a valid Protobuf schema \(line 1:"),
        ('syntax = "proto3"; import "gone.proto";', "not a valid Protobuf schema"),
        ('syntax = "proto3";', "no message at position 0"),
    ],
)
def test_a_schema_that_cannot_be_used(text: str, reason: str) -> None:
    with pytest.raises(Incompatible, match=reason):
        protobuf_schemas.writer(text, (), (0,))


def compiled(text: str, references: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The schema and its references as the serializers register them, by the names of files."""
    made = FileDescriptorSet.FromString(protobuf_schemas.descriptors(text, references))
    return {one.name: base64.b64encode(one.SerializeToString()).decode() for one in made.file}


@pytest.mark.parametrize("compiled_references", [True, False])
def test_a_registry_may_answer_with_compiled_schemas(compiled_references: bool) -> None:
    """Apicurio's registry returns what the serializer has registered, not the text of a schema."""
    files = compiled(SCHEMA, REFERENCES)
    given = tuple((name, files[name] if compiled_references else text) for name, text in REFERENCES)
    found = protobuf_schemas.writer(files[protobuf_schemas.ROOT], given, (1,))
    assert found == protobuf_schemas.writer(SCHEMA, REFERENCES, (1,))
    renamed = FileDescriptorProto.FromString(base64.b64decode(files[protobuf_schemas.ROOT]))
    renamed.name = "shop/orders.proto"
    text = base64.b64encode(renamed.SerializeToString()).decode()
    assert protobuf_schemas.writer(text, given, (1,)) == found


def test_a_compiled_schema_that_is_damaged_cannot_be_used() -> None:
    with pytest.raises(Incompatible, match="not a valid Protobuf schema"):
        protobuf_schemas.writer(base64.b64encode(b"\xff\xff").decode(), (), (0,))


def test_a_reference_stays_in_its_directory() -> None:
    with pytest.raises(Incompatible, match="which is not a relative path"):
        protobuf_schemas.writer(SCHEMA, (*REFERENCES, ("../x.proto", "")), (0,))


def test_the_rules_of_proto2_and_messages_in_themselves() -> None:
    text = """syntax = "proto2"; import "google/protobuf/struct.proto";
    message Old { required int32 id = 1; optional group Part = 2 { optional bool b = 3; }
      optional Old next = 4; optional google.protobuf.Struct more = 5;
      map<string, int32> m = 6; }"""
    _, read = protobuf_schemas.writer(text, (), (0,)).compiled()
    assert read(b"\x08\1\x13\x18\1\x14\x22\2\x08\2\x32\0", 0) == {
        "id": 1,
        "part": {"b": True},
        "next": '{"id":2}',
        "m": [("", 0)],
    }
    with pytest.raises(Refused, match="field id is required, and missing"):
        read(b"", 0)


@pytest.mark.parametrize(("index", "name"), [(0, "Old.Part"), (1, "Old.A"), (3, "Old.B")])
def test_a_position_counts_the_entries_of_maps_or_not(index: int, name: str) -> None:
    text = """syntax = "proto3"; message Old { message Part {} map<string, int32> m = 6;
      message A {} message B {} }"""
    assert protobuf_schemas.writer(text, (), (0, index)).root == name
    with pytest.raises(Incompatible, match=r"position 2 may be message Old\.B or Old\.A"):
        protobuf_schemas.writer(text, (), (0, 2))
