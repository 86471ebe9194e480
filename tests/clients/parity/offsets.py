"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

import gzip
from typing import Any
from uuid import UUID

from tests.clients.batches import NOW, Batch, Record
from tests.clients.parity import case
from tests.clients.talk import Talk, Topic

EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -2, -1, -3, -4, -5
GZIP = 1
ZERO = UUID(int=0)


def listing(topic: str, *wanted: dict[str, Any], **fields: Any) -> dict[str, Any]:
    partitions = [{"partitionIndex": 0, **partition} for partition in wanted]
    return {"replicaId": -1, "topics": [{"name": topic, "partitions": partitions}], **fields}


def spread(t: Talk) -> Topic:
    """A topic whose timestamps go up and down, with the largest in the middle."""
    topic = t.topic()
    for deltas in ((0, 10), (50, 40), (20, 30)):
        t.produce(topic, Batch(records=tuple(Record(timestamp_delta=d) for d in deltas)))
    return topic


@case("ListOffsets")
def special_timestamps(t: Talk) -> None:
    topic = spread(t)
    for timestamp in (EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, -6, -7, -100):
        t.ask(listing(topic.name, {"timestamp": timestamp}))


@case("ListOffsets")
def empty_log(t: Talk) -> None:
    topic = t.topic()
    for timestamp in (EARLIEST, LATEST, MAX_TIMESTAMP, NOW):
        t.ask(listing(topic.name, {"timestamp": timestamp}))


@case("ListOffsets")
def by_timestamp(t: Talk) -> None:
    topic = spread(t)
    for delta in (-1, 0, 1, 10, 11, 20, 30, 40, 41, 50, 51):
        t.ask(listing(topic.name, {"timestamp": NOW + delta}))
    t.ask(listing(topic.name, {"timestamp": 0}))


@case("ListOffsets")
def by_timestamp_in_a_compressed_batch(t: Talk) -> None:
    records = tuple(Record(timestamp_delta=delta) for delta in (0, 10, 20))
    payload = b"".join(record.encode(n) for n, record in enumerate(records))
    topic = t.topic()
    t.produce(
        topic, Batch(records=records, attributes=GZIP, payload=gzip.compress(payload, mtime=0))
    )
    for delta in (0, 5, 15, 20, 21):
        t.ask(listing(topic.name, {"timestamp": NOW + delta}))
    t.ask(listing(topic.name, {"timestamp": MAX_TIMESTAMP}))


@case("ListOffsets")
def by_timestamp_with_log_append_time(t: Talk) -> None:
    topic = t.topic(**{"message.timestamp.type": "LogAppendTime"})
    t.produce(topic, Batch(records=(Record(), Record())))
    for timestamp in (NOW, MAX_TIMESTAMP, 2**62):
        t.ask(listing(topic.name, {"timestamp": timestamp}))


@case("ListOffsets")
def unknown(t: Talk) -> None:
    topic = spread(t)
    t.ask(listing("nowhere", {"timestamp": LATEST}))
    t.ask(listing("", {"timestamp": LATEST}))
    t.ask(listing("../../etc", {"timestamp": LATEST}))
    for partition in (1, -1):
        t.ask(listing(topic.name, {"partitionIndex": partition, "timestamp": LATEST}))


@case("ListOffsets")
def same_partition_twice(t: Talk) -> None:
    topic = spread(t)
    t.ask(listing(topic.name, {"timestamp": LATEST}, {"timestamp": EARLIEST}))


@case("ListOffsets", lowest=2)
def read_committed(t: Talk) -> None:
    topic = spread(t)
    for timestamp in (LATEST, EARLIEST, NOW + 30):
        t.ask(listing(topic.name, {"timestamp": timestamp}, isolationLevel=1))


@case("ListOffsets", lowest=4)
def leader_epochs(t: Talk) -> None:
    topic = spread(t)
    for epoch in (-1, 0, 1):
        t.ask(listing(topic.name, {"timestamp": LATEST, "currentLeaderEpoch": epoch}))


@case("ListOffsets")
def as_a_replica(t: Talk) -> None:
    topic = spread(t)
    for replica in (1, 9, -2):
        t.ask(listing(topic.name, {"timestamp": LATEST}, replicaId=replica))


@case("ListOffsets")
def nothing(t: Talk) -> None:
    t.ask({"replicaId": -1, "topics": []})


# -- OffsetForLeaderEpoch --------------------------------------------------------------------------


def epochs(topic: str, **fields: Any) -> dict[str, Any]:
    partition = {"partition": 0, "currentLeaderEpoch": -1, "leaderEpoch": 0, **fields}
    return {"replicaId": -1, "topics": [{"topic": topic, "partitions": [partition]}]}


@case("OffsetForLeaderEpoch")
def ends_of_epochs(t: Talk) -> None:
    topic = spread(t)
    for epoch in (0, 1, 5, -1, -2):
        t.ask(epochs(topic.name, leaderEpoch=epoch))


@case("OffsetForLeaderEpoch")
def epoch_of_an_empty_log(t: Talk) -> None:
    topic = t.topic()
    for epoch in (0, 1):
        t.ask(epochs(topic.name, leaderEpoch=epoch))


@case("OffsetForLeaderEpoch")
def current_epochs(t: Talk) -> None:
    topic = spread(t)
    for current in (-1, 0, 1):
        t.ask(epochs(topic.name, currentLeaderEpoch=current))


@case("OffsetForLeaderEpoch")
def unknown_partitions(t: Talk) -> None:
    topic = t.topic()
    t.ask(epochs("nowhere"))
    t.ask(epochs(topic.name, partition=3))
    t.ask(epochs(topic.name, partition=-1))


# -- DeleteRecords ---------------------------------------------------------------------------------


def deleting(topic: str, offset: int, partition: int = 0) -> dict[str, Any]:
    wanted = {"partitionIndex": partition, "offset": offset}
    return {"topics": [{"name": topic, "partitions": [wanted]}], "timeoutMs": 30000}


@case("DeleteRecords")
def deletes_up_to_an_offset(t: Talk) -> None:
    topic = spread(t)
    for offset in (1, 3, 2, 3, 6):
        t.ask(deleting(topic.name, offset))
        t.ask_other("ListOffsets", None, listing(topic.name, {"timestamp": EARLIEST}))
        t.ask_other("ListOffsets", None, listing(topic.name, {"timestamp": LATEST}))


@case("DeleteRecords")
def deletes_everything(t: Talk) -> None:
    topic = spread(t)
    t.ask(deleting(topic.name, -1))
    t.ask_other("ListOffsets", None, listing(topic.name, {"timestamp": EARLIEST}))
    t.produce(topic, Batch())
    t.look(topic, offset=6)


@case("DeleteRecords")
def delete_out_of_range(t: Talk) -> None:
    topic = spread(t)
    for offset in (7, -2, 2**62):
        t.ask(deleting(topic.name, offset))


@case("DeleteRecords")
def delete_from_nowhere(t: Talk) -> None:
    topic = t.topic()
    t.ask(deleting("nowhere", 0))
    t.ask(deleting("", 0))
    t.ask(deleting("../../etc", 0))
    t.ask(deleting(topic.name, 0, partition=7))
    t.ask(deleting(topic.name, 0))


@case("DeleteRecords")
def delete_from_a_compacted_topic(t: Talk) -> None:
    topic = t.topic(**{"cleanup.policy": "compact"})
    t.produce(topic, Batch(records=(Record(key=b"k"),)))
    t.ask(deleting(topic.name, 1))


@case("DeleteRecords")
def delete_nothing(t: Talk) -> None:
    t.ask({"topics": [], "timeoutMs": 30000})
