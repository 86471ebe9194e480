"""Fetch: offsets, sizes, epochs, topic ids and sessions."""

from typing import Any
from uuid import UUID

from tests.clients.batches import Batch, Record
from tests.clients.parity import case
from tests.clients.talk import Talk, Topic, fetching

NOWHERE = UUID("00000000-0000-0000-0000-0000deadbeef")
THREE = Batch(records=(Record(), Record(), Record()))


def at(offset: int, partition: int = 0, **fields: Any) -> dict[str, Any]:
    return {"partition": partition, "fetchOffset": offset, **fields}


def filled(t: Talk, partitions: int = 1, **configs: object) -> Topic:
    """A topic with two batches of three records in each partition."""
    topic = t.topic(partitions, **configs)
    for partition in range(partitions):
        t.produce(topic, THREE, THREE, partition=partition)
    return topic


@case("Fetch")
def from_every_offset(t: Talk) -> None:
    topic = filled(t)
    for offset in range(7):
        t.ask(fetching([(topic, [at(offset)])]))


@case("Fetch")
def offset_out_of_range(t: Talk) -> None:
    topic = filled(t)
    for offset in (7, -1, -2, 2**62):
        t.ask(fetching([(topic, [at(offset)])]))


@case("Fetch")
def empty_log(t: Talk) -> None:
    topic = t.topic()
    for offset in (0, 1):
        t.ask(fetching([(topic, [at(offset)])]))


@case("Fetch")
def unknown_topic(t: Talk) -> None:
    t.ask(fetching([(Topic(t.name(), NOWHERE), [at(0)])]))
    t.ask(fetching([(Topic("", UUID(int=0)), [at(0)])]))


@case("Fetch", highest=12)
def impossible_topic_names(t: Talk) -> None:
    for name in ("..", "../../etc", "a/b", "x" * 250, "é"):
        t.ask(fetching([(Topic(name, NOWHERE), [at(0)])]))


@case("Fetch")
def unknown_partition(t: Talk) -> None:
    topic = filled(t)
    for partition in (1, -1, 2**31 - 1):
        t.ask(fetching([(topic, [at(0, partition)])]))


@case("Fetch")
def nothing(t: Talk) -> None:
    topic = filled(t)
    t.ask(fetching([]))
    t.ask(fetching([(topic, [])]))


@case("Fetch")
def some_good_some_bad(t: Talk) -> None:
    topic, other = filled(t, 2), Topic("nowhere", NOWHERE)
    t.ask(fetching([(topic, [at(0), at(99, 1), at(0, 2)]), (other, [at(0)])]))


@case("Fetch")
def same_partition_twice(t: Talk) -> None:
    topic = filled(t)
    t.ask(fetching([(topic, [at(0), at(3)])]))
    t.ask(fetching([(topic, [at(0)]), (topic, [at(3)])]))


@case("Fetch")
def first_batch_comes_whole_however_small_the_limit(t: Talk) -> None:
    topic = filled(t, 2)
    for limit in (0, 1, 80, 100, 160, 1000):
        t.ask(fetching([(topic, [at(0)])], partition_max_bytes=limit))
        t.ask(fetching([(topic, [at(0), at(0, 1)])], maxBytes=limit))


@case("Fetch")
def partition_limit_cuts_later_partitions(t: Talk) -> None:
    topic = filled(t, 2)
    t.ask(fetching([(topic, [at(0), at(0, 1)])], partition_max_bytes=1))


@case("Fetch")
def strange_limits(t: Talk) -> None:
    topic = filled(t)
    for limit in (0, 2**31 - 1):
        t.ask(fetching([(topic, [at(0)])], partition_max_bytes=limit))
        t.ask(fetching([(topic, [at(0)])], maxBytes=limit))
        t.ask(fetching([(topic, [at(0)])], minBytes=limit))


@case("Fetch")
def waits_for_min_bytes_and_answers_with_what_there_is(t: Talk) -> None:
    topic = filled(t)
    t.ask(fetching([(topic, [at(0)])], minBytes=1 << 20, maxWaitMs=50))
    t.ask(fetching([(topic, [at(6)])], minBytes=1, maxWaitMs=50))


@case("Fetch")
def an_error_does_not_wait(t: Talk) -> None:
    topic = filled(t)
    t.ask(fetching([(topic, [at(99)])], minBytes=1, maxWaitMs=600_000))
    t.ask(fetching([(topic, [at(0, 5)])], minBytes=1, maxWaitMs=600_000))


