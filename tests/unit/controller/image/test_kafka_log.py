"""A complete metadata log of Apache Kafka 4.1 is replayed."""

from pathlib import Path
from uuid import UUID

from tidelog.controller.image.apply import apply_all
from tidelog.controller.image.image import BROKER_RESOURCE, TOPIC_RESOURCE, ClusterImage, Endpoint
from tidelog.protocol.metadata.codec import decode_record, encode_record
from tidelog.protocol.metadata.metadata_records import MetadataRecord, PartitionRecord
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import read_records

SEGMENT = Path(__file__).parent / "data" / "kafka-4.1-cluster-metadata.log"


def _values() -> list[bytes]:
    data = SEGMENT.read_bytes()
    return [
        record.value
        for at, header in iterate(data)
        if not header.is_control
        for record in read_records(data[at : at + header.size])
        if record.value is not None
    ]


def _replay() -> ClusterImage:
    data = SEGMENT.read_bytes()
    image = ClusterImage()
    for at, header in iterate(data):
        records: list[MetadataRecord] = []
        if not header.is_control:
            batch = read_records(data[at : at + header.size])
            records = [decode_record(record.value or b"") for record in batch]
        image = apply_all(image, records, header.last_offset, header.leader_epoch)
    return image


def test_every_record_decodes_and_encodes_to_the_same_bytes() -> None:
    values = _values()
    assert len(values) == 96
    for value in values:
        record = decode_record(value)
        encoded = encode_record(record)
        if isinstance(record, PartitionRecord):
            # Kafka writes version 2 whenever the feature is on. Tidelog does so only if a field
            # needs it.
            assert (value[2], encoded[2]) == (2, 1)
            assert encoded[3:] == value[3:]
        else:
            assert encoded == value


def test_the_image_is_the_cluster_that_was() -> None:
    image = _replay()

    assert sorted(image.topics) == ["a-cfg", "a-one", "auto"]
    assert sorted(image.topic_names.values()) == ["a-cfg", "a-one", "auto"]
    assert [len(image.topics[name].partitions) for name in ("a-cfg", "a-one", "auto")] == [2, 3, 1]
    assert image.config(TOPIC_RESOURCE, "a-cfg") == {
        "cleanup.policy": "compact",
        "retention.ms": "1000",
    }
    assert image.config(TOPIC_RESOURCE, "c19") == {}, "went with its topic"
    assert image.config(BROKER_RESOURCE, "")["log.retention.ms"] == "880000"
    assert image.features == {
        "metadata.version": 27,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "transaction.version": 2,
    }
    assert image.next_producer_id == 3000
    assert (image.offset, image.epoch) == (98, 3)
    assert image.before_transaction is None


def test_the_broker_is_back_after_two_restarts() -> None:
    image = _replay()
    broker = image.brokers[1]

    assert list(image.brokers) == [1], "broker 2 came and was unregistered"
    assert (broker.epoch, broker.fenced, broker.in_controlled_shutdown) == (66, False, False)
    assert broker.endpoints == {"PLAINTEXT": Endpoint("127.0.0.1", 29092, 0)}
    partition = image.topics["a-one"].partitions[0]
    assert (partition.leader, partition.isr, partition.elr) == (1, (1,), ())
    assert (partition.leader_epoch, partition.partition_epoch) == (4, 4)
    assert partition.directories == (UUID("4573ff76-6ce5-ce7f-70e7-fce6e309a989"),)


def test_what_is_not_acted_on_is_kept() -> None:
    assert sorted(_replay().carried) == [("quota", "request_percentage", "client-id", "default")]


def test_credentials_are_in_the_image_and_not_in_its_text() -> None:
    image = _replay()
    assert list(image.scram) == [("alice", 2)]
    assert "alice" not in repr(image)
