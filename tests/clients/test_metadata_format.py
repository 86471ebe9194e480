"""The metadata log has Kafka's format. We read Kafka's log, and Kafka's tool reads our log."""

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints
from uuid import UUID

import pytest
from tests.clients.java import Tools, run_tool
from tests.clients.librdkafka import create, producer_of, send_values
from tests.clients.schema import Schemas
from tests.clients.systems import ApacheKafka, Broker, Tidelog

from tidelog.controller.image.apply import apply_all
from tidelog.controller.image.image import BROKER_RESOURCE, TOPIC_RESOURCE, ClusterImage
from tidelog.protocol.metadata import metadata_records as r
from tidelog.protocol.metadata.codec import decode_record, encode_record
from tidelog.protocol.metadata.metadata_records import MetadataRecord, Wire
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import Record, build_batch, read_records

SEGMENT = "00000000000000000000.log"
SAMPLES: dict[str, Any] = {
    "int8": 1,
    "int16": 2,
    "uint16": 65_000,
    "int32": 4,
    "int64": 5,
    "float64": 6.5,
    "bool": True,
    "string": "seven",
    "bytes": b"eight",
    "uuid": UUID("00000000-0000-0000-0000-000000000009"),
}


def _entity(entity_type: Any, *, only_required: bool) -> Any:
    hints = get_type_hints(entity_type, include_extras=True)
    values = {}
    for field in dataclasses.fields(entity_type):
        if only_required and field.default is not dataclasses.MISSING:
            continue
        (wire,) = (note for note in get_args(hints[field.name]) if isinstance(note, Wire))
        values[field.name] = _sample(wire, only_required=only_required)
    return entity_type(**values)


def _sample(wire: Wire, *, only_required: bool) -> Any:
    if wire.kafka_type in SAMPLES:
        one = SAMPLES[wire.kafka_type]
    else:
        one = _entity(getattr(r, wire.kafka_type), only_required=only_required)
    return (one, one) if wire.array else one


def _every_record() -> Iterator[MetadataRecord]:
    for record_type in get_args(MetadataRecord):
        yield _entity(record_type, only_required=True)
        yield _entity(record_type, only_required=False)


def _kafka_name(record: MetadataRecord) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(record).__name__).upper()


def test_kafkas_dump_tool_reads_every_record_that_we_write(
    kafka_libs: Path, tmp_path: Path
) -> None:
    written = list(_every_record())
    log = tmp_path / "__cluster_metadata-0" / SEGMENT
    log.parent.mkdir()
    log.write_bytes(
        build_batch([Record(None, encode_record(one), 1) for one in written], 0, leader_epoch=1)
    )
    dump = run_tool(kafka_libs, "kafka-dump-log", "--cluster-metadata-decoder", "--files", str(log))
    payloads = [json.loads(found) for found in re.findall(r"payload: (\{.*\})", dump)]

    assert "isvalid: true" in dump
    assert [found["type"] for found in payloads] == [_kafka_name(one) for one in written]
    for record, found in zip(written, payloads, strict=True):
        for field in dataclasses.fields(record):
            value = getattr(record, field.name)
            if isinstance(value, str | int | float) and value != field.default:
                name = re.sub(r"_(.)", lambda match: match[1].upper(), field.name)
                assert found["data"][name] == value, (record, found)


def test_kafkas_dump_tool_reads_the_log_of_a_broker_of_ours(
    schemas: Schemas, tmp_path: Path
) -> None:
    ours = Tidelog(tmp_path / "tidelog", schemas)
    ours.format()
    ours.start()
    try:
        create(ours, "plain", 2)
        ours.stop()
    finally:
        ours.kill()
    log = ours.data / "__cluster_metadata-0" / SEGMENT
    dump = run_tool(
        schemas.libs, "kafka-dump-log", "--cluster-metadata-decoder", "--files", str(log)
    )

    assert 'LeaderChange: {"version":0,"leaderId":1,"voters":[{"voterId":1}]' in dump
    for written in ("FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD", "TOPIC_RECORD"):
        assert written in dump
    assert dump.count('"type":"PARTITION_RECORD"') == 2
    assert "isvalid: false" not in dump


@pytest.fixture
def kafka(schemas: Schemas, tmp_path: Path) -> Iterator[Broker]:
    broker = ApacheKafka(tmp_path / "kafka", schemas)
    broker.format()
    broker.start()
    yield broker
    broker.kill()


def _replay(segment: Path) -> ClusterImage:
    data = segment.read_bytes()
    image = ClusterImage()
    for at, header in iterate(data):
        records: list[MetadataRecord] = []
        if not header.is_control:
            batch = read_records(data[at : at + header.size])
            records = [decode_record(record.value or b"") for record in batch]
            assert [decode_record(encode_record(one)) for one in records] == records
        image = apply_all(image, records, header.last_offset, header.leader_epoch)
    return image


def test_we_read_the_metadata_log_of_a_kafka_broker(kafka: Broker, tmp_path: Path) -> None:
    tools = Tools(kafka, tmp_path)
    create(kafka, "plain", 3)
    create(kafka, "configured", 1, retention_ms=5000)
    create(kafka, "short-lived", 1)
    send_values(producer_of(kafka, enable_idempotence=True), "plain", [b"x"])
    tools.run("kafka-topics", "--delete", "--topic", "short-lived")
    tools.run("kafka-topics", "--alter", "--topic", "plain", "--partitions", "5")
    for options in (
        ("--entity-type", "brokers", "--entity-default", "--add-config", "log.retention.ms=900000"),
        ("--entity-type", "users", "--entity-name", "a", "--add-config", "producer_byte_rate=9"),
    ):
        tools.run("kafka-configs", "--alter", *options)
    kafka.restart()
    kafka.stop()

    image = _replay(kafka.data / "__cluster_metadata-0" / SEGMENT)
    assert sorted(image.topics) == ["configured", "plain"]
    assert len(image.topics["plain"].partitions) == 5
    assert image.config(TOPIC_RESOURCE, "configured") == {"retention.ms": "5000"}
    assert image.config(BROKER_RESOURCE, "")["log.retention.ms"] == "900000"
    assert image.next_producer_id == 1000
    assert image.brokers[1].endpoints["PLAINTEXT"].port == kafka.port
    assert image.features["metadata.version"] >= 27
    assert [key[:2] for key in image.carried] == [("quota", "producer_byte_rate")]
    assert image.brokers[1].fenced, "it has shut down"
    for partition in image.topics["plain"].partitions.values():
        assert (partition.leader, partition.isr, partition.elr) == (-1, (), (1,))
