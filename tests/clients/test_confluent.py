"""confluent-kafka: records are read back unchanged, whatever the client's settings are."""

import time

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from tests.clients.librdkafka import (
    consumer_of,
    create,
    poll,
    producer_of,
    read,
    read_messages,
    send,
    send_values,
    watermarks,
)
from tests.clients.samples import BASE_TIME, CODECS, NULL_HEADER, SAMPLES, Sample, numbered
from tests.clients.systems import PATIENCE, Broker


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("codec", CODECS)
def test_round_trip(broker: Broker, topic: str, codec: str, idempotent: bool) -> None:
    create(broker, topic)
    producer = producer_of(
        broker, compression_type=codec, enable_idempotence=idempotent, linger_ms=20
    )
    sent = [*SAMPLES, NULL_HEADER]
    assert send(producer, topic, sent) == list(range(len(sent)))
    assert read(broker, topic, len(sent)) == sent


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(broker: Broker, topic: str, acks: str) -> None:
    create(broker, topic)
    values = numbered(1000)
    send_values(producer_of(broker, acks=acks), topic, values)
    messages = read_messages(broker, topic, len(values))
    assert [message.value() for message in messages] == values
    assert [message.offset() for message in messages] == list(range(1000))


def test_records_up_to_the_limit_pass_and_larger_ones_are_refused(
    broker: Broker, topic: str
) -> None:
    create(broker, topic, max_message_bytes=100_000)
    producer = producer_of(broker, message_max_bytes=1_000_000)
    largest = b"x" * (100_000 - 61 - 20)
    send_values(producer, topic, [largest])
    with pytest.raises(AssertionError, match="MSG_SIZE_TOO_LARGE"):
        send_values(producer, topic, [b"x" * 100_000])
    send_values(producer, topic, [b"after"])
    assert [sample.value for sample in read(broker, topic, 2)] == [largest, b"after"]


def test_a_record_of_a_megabyte_with_default_limits(broker: Broker, topic: str) -> None:
    create(broker, topic)
    value = bytes(range(256)) * 3900
    send_values(producer_of(broker), topic, [value, b"small"])
    assert [sample.value for sample in read(broker, topic, 2)] == [value, b"small"]


def test_a_record_larger_than_the_fetch_limit_is_still_read(broker: Broker, topic: str) -> None:
    create(broker, topic)
    values = [bytes([n]) * 50_000 for n in range(5)]
    for value in values:
        send_values(producer_of(broker), topic, [value])
    limits = {"fetch_message_max_bytes": 1000, "fetch_max_bytes": 1000, "message_max_bytes": 1000}
    messages = read_messages(broker, topic, 5, **limits)
    assert [message.value() for message in messages] == values


def test_many_partitions(broker: Broker, topic: str) -> None:
    partitions = 100
    create(broker, topic, partitions)
    producer = producer_of(broker)
    values = numbered(2000)
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions)
    assert producer.flush(PATIENCE) == 0
    with consumer_of(broker) as consumer:
        consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
        messages = poll(consumer, len(values))
    assert sorted(message.value() for message in messages) == values
    for partition in range(partitions):
        own = [m.value() for m in messages if m.partition() == partition]
        assert own == values[partition::partitions]


def test_equal_keys_go_to_one_partition_in_order(broker: Broker, topic: str) -> None:
    create(broker, topic, 6)
    producer = producer_of(broker)
    for number in range(600):
        producer.produce(topic, str(number), key=str(number % 10))
    assert producer.flush(PATIENCE) == 0
    with consumer_of(broker) as consumer:
        consumer.assign([TopicPartition(topic, p, 0) for p in range(6)])
        messages = poll(consumer, 600)
    for key in range(10):
        own = [m for m in messages if m.key() == str(key).encode()]
        assert len({m.partition() for m in own}) == 1
        assert [int(m.value() or b"") for m in own] == list(range(key, 600, 10))


