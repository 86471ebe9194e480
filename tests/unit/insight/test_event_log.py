"""Where a read of the topic of replication events begins, and where the next read continues."""

import json
from collections.abc import Iterator

import pytest
from tests.unit.cli.stand_in import StandIn, Topic, stand_in

from tidelog.client.client import Client
from tidelog.insight import event_log
from tidelog.insight.event_log import EventLog
from tidelog.model.ids import TopicPartition
from tidelog.model.replication_events import REPLICATION_EVENTS
from tidelog.protocol.records.records import Record


@pytest.fixture
def broker() -> Iterator[StandIn]:
    with stand_in() as broker:
        yield broker


@pytest.fixture
def client(broker: StandIn) -> Iterator[Client]:
    with Client(broker.bootstrap) as client:
        yield client


def fenced(*brokers: int) -> list[Record]:
    """One event for each broker, at different times."""
    return [
        Record(
            b"broker-%d" % broker,
            json.dumps(
                {"event": "broker_fenced", "ts": 1000 + broker, "broker": broker, "reason": "x"}
            ).encode(),
            1000 + broker,
        )
        for broker in brokers
    ]


def known(events: EventLog) -> list[int]:
    assert events.missing is None
    return sorted(events.history.brokers)


def test_what_comes_later_is_read_on(broker: StandIn, client: Client) -> None:
    topic = broker.topics[REPLICATION_EVENTS] = Topic(fenced(1, 2))
    events = EventLog(client)
    events.catch_up()
    assert known(events) == [1, 2]

    topic.records += fenced(3)
    events.catch_up()
    assert known(events) == [1, 2, 3]
    assert events.history.begins_at is None


def test_only_the_last_events_are_looked_at_and_it_is_known_where_they_begin(
    broker: StandIn, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "DEPTH", 2)
    topic = broker.topics[REPLICATION_EVENTS] = Topic(fenced(1, 2, 3, 4))
    events = EventLog(client, only=[TopicPartition("orders", 0)])
    events.catch_up()
    assert known(events) == [3, 4]
    assert events.history.begins_at == 1003

    topic.records += fenced(5, 6, 7)
    events.catch_up()
    assert known(events) == [3, 4, 5, 6, 7]
    assert events.history.begins_at == 1003


def test_where_the_oldest_are_deleted_the_history_begins_with_the_first_that_is_left(
    broker: StandIn, client: Client
) -> None:
    broker.topics[REPLICATION_EVENTS] = Topic(fenced(7), start=6)
    events = EventLog(client)
    events.catch_up()
    assert (known(events), events.history.begins_at) == ([7], 1007)


@pytest.mark.parametrize("new", [[4], [4, 5, 6, 7]], ids=["shorter", "longer"])
def test_a_topic_that_was_made_anew_is_read_from_its_beginning(
    broker: StandIn, client: Client, new: list[int]
) -> None:
    broker.topics[REPLICATION_EVENTS] = Topic(fenced(1, 2, 3))
    events = EventLog(client)
    events.catch_up()

    del broker.topics[REPLICATION_EVENTS]
    events.catch_up()
    assert events.missing is not None
    assert events.missing.startswith("this cluster does not record replication events")

    broker.topics[REPLICATION_EVENTS] = Topic(fenced(*new))
    events.catch_up()
    assert known(events) == [1, 2, 3, *new]
