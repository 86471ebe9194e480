"""Batches are appended in the order of their requests, even if a job first checks one of them."""

from typing import Any

import pytest
from tests.hostile_batches import bomb, claiming
from tests.sim.messages import (
    batch,
    create_topic,
    delete_topic,
    fetch_from,
    produce_to,
    records_in,
)
from tests.unit.node.bench import START_MS, Bench

from tidelog.model.errors import ErrorCode
from tidelog.model.events import Ran
from tidelog.model.jobs import TooManyJobs
from tidelog.model.outbound import StartReading, StopReading
from tidelog.protocol.records.records import Record, build_batch

IN_DOUBT = build_batch([Record(b"k", None, START_MS)] * 100_000, compression="zstd")
LIE = claiming(build_batch([Record(b"k", None, START_MS)] * 10, compression="gzip"), 5_000)


def bench(partitions: int = 1) -> Bench:
    node = Bench()
    node.ask(create_topic("orders", partitions))
    node.settle()
    return node


def produced(answer: Any) -> list[tuple[ErrorCode, int]]:
    [(_, row)] = answer.topics
    return [(one.error, one.base_offset) for one in row]


def count_in(node: Bench, partition: int = 0) -> int:
    """The number of records that a consumer gets with its first fetch."""
    [(_, [fetched])] = node.ask(fetch_from("orders", {partition: 0})).topics
    return len(records_in(fetched.records))


def test_f64_a_batch_in_doubt_is_counted_in_a_job_and_the_connection_waits() -> None:
    node = bench(2)
    conn = node.connect()
    wish = produce_to("orders", {0: IN_DOUBT, 1: batch(b"plain")})
    outbound = node.send(conn, wish)
    assert StopReading(conn) in outbound
    assert len(node.jobs) == 1
    assert node.answer(conn, wish) is None
    assert count_in(node, 1) == 1, "what is not in doubt is written at once"
    node.send(conn, wish)
    before = len(node.outbound)
    node.run_jobs()
    assert produced(node.answer(conn, wish)) == [(ErrorCode.none, 0), (ErrorCode.none, 0)]
    assert produced(node.answer(conn, wish)) == [(ErrorCode.none, 100_000), (ErrorCode.none, 1)]
    assert node.outbound[before:].count(StartReading(conn)) == 1
    assert count_in(node) == 200_000


def test_f64_a_false_count_is_told_and_nothing_is_written() -> None:
    node = bench()
    answer = node.ask(produce_to("orders", LIE))
    assert produced(answer) == [(ErrorCode.invalid_record, -1)]
    assert node.ask(produce_to("orders", batch(b"next"))).topics[0][1][0].base_offset == 0


def test_f64_eight_million_records_in_82_kilobytes_need_no_job() -> None:
    node = bench()
    conn = node.connect()
    wish = produce_to("orders", bomb("gzip", 8_000_000, START_MS))
    node.send(conn, wish)
    assert not node.jobs
    assert produced(node.answer(conn, wish)) == [(ErrorCode.invalid_record, -1)]


def test_f64_without_acks_a_false_count_closes_the_connection() -> None:
    node = bench()
    conn = node.connect()
    node.send(conn, produce_to("orders", LIE, acks=0))
    assert conn not in node.closed
    node.run_jobs()
    assert "INVALID_RECORD" in node.closed[conn].upper()


def test_f64_a_topic_that_is_deleted_while_its_batch_is_checked_takes_it_no_more() -> None:
    node = bench()
    conn = node.connect()
    wish = produce_to("orders", IN_DOUBT)
    node.send(conn, wish)
    check = node.jobs.popleft()
    node.ask(delete_topic("orders"))
    node.jobs.append(check)
    node.settle()
    assert produced(node.answer(conn, wish)) == [(ErrorCode.unknown_topic_or_partition, -1)]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TooManyJobs("busy"), ErrorCode.request_timed_out),
        (ZeroDivisionError("a bug"), ErrorCode.unknown_server_error),
    ],
)
def test_f64_a_check_that_fails_is_answered(error: Exception, code: ErrorCode) -> None:
    node = bench()
    conn = node.connect()
    wish = produce_to("orders", IN_DOUBT)
    node.send(conn, wish)
    node.tell(Ran(node.jobs.popleft().token, None, error))
    assert produced(node.answer(conn, wish)) == [(code, -1)]
    assert produced(node.ask(wish)) == [(ErrorCode.none, 0)]


def test_f64_a_producer_that_is_gone_has_written_all_the_same() -> None:
    node = bench()
    conn = node.connect()
    node.send(conn, produce_to("orders", IN_DOUBT, acks=1))
    node.disconnect(conn)
    node.run_jobs()
    assert count_in(node) == 100_000
