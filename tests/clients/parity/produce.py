"""Produce and InitProducerId: accepted requests, and the errors of refused ones."""

import gzip
import time
from typing import Any
from uuid import UUID

import zstandard
from tests.clients.batches import LOG_APPEND_TIME, NOW, Batch, Record, old_message
from tests.clients.parity import case
from tests.clients.talk import Talk, Topic

HOUR = 3_600_000
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
TRANSACTIONAL, CONTROL = 0x10, 0x20
NOWHERE = UUID("00000000-0000-0000-0000-0000deadbeef")


def producing(
    topic: Topic, records: bytes | None, acks: int = -1, partition: int = 0
) -> dict[str, Any]:
    return producing_many([(topic, [(partition, records)])], acks)


def producing_many(
    topics: list[tuple[Topic, list[tuple[int, bytes | None]]]], acks: int = -1
) -> dict[str, Any]:
    return {
        "acks": acks,
        "timeoutMs": 30000,
        "topicData": [
            {
                "name": topic.name,
                "topicId": topic.id,
                "partitionData": [{"index": index, "records": data} for index, data in partitions],
            }
            for topic, partitions in topics
        ],
    }


def offer(t: Talk, *batches: Batch | bytes, **configs: object) -> Topic:
    """Produce these batches, each in its own request, to a new topic."""
    topic = t.topic(**configs)
    for batch in batches:
        t.ask(producing(topic, batch if isinstance(batch, bytes) else batch.encode()))
    return topic


# -- acks, topics and partitions -------------------------------------------------------------------


@case("Produce")
def acks(t: Talk) -> None:
    topic = t.topic()
    for acks in (-1, 1):
        t.ask(producing(topic, Batch().encode(), acks))
    t.look(topic)


@case("Produce")
def acks_0_is_silent(t: Talk) -> None:
    topic = t.topic()
    t.wire.send_frame(t.wire.frame("Produce", t.version, producing(topic, Batch().encode(), 0)))
    t.produce(topic, Batch())  # acks=0 has no answer, so the next answer is for this request
    t.look(topic)


@case("Produce")
def acks_0_with_an_error_hangs_up(t: Talk) -> None:
    topic = t.topic()
    body = producing(Topic("nowhere", NOWHERE), Batch().encode(), 0)
    t.wire.send_frame(t.wire.frame("Produce", t.version, body))
    t.note("closed" if t.wire.is_closed() else "answered")
    t.hang_up()
    t.look(topic)


@case("Produce")
def invalid_acks(t: Talk) -> None:
    topic = t.topic()
    for acks in (2, -2, 100):
        t.ask(producing(topic, Batch().encode(), acks))


@case("Produce")
def unknown_topic(t: Talk) -> None:
    t.ask(producing(Topic(t.name(), NOWHERE), Batch().encode()))
    t.ask(producing(Topic("", UUID(int=0)), Batch().encode()))


@case("Produce", highest=12)
def impossible_topic_names(t: Talk) -> None:
    for name in ("..", "../../etc", "a/b", "x" * 250, "a b", "é", "\0"):
        t.ask(producing(Topic(name, NOWHERE), Batch().encode()))


@case("Produce")
def unknown_partition(t: Talk) -> None:
    topic = t.topic(partitions=2)
    for partition in (2, -1, 2**31 - 1, -(2**31)):
        t.ask(producing(topic, Batch().encode(), partition=partition))


@case("Produce")
def several_partitions_each_for_itself(t: Talk) -> None:
    one, other = t.topic(partitions=2), t.topic()
    good, bad = Batch().encode(), Batch(crc=1).encode()
    t.ask(
        producing_many([(one, [(0, good), (1, bad), (5, good)]), (other, [(0, good)])]),
        only=in_order,
    )


def in_order(answer: dict[str, Any]) -> Any:
    """Sort topics and partitions, because Kafka returns them in no fixed order."""
    for topic in answer["responses"]:
        topic["partitionResponses"].sort(key=lambda partition: partition["index"])
    return sorted(answer["responses"], key=lambda topic: len(topic["partitionResponses"]))


@case("Produce")
def nothing(t: Talk) -> None:
    topic = t.topic()
    t.ask(producing_many([]))
    t.ask(producing_many([(topic, [])]))


@case("Produce")
def internal_topic(t: Talk) -> None:
    t.quietly("FindCoordinator", 2, {"key": "anyone", "keyType": 0})
    topic = t.settled("__consumer_offsets", 3)
    t.ask(producing(topic, Batch(records=(Record(key=b"k"),)).encode()))


@case("Produce")
def too_few_in_sync_replicas(t: Talk) -> None:
    topic = t.topic(**{"min.insync.replicas": 2})
    for acks in (-1, 1):
        t.ask(producing(topic, Batch().encode(), acks))


# -- batches that are refused ----------------------------------------------------------------------


@case("Produce")
def wrong_crc(t: Talk) -> None:
    t.look(offer(t, Batch(crc=0xDEADBEEF)))


@case("Produce")
def magic_0(t: Talk) -> None:
    offer(t, old_message(0))


@case("Produce")
def magic_1(t: Talk) -> None:
    offer(t, old_message(1))


@case("Produce")
def magic_unknown(t: Talk) -> None:
    for magic in (3, 127, -1):
        offer(t, Batch(magic=magic))


@case("Produce")
def two_batches(t: Talk) -> None:
    t.look(offer(t, Batch().encode() * 2))


