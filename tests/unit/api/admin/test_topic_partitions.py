"""DescribeTopicPartitions, which returns topics in pages."""

from uuid import UUID

import pytest
from kio.schema.describe_topic_partitions.v0.request import Cursor, TopicRequest
from tests.unit.api.support import ask, drive, image, partition, request, settings, topic

from tidelog.api.admin import topic_partitions
from tidelog.model.errors import ErrorCode

ALL_TOPIC_OPERATIONS = 3576
TWO = image(
    topic("b", UUID(int=2), partition(elr=(2,), last_known_elr=(3,)), partition(leader=-1)),
    topic("a", UUID(int=1), partition(), partition(), partition()),
)


def describe(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None, **changes):
    message = ask(
        75,
        topics=tuple(TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return drive(topic_partitions.handle(request(message, 0, **{"image": TWO, **changes})))


def pages(response) -> dict[str, list[int]]:
    return {t.name: [p.partition_index for p in t.partitions] for t in response.topics}


def cursor(response) -> tuple[str, int] | None:
    at = response.next_cursor
    return at and (at.topic_name, at.partition_index)


def test_all_topics_in_the_order_of_their_names():
    response = describe()

    assert pages(response) == {"a": [0, 1, 2], "b": [0, 1]}
    assert list(pages(response)) == ["a", "b"]
    assert cursor(response) is None


def test_shows_the_eligible_leader_replicas_and_no_error_for_a_missing_leader():
    [found] = describe("b").topics

    first, second = found.partitions
    assert (first.eligible_leader_replicas, first.last_known_elr) == ((2,), (3,))
    assert (second.leader_id, second.error_code) == (-1, ErrorCode.none)
    assert found.topic_authorized_operations == ALL_TOPIC_OPERATIONS


def test_a_page_ends_inside_a_topic():
    assert (pages(r := describe(limit=4)), cursor(r)) == ({"a": [0, 1, 2], "b": [0]}, ("b", 1))


def test_a_page_ends_between_topics():
    assert (pages(r := describe(limit=3)), cursor(r)) == ({"a": [0, 1, 2]}, ("b", 0))


def test_the_next_page_begins_at_the_cursor():
    assert pages(describe(cursor=("b", 1))) == {"b": [1]}
    assert pages(describe("a", "b", cursor=("a", 2))) == {"a": [2], "b": [0, 1]}
    assert pages(describe(cursor=("a", 9))) == {"a": [], "b": [0, 1]}


def test_a_cursor_at_a_topic_that_is_gone_goes_on_after_it():
    assert pages(describe(cursor=("aa", 5))) == {"b": [0, 1]}


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_holds_at_least_one_partition(limit: int):
    assert (pages(r := describe("a", limit=limit)), cursor(r)) == ({"a": [0]}, ("a", 1))


def test_the_broker_limits_a_page_too():
    limited = settings(max_request_partition_size_limit="2")

    assert pages(describe("a", settings=limited)) == {"a": [0, 1]}


def test_topics_that_do_not_exist():
    response = describe("a", "nope", "a b")

    assert {t.name: t.error_code for t in response.topics} == {
        "a": ErrorCode.none,
        "a b": ErrorCode.invalid_topic_exception,
        "nope": ErrorCode.unknown_topic_or_partition,
    }


def test_an_empty_name_fails_the_whole_request():
    response = describe("a", "")

    assert [(t.name, t.error_code) for t in response.topics] == [
        ("", ErrorCode.unknown_server_error),
        ("a", ErrorCode.unknown_server_error),
    ]


@pytest.mark.parametrize("at", [("a", -1), ("elsewhere", 0)])
def test_a_bad_cursor(at: tuple[str, int]):
    response = describe("a", cursor=at)

    assert [t.error_code for t in response.topics] == [ErrorCode.invalid_request]
    assert response.topics[0].partitions == ()
