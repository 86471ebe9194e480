"""Produce: the checks before records reach a log, and the combination of the logs' answers."""

from typing import Any
from weakref import ref

import pytest
from tests.unit.api.support import OFFSETS_ID, TOPIC_ID, Effects, drive, image, partition, topic
from tests.unit.api.support import request as any_request

from tidelog.api.handler import Disconnect, Request
from tidelog.api.records import produce
from tidelog.model.effects import AppendBatches, AppendInTransaction, AppendResult
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.protocol.pieces import CurrentLeader
from tidelog.protocol.produce import ProduceRequest, ProduceResponse, RecordError
from tidelog.protocol.records.records import Record, build_batch

ZSTD, TRANSACTIONAL = 4, 0x10


def batch(attributes: int = 0) -> memoryview:
    made = bytearray(build_batch([Record(None, b"value", 1)]))
    made[22] |= attributes
    return memoryview(made)


def asking(
    *topics: Any, version: int = 12, acks: int = 1, transaction: str | None = None, **changes: Any
) -> Request:
    message = ProduceRequest(transaction, acks, 1000, list(topics))
    return any_request(message, version, **changes)


def errors(response: ProduceResponse) -> list[tuple[Any, int, ErrorCode]]:
    return [(ref, row.partition, row.error) for ref, rows in response.topics for row in rows]


def appended(base: int) -> AppendResult:
    return AppendResult(ErrorCode.none, base, -1, 0)


def test_each_partition_gets_its_own_answer() -> None:
    effects = Effects([appended(7), AppendResult(ErrorCode.corrupt_message, message="broken")])
    asked = asking(("orders", [(0, batch()), (2, batch())]))

    response = effects.drive(produce.handle(asked))

    assert errors(response) == [
        ("orders", 0, ErrorCode.none),
        ("orders", 2, ErrorCode.corrupt_message),
    ]
    [(_, [good, bad])] = response.topics
    assert (good.base_offset, good.log_start_offset, good.error_message) == (7, 0, None)
    assert (bad.base_offset, bad.log_start_offset, bad.error_message) == (-1, -1, "broken")
    [effect] = effects.asked
    assert isinstance(effect, AppendBatches)
    assert (effect.acks, effect.timeout_ms) == (1, 1000)


def test_records_that_are_to_blame_are_named() -> None:
    refused = AppendResult(
        ErrorCode.invalid_timestamp, message="too old", record_errors=((3, "too old"),)
    )
    response = drive(produce.handle(asking(("orders", [(0, batch())]))), [refused])

    [(_, [row])] = response.topics
    assert row.record_errors == (RecordError(3, "too old"),)


def test_a_partition_led_elsewhere_comes_with_its_leader() -> None:
    elsewhere = AppendResult(ErrorCode.not_leader_or_follower)
    response = drive(produce.handle(asking(("orders", [(1, batch())]))), [elsewhere])

    [(_, [row])] = response.topics
    assert row.current_leader == CurrentLeader(2, 4)
    assert [endpoint.node_id for endpoint in response.node_endpoints] == [2]


def test_topics_without_partitions_are_left_out() -> None:
    response = drive(produce.handle(asking(("orders", []))))
    assert response.topics == []


def test_a_topic_id_that_no_one_knows() -> None:
    asked = asking((OFFSETS_ID, [(0, batch())]), (TOPIC_ID, [(0, batch())]), version=13)

    response = drive(produce.handle(asked), [appended(1)])

    assert errors(response) == [
        (OFFSETS_ID, 0, ErrorCode.unknown_topic_id),
        (TOPIC_ID, 0, ErrorCode.none),
    ]


@pytest.mark.parametrize("acks", [2, -2])
def test_bad_acks_are_refused_where_there_is_a_partition(acks: int) -> None:
    asked = asking(("orders", [(0, batch()), (9, batch())]), ("none", [(0, batch())]), acks=acks)

    assert errors(drive(produce.handle(asked))) == [
        ("orders", 0, ErrorCode.invalid_required_acks),
        ("orders", 9, ErrorCode.unknown_topic_or_partition),
        ("none", 0, ErrorCode.unknown_topic_or_partition),
    ]


def test_internal_topics_are_for_the_broker_and_the_admin_client() -> None:
    offsets = topic("__consumer_offsets", OFFSETS_ID, partition(1))
    offered = ("__consumer_offsets", [(0, batch())])

    anyone = drive(produce.handle(asking(offered, image=image(offsets))))
    admin = asking(offered, image=image(offsets), client_id="__admin_client")

    assert errors(anyone) == [("__consumer_offsets", 0, ErrorCode.invalid_topic_exception)]
    assert errors(drive(produce.handle(admin), [appended(0)]))[0][2] is ErrorCode.none


def test_a_transactional_batch_needs_a_transactional_id() -> None:
    offered = ("orders", [(0, batch()), (2, batch(TRANSACTIONAL))])

    assert {error for *_, error in errors(drive(produce.handle(asking(offered))))} == {
        ErrorCode.transactional_id_authorization_failed
    }


@pytest.mark.parametrize(
    ("version", "adds", "names_abortable"),
    [(10, False, False), (11, False, True), (12, True, True)],
)
def test_a_transactional_batch_is_appended_in_its_transaction(
    version: int, adds: bool, names_abortable: bool
) -> None:
    offered = ("orders", [(0, batch()), (2, batch(TRANSACTIONAL))])
    effects = Effects([appended(0), AppendResult(ErrorCode.invalid_txn_state)])

    asked = asking(offered, transaction="mine", version=version)
    assert errors(effects.drive(produce.handle(asked))) == [
        ("orders", 0, ErrorCode.none),
        ("orders", 2, ErrorCode.invalid_txn_state),
    ]
    [effect] = effects.asked
    assert isinstance(effect, AppendInTransaction)
    assert effect.transactional_id == "mine"
    assert (effect.adds, effect.names_abortable) == (adds, names_abortable)


def test_zstd_came_with_version_7() -> None:
    offered = ("orders", [(0, batch(ZSTD)), (2, batch())])
    effects = Effects([appended(5)])

    assert errors(effects.drive(produce.handle(asking(offered, version=6)))) == [
        ("orders", 0, ErrorCode.unsupported_compression_type),
        ("orders", 2, ErrorCode.none),
    ]
    [effect] = effects.asked
    assert [each.partition for each in effect.appends] == [TopicPartition("orders", 2)]
    newer = drive(produce.handle(asking(offered, version=7)), [appended(5), appended(5)])
    assert {error for *_, error in errors(newer)} == {ErrorCode.none}


def test_acks_0_is_silent_unless_something_fails() -> None:
    offered = ("orders", [(0, batch())])

    assert drive(produce.handle(asking(offered, acks=0)), [appended(0)]) is None
    failed = [AppendResult(ErrorCode.corrupt_message)]
    assert isinstance(drive(produce.handle(asking(offered, acks=0)), failed), Disconnect)
    unknown = asking((OFFSETS_ID, [(0, batch())]), acks=0, version=13)
    assert isinstance(drive(produce.handle(unknown)), Disconnect)


def test_nothing_keeps_the_hosts_buffer_once_the_append_was_asked() -> None:
    asked = asking(("orders", [(0, batch())]))
    records = ref(asked.message.topics[0][1][0][1])
    handling = produce.handle(asked)

    effect = handling.send(None)
    assert records() is not None
    del effect

    assert records() is None