@case("Fetch")
def answers_when_records_arrive(t: Talk) -> None:
    topic = t.topic()
    frame = t.wire.frame(
        "Fetch", t.version, fetching([(topic, [at(0)])], minBytes=1, maxWaitMs=600_000)
    )
    t.wire.send_frame(frame)
    other = Talk(t.broker, t.case, t.api, t.version)
    other.produce(topic, THREE)
    other.hang_up()
    t.note(t.wire.answer("Fetch", t.version))


@case("Fetch")
def read_committed(t: Talk) -> None:
    topic = filled(t)
    for level in (0, 1):
        t.ask(fetching([(topic, [at(0)])], isolationLevel=level))


@case("Fetch", lowest=9)
def leader_epochs(t: Talk) -> None:
    topic = filled(t)
    for epoch in (-1, 0, 1, 5, -5):
        t.ask(fetching([(topic, [at(0, currentLeaderEpoch=epoch)])]))


@case("Fetch", lowest=12)
def last_fetched_epochs(t: Talk) -> None:
    topic = filled(t)
    for epoch in (-1, 0, 1, 5):
        t.ask(fetching([(topic, [at(3, lastFetchedEpoch=epoch)])]))


@case("Fetch")
def after_records_were_deleted(t: Talk) -> None:
    topic = filled(t)
    t.quietly(
        "DeleteRecords",
        2,
        {"topics": [{"name": topic.name, "partitions": [{"partitionIndex": 0, "offset": 4}]}],
         "timeoutMs": 30000},
    )  # fmt: skip
    for offset in (0, 3, 4, 6):
        t.ask(fetching([(topic, [at(offset)])]))


@case("Fetch")
def topic_recreated(t: Talk) -> None:
    old = filled(t)
    t.quietly(
        "DeleteTopics",
        6,
        {"topics": [{"name": old.name, "topicId": UUID(int=0)}], "timeoutMs": 30000},
    )
    gone = {"topics": [{"name": old.name}], "allowAutoTopicCreation": False}
    t.until(lambda: t.quietly("Metadata", 12, gone)["topics"][0]["errorCode"] == 3, "deletion")
    t.topic(name=old.name)
    t.ask(fetching([(old, [at(0)])]))


# -- fetch sessions --------------------------------------------------------------------------------


def continuing(session: int, epoch: int, *wanted: Any, **fields: Any) -> dict[str, Any]:
    return fetching(wanted, sessionId=session, sessionEpoch=epoch, **fields)


@case("Fetch", lowest=7)
def session(t: Talk) -> None:
    topic = filled(t, 2)
    session = t.ask(continuing(0, 0, (topic, [at(0), at(6, 1)])))["sessionId"]
    t.ask(continuing(session, 1, (topic, [at(6)])))  # there are no new records
    t.produce(topic, THREE, partition=1)
    t.ask(continuing(session, 2))  # returns only changed partitions
    t.ask(continuing(session, 3, (topic, [at(9, 1)])))
    forgotten = {"topic": topic.name, "topicId": topic.id, "partitions": [1]}
    t.produce(topic, THREE, partition=1)
    t.ask(continuing(session, 4, forgottenTopicsData=[forgotten]))
    t.ask(continuing(session, -1))  # closes the session
    t.ask(continuing(session, 5))


@case("Fetch", lowest=7)
def session_with_wrong_epoch(t: Talk) -> None:
    topic = filled(t)
    session = t.ask(continuing(0, 0, (topic, [at(0)])))["sessionId"]
    t.ask(continuing(session, 7))
    t.ask(continuing(session, 1))


@case("Fetch", lowest=7)
def session_unknown(t: Talk) -> None:
    topic = filled(t)
    t.ask(continuing(123456, 1, (topic, [at(0)])))
    t.ask(continuing(123456, 0, (topic, [at(0)])))
    t.ask(continuing(0, 5, (topic, [at(0)])))


@case("Fetch", lowest=7)
def session_reports_errors(t: Talk) -> None:
    topic = filled(t)
    session = t.ask(continuing(0, 0, (topic, [at(99)])))["sessionId"]
    t.ask(continuing(session, 1))
    t.ask(continuing(session, 2, (topic, [at(0)])))
    t.ask(continuing(session, 3, (topic, [at(0, 9)])))


@case("Fetch", lowest=7)
def session_and_a_topic_that_comes_later(t: Talk) -> None:
    topic = filled(t)
    unknown = Topic(t.name(), NOWHERE)
    session = t.ask(continuing(0, 0, (topic, [at(6)]), (unknown, [at(0)])))["sessionId"]
    t.ask(continuing(session, 1))