@case("Produce")
def no_batch(t: Talk) -> None:
    topic = t.topic()
    t.ask(producing(topic, b""))


@case("Produce")
def empty_batch(t: Talk) -> None:
    for last in (-1, 0):
        offer(t, Batch(records=(), last_offset_delta=last))


@case("Produce")
def count_and_last_offset_disagree(t: Talk) -> None:
    two = Batch(records=(Record(), Record()))
    for count in (0, 1, 3, -1, 2**31 - 1):
        offer(t, two.but(count=count))
    for last in (0, 2, -1, 2**31 - 1):
        offer(t, two.but(last_offset_delta=last))


@case("Produce")
def length_overruns(t: Talk) -> None:
    whole = Batch()
    true_length = len(whole.encode()) - 12
    for length in (true_length + 1, 2**31 - 1):
        offer(t, whole.but(length=length))


@case("Produce")
def length_too_small(t: Talk) -> None:
    true_length = len(Batch().encode()) - 12
    for length in (true_length - 1, 48, 13, 0, -1, -(2**31)):
        offer(t, Batch(length=length))


@case("Produce")
def torn_batch(t: Talk) -> None:
    data = Batch().encode()
    for size in (1, 11, 12, 16, 17, 60, 61, len(data) - 1):
        offer(t, data[:size])


@case("Produce")
def trailing_garbage(t: Talk) -> None:
    data = Batch().encode()
    for tail in (b"\0" * 12, b"\0" * 61, b"\xff" * 61):
        offer(t, data + tail)


@case("Produce")
def control_batch(t: Talk) -> None:
    offer(t, Batch(attributes=CONTROL))


@case("Produce")
def reserved_attributes(t: Talk) -> None:
    t.look(offer(t, Batch(attributes=0x80)))


@case("Produce")
def base_offset_and_epoch_are_the_brokers(t: Talk) -> None:
    topic = offer(t, Batch(base_offset=77, leader_epoch=9), Batch(base_offset=-5))
    t.look(topic)


@case("Produce")
def nonzero_base_offset(t: Talk) -> None:
    t.look(offer(t, Batch(base_offset=2**62)))


# -- timestamps of records -------------------------------------------------------------------------


@case("Produce")
def negative_timestamps(t: Talk) -> None:
    for base in (-1, -2, -NOW):
        offer(t, Batch(base_timestamp=base, max_timestamp=base))


@case("Produce")
def max_timestamp_lies(t: Talk) -> None:
    for maximum in (NOW - 1, NOW + 1, -1):
        t.look(offer(t, Batch(max_timestamp=maximum)))


@case("Produce")
def timestamp_far_ahead(t: Talk) -> None:
    now = int(time.time() * 1000)
    offer(t, Batch(base_timestamp=now + 10 * HOUR))


@case("Produce")
def timestamp_far_behind(t: Talk) -> None:
    offer(t, Batch(base_timestamp=NOW), **{"message.timestamp.before.max.ms": 1000})


@case("Produce")
def log_append_time(t: Talk) -> None:
    topic = offer(t, Batch(), Batch(), **{"message.timestamp.type": "LogAppendTime"})
    t.look(topic)


@case("Produce")
def log_append_time_claimed_by_the_client(t: Talk) -> None:
    t.look(offer(t, Batch(attributes=LOG_APPEND_TIME)))


@case("Produce")
def log_append_time_ignores_the_clients_clock(t: Talk) -> None:
    topic = t.topic(**{"message.timestamp.type": "LogAppendTime"})
    for base in (-1, 2**62):
        t.ask(producing(topic, Batch(base_timestamp=base).encode()))


# -- batches that are too large --------------------------------------------------------------------


@case("Produce")
def max_message_bytes(t: Talk) -> None:
    limit = 2000
    topic = t.topic(**{"max.message.bytes": limit})
    bare = len(Batch(records=(Record(value=bytes(1500)),)).encode()) - 1500
    for size in (limit - bare, limit - bare + 1):
        batch = Batch(records=(Record(value=bytes(size)),))
        assert len(batch.encode()) - limit in (0, 1)
        t.ask(producing(topic, batch.encode()))


# -- compressed batches ----------------------------------------------------------------------------


@case("Produce")
def compressed(t: Talk) -> None:
    records = (Record(value=b"a" * 100), Record(value=b"b" * 100, timestamp_delta=5))
    plain = Batch(records=records)
    payload = b"".join(record.encode(delta) for delta, record in enumerate(records))
    t.look(offer(t, plain.but(attributes=GZIP, payload=gzip.compress(payload, mtime=0))))


@case("Produce")
def zstd_before_version_7(t: Talk) -> None:
    payload = zstandard.compress(Record().encode(0))
    offer(t, Batch(attributes=ZSTD, payload=payload))


@case("Produce")
def unknown_compression(t: Talk) -> None:
    for codec in (5, 6, 7):
        offer(t, Batch(attributes=codec))


# -- faults that only a check of every record finds ------------------------------------------------


@case("Produce")
def garbage_for_records(t: Talk) -> None:
    offer(t, Batch(payload=b"\xff" * 20))


@case("Produce")
def garbage_for_compressed_records(t: Talk) -> None:
    offer(t, Batch(attributes=GZIP, payload=b"\xff" * 20))


@case("Produce")
def no_key_on_a_compacted_topic(t: Talk) -> None:
    keyed = Batch(records=(Record(key=b"k"),))
    offer(t, keyed, Batch(), **{"cleanup.policy": "compact"})
