"""ListOffsets by time runs in a job; the result is used only if it is still valid at the end."""

from typing import Any

import pytest
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsTopic
from tests.sim.messages import ask, create_topic, delete_topic, produce_to
from tests.unit.node.bench import START_MS, Bench

from tidelog.model.errors import ErrorCode
from tidelog.model.events import Ran
from tidelog.model.jobs import TooManyJobs
from tidelog.protocol.records.records import Record, build_batch


def by_time(*timestamps: int) -> Any:
    """A ListOffsets request with one timestamp per partition."""
    partitions = tuple(
        ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        for index, timestamp in enumerate(timestamps)
    )
    topics = (ListOffsetsTopic(name="orders", partitions=partitions),)
    return ask(2, replica_id=-1, isolation_level=0, topics=topics)


def found(answer: Any) -> list[tuple[ErrorCode, int]]:
    return [(one.error_code, one.offset) for one in answer.topics[0].partitions]


def bench(partitions: int = 1, batches: int = 1, **configs: str) -> Bench:
    """A node whose partitions have batches of three records, one millisecond apart."""
    node = Bench()
    node.ask(create_topic("orders", partitions, **configs))
    for number in range(batches):
        times = range(START_MS + 3 * number, START_MS + 3 * number + 3)
        data = build_batch([Record(None, bytes(50), time) for time in times], compression="gzip")
        node.ask(produce_to("orders", dict.fromkeys(range(partitions), data)))
    node.settle()
    return node


def test_the_ends_are_told_at_once_and_a_time_is_searched_for() -> None:
    node = bench(4)
    conn = node.connect()
    wish = by_time(-1, START_MS + 1, -2, START_MS + 9)
    node.send(conn, wish)
    assert node.answer(conn, wish) is None
    assert len(node.jobs) == 1, "one at a time"
    node.run_jobs()
    none = ErrorCode.none
    assert found(node.answer(conn, wish)) == [(none, 3), (none, 1), (none, 0), (none, -1)]


def test_a_search_finds_its_segment() -> None:
    node = bench(batches=40, segment_ms="10")
    assert found(node.ask(by_time(START_MS + 100))) == [(ErrorCode.none, 100)]
    assert found(node.ask(by_time(-3))) == [(ErrorCode.none, 119)]


def test_a_topic_that_is_deleted_while_it_is_searched_is_not_led_here() -> None:
    node = bench()
    conn = node.connect()
    wish = by_time(START_MS + 1)
    node.send(conn, wish)
    search = node.jobs.popleft()
    node.ask(delete_topic("orders"))
    node.settle()
    node.jobs.append(search)
    node.run_jobs()
    assert found(node.answer(conn, wish)) == [(ErrorCode.not_leader_or_follower, -1)]
    assert node.stopped is None


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TooManyJobs("busy"), ErrorCode.offset_not_available),
        (ZeroDivisionError("a bug"), ErrorCode.unknown_server_error),
    ],
)
def test_a_search_that_fails_is_answered(error: Exception, code: ErrorCode) -> None:
    node = bench()
    conn = node.connect()
    wish = by_time(START_MS + 1)
    node.send(conn, wish)
    node.tell(Ran(node.jobs.popleft().token, None, error))
    assert found(node.answer(conn, wish)) == [(code, -1)]
    assert found(node.ask(wish)) == [(ErrorCode.none, 1)]


def test_a_client_that_is_gone_is_not_searched_for() -> None:
    node = bench()
    conn = node.connect()
    node.send(conn, by_time(START_MS + 1))
    assert len(node.jobs) == 1
    node.disconnect(conn)
    assert not node.jobs