def test_create_time_is_the_clients(broker: Broker, topic: str) -> None:
    create(broker, topic)
    send(producer_of(broker), topic, SAMPLES)
    stamps = [message.timestamp() for message in read_messages(broker, topic, len(SAMPLES))]
    assert stamps == [(TIMESTAMP_CREATE_TIME, sample.timestamp) for sample in SAMPLES]


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_time_is_the_brokers(broker: Broker, topic: str, codec: str) -> None:
    create(broker, topic, message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    send(producer_of(broker, compression_type=codec), topic, SAMPLES)
    after = int(time.time() * 1000)
    messages = read_messages(broker, topic, len(SAMPLES))
    for message in messages:
        kind, stamp = message.timestamp()
        assert kind == TIMESTAMP_LOG_APPEND_TIME
        assert before <= stamp <= after
    assert [message.value() for message in messages] == [sample.value for sample in SAMPLES]


@pytest.mark.parametrize("codec", CODECS)
def test_offsets_by_timestamp(broker: Broker, topic: str, codec: str) -> None:
    create(broker, topic)
    rising = [Sample(None, b"v", (), BASE_TIME + 10 * n) for n in range(100)]
    producer = producer_of(broker, compression_type=codec, batch_num_messages=10)
    send(producer, topic, rising)
    with consumer_of(broker) as consumer:
        for asked, expected in ((0, 0), (5, 1), (10, 1), (555, 56), (990, 99), (991, -1)):
            wanted = [TopicPartition(topic, 0, BASE_TIME + asked)]
            (found,) = consumer.offsets_for_times(wanted, timeout=PATIENCE)
            assert found.error is None
            assert found.offset == (OFFSET_END if expected < 0 else expected)


def test_seek(broker: Broker, topic: str) -> None:
    create(broker, topic)
    send_values(producer_of(broker, batch_num_messages=7), topic, numbered(100))
    with consumer_of(broker) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert [m.offset() for m in poll(consumer, 3)] == [0, 1, 2]
        for offset in (50, 99, 7, 0, 93):
            consumer.seek(TopicPartition(topic, 0, offset))
            (message,) = poll(consumer, 1)
            assert message.offset() == offset


def test_from_the_end_only_what_comes_later(broker: Broker, topic: str) -> None:
    create(broker, topic)
    producer = producer_of(broker)
    send_values(producer, topic, numbered(5))
    with consumer_of(broker, enable_partition_eof=True) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
        message = consumer.poll(PATIENCE)
        assert message is not None
        problem = message.error()
        assert problem is not None
        assert problem.code() == KafkaError._PARTITION_EOF
        assert message.offset() == 5
        send_values(producer, topic, [b"later"])
        assert poll(consumer, 1)[0].value() == b"later"


def test_out_of_range_falls_back_to_the_policy(broker: Broker, topic: str) -> None:
    create(broker, topic)
    send_values(producer_of(broker), topic, numbered(5))
    assert read_messages(broker, topic, 1, offset=1000)[0].offset() == 0
    with consumer_of(broker, auto_offset_reset="error") as consumer:
        consumer.assign([TopicPartition(topic, 0, 1000)])
        message = consumer.poll(PATIENCE)
        assert message is not None
        problem = message.error()
        assert problem is not None
        assert problem.code() == KafkaError._AUTO_OFFSET_RESET


def test_topics_are_created_on_first_use(broker: Broker, topic: str) -> None:
    send_values(producer_of(broker), topic, [b"first"])
    assert read(broker, topic, 1)[0].value == b"first"
    assert watermarks(broker, topic) == (0, 1)


def test_without_auto_creation_a_consumer_is_told(broker: Broker, topic: str) -> None:
    with consumer_of(broker, allow_auto_create_topics=False) as consumer:
        consumer.subscribe([topic])
        message = consumer.poll(PATIENCE)
        assert message is not None
        problem = message.error()
        assert problem is not None
        assert problem.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


@pytest.mark.parametrize("name", ["..", "a/b", "../../etc", "x" * 250, "white space"])
def test_bad_topic_names_are_refused(broker: Broker, name: str) -> None:
    with pytest.raises(KafkaException) as refused:
        create(broker, name)
    assert refused.value.args[0].code() == KafkaError.TOPIC_EXCEPTION


def test_read_committed_reads_what_no_transaction_wrote(broker: Broker, topic: str) -> None:
    create(broker, topic)
    send_values(producer_of(broker), topic, numbered(10))
    messages = read_messages(broker, topic, 10, isolation_level="read_committed")
    assert [message.value() for message in messages] == numbered(10)


def test_two_idempotent_producers_at_once(broker: Broker, topic: str) -> None:
    create(broker, topic)
    producers = [producer_of(broker, enable_idempotence=True, linger_ms=1) for _ in range(2)]
    for number in range(2000):
        producers[number % 2].produce(topic, f"{number}", partition=0)
        producers[number % 2].poll(0)
    assert [producer.flush(PATIENCE) for producer in producers] == [0, 0]
    read_back = [int(m.value() or b"") for m in read_messages(broker, topic, 2000)]
    assert sorted(read_back) == list(range(2000))
    for odd in (0, 1):
        own = [number for number in read_back if number % 2 == odd]
        assert own == sorted(own)
