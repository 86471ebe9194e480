"""Fetch: the partitions that are read, the order of the answer, and the state of a session."""

from typing import Any

import pytest
from tests.unit.api.support import OFFSETS_ID, TOPIC_ID, CountingDice, Effects, drive, request

from tidelog.api.handler import Request
from tidelog.api.records import fetch
from tidelog.api.records.fetch_sessions import FetchSessions
from tidelog.model.disk import FileSlice
from tidelog.model.effects import AbortedTransaction, FetchResult
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.protocol.fetch import FetchPartition, FetchRequest, FetchResponse
from tidelog.sim.machines.disk import SimDisk

MEGABYTE = 1 << 20


def at(offset: int, partition: int = 0, *, epoch: int = -1, last: int = -1) -> FetchPartition:
    return FetchPartition(partition, epoch, offset, last, -1, MEGABYTE)


def asking(*topics: Any, version: int = 12, **fields: Any) -> Request:
    limits = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": MEGABYTE, "topics": topics}
    return request(FetchRequest(**{**limits, **fields}), version)


def found(high_watermark: int = 5, **fields: Any) -> FetchResult:
    return FetchResult(ErrorCode.none, high_watermark, high_watermark, 0, **fields)


def records(length: int = 10) -> FileSlice:
    return FileSlice(SimDisk().open("f"), 0, length)


def rows(response: FetchResponse) -> list[tuple[Any, list[tuple[int, ErrorCode]]]]:
    return [(ref, [(p.partition, p.error) for p in given]) for ref, given in response.topics]


def test_what_is_asked_for_twice_is_read_once_as_asked_last() -> None:
    effects = Effects([found()])

    response = effects.drive(fetch.handle(asking(("orders", [at(0)]), ("orders", [at(3)]))))

    [effect] = effects.asked
    assert [(read.partition, read.offset) for read in effect.reads] == [
        (TopicPartition("orders", 0), 3)
    ]
    assert rows(response) == [("orders", [(0, ErrorCode.none)])]


def test_any_negative_epoch_is_none() -> None:
    effects = Effects([found(), found()])
    odd = [at(0, epoch=-5, last=-7), at(0, 2, epoch=3, last=2)]

    effects.drive(fetch.handle(asking(("orders", odd))))

    [effect] = effects.asked
    assert [(read.current_leader_epoch, read.last_fetched_epoch) for read in effect.reads] == [
        (-1, -1),
        (3, 2),
    ]


def test_what_no_one_knows_comes_last_ids_before_names() -> None:
    asked = asking(
        (TOPIC_ID, [at(0), at(0, 9), at(0, 2)]), (OFFSETS_ID, [at(0)]), version=13, max_wait_ms=9
    )
    effects = Effects([found(), FetchResult(ErrorCode.unknown_topic_or_partition), found()])

    response = effects.drive(fetch.handle(asked))

    assert rows(response) == [
        (TOPIC_ID, [(0, ErrorCode.none), (2, ErrorCode.none)]),
        (OFFSETS_ID, [(0, ErrorCode.unknown_topic_id)]),
        (TOPIC_ID, [(9, ErrorCode.unknown_topic_or_partition)]),
    ]
    assert effects.asked[0].max_wait_ms == 0


@pytest.mark.parametrize(
    ("result", "aborted"),
    [
        (found(), None),
        (found(aborted=()), ()),
        (found(aborted=(AbortedTransaction(7, 3),)), (AbortedTransaction(7, 3),)),
        (FetchResult(ErrorCode.offset_out_of_range), None),
        (FetchResult(ErrorCode.unknown_topic_or_partition), ()),
    ],
)
def test_aborted_transactions_are_listed_where_kafka_lists_them(
    result: FetchResult, aborted: Any
) -> None:
    effects = Effects([result])
    asked = asking(("orders", [at(0)]), isolation_level=1)

    [(_, [row])] = effects.drive(fetch.handle(asked)).topics

    assert row.aborted == aborted
    assert effects.asked[0].read_committed


def test_a_session_tells_only_what_changed() -> None:
    sessions = FetchSessions(10, CountingDice())

    def step(epoch: int, results: list[FetchResult], *topics: Any) -> FetchResponse:
        asked = asking(*topics, session_id=id_ if epoch else 0, session_epoch=epoch)
        asked.fetch_sessions = sessions
        response = drive(fetch.handle(asked), results)
        assert isinstance(response, FetchResponse)
        return response

    id_ = step(0, [found(records=records()), found()], ("orders", [at(0), at(0, 2)])).session_id
    assert id_ != 0
    assert rows(step(1, [found(), found()])) == []
    assert rows(step(2, [found(records=records()), found()])) == [("orders", [(0, ErrorCode.none)])]
    # Partition 0 was just served, so it is now read last, and partition 2 is read first.
    assert rows(step(3, [found(6), found()])) == [("orders", [(2, ErrorCode.none)])]
    unwell = FetchResult(ErrorCode.offset_out_of_range)
    assert rows(step(4, [found(6), unwell])) == [("orders", [(0, ErrorCode.offset_out_of_range)])]
    # After an error the partition is in the next answer, although its offsets have not changed.
    assert rows(step(5, [found(6), found()])) == [("orders", [(0, ErrorCode.none)])]


def test_a_session_that_is_left_with_nothing_ends() -> None:
    sessions = FetchSessions(10, CountingDice())
    begin = asking(("orders", [at(0)]), session_epoch=0)
    begin.fetch_sessions = sessions
    id_ = drive(fetch.handle(begin), [found()]).session_id
    end = asking(session_id=id_, session_epoch=1, forgotten=[("orders", [0])])
    end.fetch_sessions = sessions

    response = drive(fetch.handle(end), [])

    assert (response.error, response.session_id, len(sessions)) == (ErrorCode.none, 0, 0)


def test_a_session_may_begin_with_nothing() -> None:
    response = drive(fetch.handle(asking(session_epoch=0)), [])
    assert response.session_id != 0


def test_a_wrong_session_epoch_is_refused_before_anything_is_read() -> None:
    response = drive(fetch.handle(asking(session_id=77, session_epoch=3)))
    assert response.error is ErrorCode.fetch_session_id_not_found
