"""Topics, configurations and offsets as an administrator's client sees them (confluent-kafka)."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from tests.clients.librdkafka import (
    admin_of,
    create,
    producer_of,
    read,
    send,
    send_values,
    watermarks,
)
from tests.clients.samples import BASE_TIME, Sample, numbered
from tests.clients.systems import PATIENCE, Broker


def eventually(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_create_describe_and_list(broker: Broker, topic: str) -> None:
    create(broker, topic, 3)
    admin = admin_of(broker)
    found = admin.list_topics(timeout=PATIENCE)
    assert set(found.topics[topic].partitions) == {0, 1, 2}
    described = admin.describe_topics(TopicCollection([topic]), request_timeout=PATIENCE)
    description = described[topic].result()
    assert [p.leader.id for p in description.partitions] == [1, 1, 1]
    assert [[r.id for r in p.isr] for p in description.partitions] == [[1], [1], [1]]
    assert not description.is_internal


def test_describe_cluster(broker: Broker) -> None:
    admin = admin_of(broker)
    cluster = admin.describe_cluster(request_timeout=PATIENCE).result()
    assert [(node.id, node.port) for node in cluster.nodes] == [(1, broker.port)]
    assert cluster.controller.id == 1
    assert cluster.cluster_id


def test_topic_exists(broker: Broker, topic: str) -> None:
    create(broker, topic)
    with pytest.raises(KafkaException) as refused:
        create(broker, topic)
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS


def test_too_many_replicas(broker: Broker, topic: str) -> None:
    admin = admin_of(broker)
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(PATIENCE)
    assert refused.value.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR


def test_delete_and_create_again(broker: Broker, topic: str) -> None:
    admin = admin_of(broker)
    ids = []
    for turn in range(3):
        create(broker, topic, turn + 1)
        described = admin.describe_topics(TopicCollection([topic]), request_timeout=PATIENCE)
        ids.append(str(described[topic].result().topic_id))
        assert send_values(producer_of(broker), topic, [f"turn {turn}".encode()]) == [0]
        assert [sample.value for sample in read(broker, topic, 1)] == [f"turn {turn}".encode()]
        admin.delete_topics([topic], operation_timeout=30)[topic].result(PATIENCE)
        eventually(lambda: topic not in admin.list_topics(timeout=PATIENCE).topics)
    assert len(set(ids)) == 3


def test_add_partitions(broker: Broker, topic: str) -> None:
    create(broker, topic)
    admin = admin_of(broker)
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(PATIENCE)
    eventually(
        lambda: len(admin.list_topics(topic, timeout=PATIENCE).topics[topic].partitions) == 4
    )
    send_values(producer_of(broker), topic, [b"in the new one"], partition=3)
    assert read(broker, topic, 1, partition=3)[0].value == b"in the new one"
    with pytest.raises(KafkaException) as refused:
        admin.create_partitions([NewPartitions(topic, 2)])[topic].result(PATIENCE)
    assert refused.value.args[0].code() == KafkaError.INVALID_PARTITIONS


def test_delete_records(broker: Broker, topic: str) -> None:
    create(broker, topic)
    send_values(producer_of(broker, batch_num_messages=10), topic, numbered(100))
    admin = admin_of(broker)
    (done,) = admin.delete_records([TopicPartition(topic, 0, 35)]).values()
    assert done.result(PATIENCE).low_watermark == 35
    assert watermarks(broker, topic) == (35, 100)
    assert [sample.value for sample in read(broker, topic, 65)] == numbered(100)[35:]
    (refused,) = admin.delete_records([TopicPartition(topic, 0, 101)]).values()
    with pytest.raises(KafkaException) as problem:
        refused.result(PATIENCE)
    assert problem.value.args[0].code() == KafkaError.OFFSET_OUT_OF_RANGE


def test_deleted_records_stay_deleted_after_a_restart(
    start_broker: Callable[[], Broker], topic: str
) -> None:
    broker = start_broker()
    create(broker, topic)
    send_values(producer_of(broker), topic, numbered(100))
    admin = admin_of(broker)
    (done,) = admin.delete_records([TopicPartition(topic, 0, 35)]).values()
    done.result(PATIENCE)
    broker.restart()
    assert watermarks(broker, topic) == (35, 100)


def test_list_offsets(broker: Broker, topic: str) -> None:
    create(broker, topic)
    times = [BASE_TIME + delta for delta in (0, 10, 50, 40, 20)]
    send(producer_of(broker), topic, [Sample(None, b"v", (), stamp) for stamp in times])
    admin = admin_of(broker)

    def offset(spec: OffsetSpec) -> tuple[int, int]:
        (found,) = admin.list_offsets({TopicPartition(topic, 0): spec}).values()
        result = found.result(PATIENCE)
        return result.offset, result.timestamp

    assert offset(OffsetSpec.earliest())[0] == 0
    assert offset(OffsetSpec.latest())[0] == 5
    assert offset(OffsetSpec.max_timestamp()) == (2, BASE_TIME + 50)
    assert offset(OffsetSpec.for_timestamp(BASE_TIME + 5)) == (1, BASE_TIME + 10)
    assert offset(OffsetSpec.for_timestamp(BASE_TIME + 51))[0] == -1


def test_configurations(broker: Broker, topic: str) -> None:
    create(broker, topic, retention_ms=12345)
    admin = admin_of(broker)

    def configs() -> dict[str, ConfigEntry]:
        (found,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        return dict(found.result(PATIENCE))

    before = configs()
    assert before["retention.ms"].value == "12345"
    assert before["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert before["segment.bytes"].value == str(1 << 30)
    assert before["segment.bytes"].is_default

    def change(name: str, value: str | None, how: AlterConfigOpType) -> None:
        entry = ConfigEntry(name, value, incremental_operation=how)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        (done,) = admin.incremental_alter_configs([resource]).values()
        done.result(PATIENCE)

    change("max.message.bytes", "5000", AlterConfigOpType.SET)
    change("retention.ms", None, AlterConfigOpType.DELETE)
    eventually(lambda: configs()["max.message.bytes"].value == "5000")
    eventually(lambda: configs()["retention.ms"].value == "604800000")
    with pytest.raises(AssertionError, match="MSG_SIZE_TOO_LARGE"):
        send_values(producer_of(broker), topic, [b"x" * 6000])  # the new limit is in effect
    with pytest.raises(KafkaException) as refused:
        change("retention.ms", "soon", AlterConfigOpType.SET)
    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_everything_survives_a_restart(start_broker: Callable[[], Broker], topic: str) -> None:
    broker = start_broker()
    create(broker, topic, 3, retention_ms=98765, message_timestamp_type="LogAppendTime")
    for partition in range(3):
        send_values(producer_of(broker), topic, numbered(20), partition)

    def state() -> tuple[object, ...]:
        admin = admin_of(broker)
        cluster = admin.describe_cluster(request_timeout=PATIENCE).result()
        described = admin.describe_topics(TopicCollection([topic]), request_timeout=PATIENCE)
        (found,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        configs = {key: entry.value for key, entry in found.result(PATIENCE).items()}
        samples = [read(broker, topic, 20, partition) for partition in range(3)]
        return cluster.cluster_id, str(described[topic].result().topic_id), configs, samples

    before = state()
    for end in (broker.stop, broker.kill):
        end()
        broker.start()
        assert state() == before
        assert watermarks(broker, topic, 2) == (0, 20)
