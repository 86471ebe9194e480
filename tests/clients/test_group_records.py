"""The records of consumer groups have the bytes that Kafka's own serializer writes."""

import base64
import json
import subprocess
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.clients.java import JVM, QUIET

from tidelog.coordination.groups.consumer import records as r
from tidelog.coordination.records import decode_key, decode_value, encode_key, encode_value

PROGRAM = Path(__file__).with_name("Records.java")
TOPIC, OTHER = UUID(int=(7 << 64) + 3), UUID("c0ffee00-1234-4567-89ab-cdef01234567")

RECORDS: list[tuple[Any, Any]] = [
    (r.ConsumerGroupMetadataKey("g"), r.ConsumerGroupMetadataValue(epoch=7)),
    (
        r.ConsumerGroupMetadataKey("gruppe-ö"),
        r.ConsumerGroupMetadataValue(epoch=2**31 - 1, metadata_hash=-(2**63)),
    ),
    (
        r.ConsumerGroupPartitionMetadataKey("g"),
        r.ConsumerGroupPartitionMetadataValue(
            (
                r.SubscribedTopicMetadata(
                    topic_id=TOPIC,
                    topic_name="t",
                    num_partitions=2,
                    partition_metadata=(r.PartitionRacks(0, ("a", "b")),),
                ),
            )
        ),
    ),
    (
        r.ConsumerGroupMemberMetadataKey("g", "m"),
        r.ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id="client",
            client_host="/127.0.0.1",
            subscribed_topic_names=("a", "b"),
            subscribed_topic_regex="",
            rebalance_timeout_ms=300_000,
            server_assignor=None,
        ),
    ),
    (
        r.ConsumerGroupMemberMetadataKey("g", "m"),
        r.ConsumerGroupMemberMetadataValue(
            instance_id="i",
            rack_id="rack",
            client_id="c" * 200,
            client_host="/::1",
            subscribed_topic_names=(),
            subscribed_topic_regex="logs-.*",
            rebalance_timeout_ms=1,
            server_assignor="range",
            classic_member_metadata=r.ClassicMemberMetadata(
                45_000, (r.ClassicProtocol("range", b"\0\1\xff"), r.ClassicProtocol("sticky", b""))
            ),
        ),
    ),
    (
        r.ConsumerGroupTargetAssignmentMetadataKey("g"),
        r.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=3),
    ),
    (
        r.ConsumerGroupTargetAssignmentMetadataKey("g"),
        r.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=3, assignment_timestamp=1_700_000_000_000
        ),
    ),
    (
        r.ConsumerGroupTargetAssignmentMemberKey("g", "m"),
        r.ConsumerGroupTargetAssignmentMemberValue(
            (r.TargetTopicPartitions(TOPIC, (0, 1, 300)), r.TargetTopicPartitions(OTHER, ()))
        ),
    ),
    (
        r.ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
        r.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=5,
            previous_member_epoch=-1,
            state=1,
            assigned_partitions=(r.CurrentTopicPartitions(TOPIC, (0, 1), (4, 5)),),
            partitions_pending_revocation=(r.CurrentTopicPartitions(OTHER, (9,)),),
        ),
    ),
    (
        r.ConsumerGroupRegularExpressionKey("g", "logs-.*"),
        r.ConsumerGroupRegularExpressionValue(topics=("logs-a",), version=12, timestamp=99),
    ),
]


def test_records_have_kafkas_bytes(kafka_libs: Path) -> None:
    lines = [
        "\t".join((type(key).__name__.removesuffix("Key"), as_json(key), as_json(value)))
        for key, value in RECORDS
    ]
    ran = subprocess.run(
        ["java", *JVM, *QUIET, "-cp", f"{kafka_libs}/*", str(PROGRAM)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr

    ours = [f"{encode_key(key).hex()} {encode_value(value).hex()}" for key, value in RECORDS]
    assert ours == ran.stdout.splitlines()
    for (key, value), line in zip(RECORDS, ran.stdout.splitlines(), strict=True):
        key_bytes, value_bytes = map(bytes.fromhex, line.split())
        assert decode_key(key_bytes) == key
        assert decode_value(key, value_bytes) == value


def as_json(entity: Any) -> str:
    return json.dumps(_plain(entity))


def _plain(value: Any) -> Any:
    """A record as Kafka's JSON: names in camel case, ids and bytes in base64."""
    if is_dataclass(value):
        named = {_camel(one.name): _plain(getattr(value, one.name)) for one in fields(value)}
        # A null structure is written by leaving it out.
        return {name: one for name, one in named.items() if not _is_omitted(name, one)}
    match value:
        case UUID():
            return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
        case bytes():
            return base64.b64encode(value).decode()
        case tuple():
            return [_plain(one) for one in value]
    return value


def _is_omitted(name: str, value: Any) -> bool:
    return value is None and name in ("classicMemberMetadata", "assignmentEpochs")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    joined = first + "".join(word.capitalize() for word in rest)
    return "groupId" if joined == "group" else joined
