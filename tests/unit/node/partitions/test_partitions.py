"""Append and fetch on a real node: acks, flushes, timeouts, and fetches that wait."""

from typing import Any

import pytest
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsTopic
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsTopic
from tests.sim.messages import (
    ask,
    batch,
    create_topic,
    delete_topic,
    fetch_from,
    produce_to,
    records_in,
)
from tests.unit.node.bench import Bench

from tidelog.model.errors import ErrorCode
from tidelog.model.outbound import Run
from tidelog.protocol.fetch import PartitionFetched
from tidelog.protocol.produce import PartitionProduced


def bench(partitions: int = 1, **configs: str) -> Bench:
    made = Bench()
    answer = made.ask(create_topic("orders", partitions, **configs))
    assert answer.topics[0].error_code is ErrorCode.none
    return made


def produced(answer: Any) -> PartitionProduced:
    [(_, [only])] = answer.topics
    return only


def fetched(answer: Any) -> PartitionFetched:
    [(_, [only])] = answer.topics
    return only


def values(answer: Any) -> list[bytes | None]:
    return [record.value for record in records_in(fetched(answer).records)]


# -- acks and flushes ------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [1, -1])
def test_a_write_is_acknowledged_at_once_when_nothing_has_to_be_flushed(acks: int) -> None:
    node = bench()
    conn = node.connect()
    wish = produce_to("orders", batch(b"a", b"b"), acks=acks)

    node.send(conn, wish)

    assert produced(node.answer(conn, wish)) == PartitionProduced(0, ErrorCode.none, 0, -1, 0)
    assert not node.flushes


@pytest.mark.parametrize("acks", [1, -1])
def test_a_write_is_acknowledged_after_its_flush_where_the_topic_asks_for_one(acks: int) -> None:
    node = bench(flush_messages="1")
    conn = node.connect()
    wish = produce_to("orders", batch(b"a"), acks=acks)

    node.send(conn, wish)
    assert not node.sent[conn]
    assert values(node.ask(fetch_from("orders"))) == [], "shown before it is durable"
    assert len(node.flushes) == 1
    node.flush()

    assert produced(node.answer(conn, wish)).base_offset == 0
    assert values(node.ask(fetch_from("orders"))) == [b"a"]


def test_writes_during_a_flush_share_the_next_one() -> None:
    node = bench(flush_messages="1")
    conn = node.connect()
    wishes = [produce_to("orders", batch(b"%d" % number)) for number in range(4)]
    node.send(conn, wishes[0])
    [first] = node.flushes
    for wish in wishes[1:]:
        node.send(conn, wish)
    assert list(node.flushes) == [first]

    node.flush()

    offsets = [produced(node.answer(conn, wish)).base_offset for wish in wishes]
    assert offsets == [0, 1, 2, 3]
    flushes = [one for one in node.outbound if isinstance(one, Run)]
    assert sum(one.token >= first.token for one in flushes) == 2


def test_the_flush_of_every_tenth_record_is_not_waited_for_before() -> None:
    node = bench(flush_messages="10")
    conn = node.connect()
    few, many = produce_to("orders", batch(*[b"x"] * 9)), produce_to("orders", batch(b"y"))

    node.send(conn, few)
    assert produced(node.answer(conn, few)).error is ErrorCode.none
    node.send(conn, many)
    assert node.answer(conn, many) is None
    node.flush()
    assert produced(node.answer(conn, many)).base_offset == 9


def test_acks_0_is_not_answered_and_still_written() -> None:
    node = bench()
    conn = node.connect()

    node.send(conn, produce_to("orders", batch(b"silent"), acks=0))

    assert not node.sent[conn]
    assert values(node.ask(fetch_from("orders"))) == [b"silent"]


@pytest.mark.parametrize("acks", [2, -2, 3])
def test_other_acks_are_refused(acks: int) -> None:
    node = bench()
    answer = node.ask(produce_to("orders", batch(b"x"), acks=acks))
    assert produced(answer).error is ErrorCode.invalid_required_acks
    assert values(node.ask(fetch_from("orders"))) == []


def test_a_write_that_is_not_durable_in_time_times_out_and_is_answered_once() -> None:
    node = bench(flush_messages="1")
    conn = node.connect()
    wish = produce_to("orders", batch(b"slow"), timeout_ms=300)
    node.send(conn, wish)

    node.pass_time(299)
    assert node.answer(conn, wish) is None
    node.pass_time(1)
    assert produced(node.answer(conn, wish)).error is ErrorCode.request_timed_out
    node.flush()

    assert not node.sent[conn]
    assert values(node.ask(fetch_from("orders"))) == [b"slow"], "it was written all the same"


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_write_without_time_times_out_at_once(timeout_ms: int) -> None:
    node = bench(flush_messages="1")
    conn = node.connect()
    wish = produce_to("orders", batch(b"x"), timeout_ms=timeout_ms)
    node.send(conn, wish)
    node.pass_time(0)
    assert produced(node.answer(conn, wish)).error is ErrorCode.request_timed_out


def test_each_partition_of_a_request_has_its_own_outcome() -> None:
    node = bench(2)
    torn = bytearray(batch(b"bad"))
    torn[-1] ^= 1
    wish = produce_to("orders", {0: batch(b"good"), 1: bytes(torn), 2: batch(b"nowhere")})

    [(_, answers)] = node.ask(wish).topics

    assert [one.error for one in answers] == [
        ErrorCode.none,
        ErrorCode.corrupt_message,
        ErrorCode.unknown_topic_or_partition,
    ]


def test_one_slow_partition_holds_its_request_and_the_others_are_not_answered_twice() -> None:
    node = bench(flush_messages="1")
    node.ask(create_topic("quick"))
    conn = node.connect()
    wish = produce_to("orders", batch(b"slow"))
    wish.topics += produce_to("quick", batch(b"quick")).topics

    node.send(conn, wish)
    assert node.answer(conn, wish) is None
    node.flush()

    answer = node.answer(conn, wish)
    assert [part.error for _, parts in answer.topics for part in parts] == [ErrorCode.none] * 2


def test_no_records_at_all_are_refused() -> None:
    node = bench()
    answer = node.ask(produce_to("orders", {0: None}))
    assert produced(answer).error is ErrorCode.invalid_record


# -- fetches that wait -----------------------------------------------------------------------------


def test_a_fetch_that_finds_something_is_answered_at_once() -> None:
    node = bench()
    node.ask(produce_to("orders", batch(b"here")))
    conn = node.connect()
    wish = fetch_from("orders", max_wait_ms=60_000)
    node.send(conn, wish)
    assert values(node.answer(conn, wish)) == [b"here"]


def test_a_fetch_that_will_not_wait_is_answered_at_once() -> None:
    node = bench()
    conn = node.connect()
    wish = fetch_from("orders", max_wait_ms=0)
    node.send(conn, wish)
    assert values(node.answer(conn, wish)) == []


def test_a_waiting_fetch_is_woken_by_the_write_that_it_waits_for() -> None:
    node = bench(2)
    conn = node.connect()
    wish = fetch_from("orders", {0: 0}, max_wait_ms=60_000)
    node.send(conn, wish)

    node.ask(produce_to("orders", {1: batch(b"elsewhere")}))
    assert not node.sent[conn]
    node.ask(produce_to("orders", {0: batch(b"here")}))

    assert values(node.answer(conn, wish)) == [b"here"]
    node.pass_time(60_000)
    assert not node.sent[conn], "answered twice"


def test_a_waiting_fetch_wakes_when_min_bytes_are_there() -> None:
    node = bench()
    size = len(batch(b"x" * 100))
    conn = node.connect()
    wish = fetch_from("orders", min_bytes=2 * size + 1, max_wait_ms=60_000)
    node.send(conn, wish)

    for number in range(3):
        assert not node.sent[conn], number
        node.ask(produce_to("orders", batch(b"x" * 100)))

    assert len(values(node.answer(conn, wish))) == 3


def test_min_bytes_may_come_from_several_partitions() -> None:
    node = bench(2)
    size = len(batch(b"x"))
    conn = node.connect()
    wish = fetch_from("orders", {0: 0, 1: 0}, min_bytes=2 * size, max_wait_ms=60_000)
    node.send(conn, wish)

    node.ask(produce_to("orders", {0: batch(b"x")}))
    assert not node.sent[conn]
    node.ask(produce_to("orders", {1: batch(b"x")}))

    [(_, answers)] = node.answer(conn, wish).topics
    assert [len(records_in(one.records)) for one in answers] == [1, 1]


def test_a_waiting_fetch_is_answered_with_what_there_is_when_its_time_is_up() -> None:
    node = bench()
    conn = node.connect()
    wish = fetch_from("orders", min_bytes=10_000, max_wait_ms=500)
    node.send(conn, wish)
    node.ask(produce_to("orders", batch(b"little")))

    node.pass_time(500)

    assert values(node.answer(conn, wish)) == [b"little"]


def test_a_waiting_fetch_ignores_what_is_not_flushed_yet() -> None:
    node = bench(flush_messages="1")
    conn = node.connect()
    wish = fetch_from("orders", max_wait_ms=60_000)
    node.send(conn, wish)
    node.send(node.connect(), produce_to("orders", batch(b"x")))
    assert not node.sent[conn]

    node.flush()

    assert values(node.answer(conn, wish)) == [b"x"]


def test_something_wrong_with_one_partition_is_told_without_waiting() -> None:
    node = bench()
    conn = node.connect()
    wish = fetch_from("orders", {0: 0, 9: 0}, max_wait_ms=60_000)
    node.send(conn, wish)
    [(_, answers)] = node.answer(conn, wish).topics
    assert [one.error for one in answers] == [
        ErrorCode.none,
        ErrorCode.unknown_topic_or_partition,
    ]


@pytest.mark.parametrize("offset", [-1, 1, 2**62])
def test_an_offset_out_of_range_is_told_without_waiting(offset: int) -> None:
    node = bench()
    conn = node.connect()
    wish = fetch_from("orders", offset, max_wait_ms=60_000)
    node.send(conn, wish)
    assert fetched(node.answer(conn, wish)).error is ErrorCode.offset_out_of_range


def test_the_client_of_another_leader_epoch_is_told_which_is_too_old_or_too_new() -> None:
    node = bench()
    answer = node.ask(fetch_from("orders", epoch=7))
    assert fetched(answer).error is ErrorCode.unknown_leader_epoch


# -- deleted topics and records --------------------------------------------------------------------


def test_everyone_who_waits_on_a_deleted_topic_is_told() -> None:
    node = bench(flush_messages="1")
    writer, reader = node.connect(), node.connect()
    write, read = produce_to("orders", batch(b"x")), fetch_from("orders", max_wait_ms=60_000)
    node.send(writer, write)
    node.send(reader, read)
    held = list(node.flushes)
    node.flushes.clear()  # the partition's own fsync is slow

    node.ask(delete_topic("orders"))
    node.flushes.extend(held)
    node.flush()

    assert produced(node.answer(writer, write)).error is ErrorCode.not_leader_or_follower
    assert fetched(node.answer(reader, read)).error is not ErrorCode.none
    assert not node.sent[writer]
    assert not node.sent[reader]


def test_a_topic_made_again_begins_at_zero() -> None:
    node = bench()
    node.ask(produce_to("orders", batch(b"old")))
    node.ask(delete_topic("orders"))
    assert fetched(node.ask(fetch_from("orders"))).error is ErrorCode.unknown_topic_or_partition
    node.ask(create_topic("orders"))
    assert values(node.ask(fetch_from("orders"))) == []
    assert produced(node.ask(produce_to("orders", batch(b"new")))).base_offset == 0


def test_deleted_files_go_after_their_delay() -> None:
    node = bench(file_delete_delay_ms="5000")
    node.ask(produce_to("orders", batch(b"old")))
    node.ask(delete_topic("orders"))
    assert any(name.endswith("-delete") for name in node.disk.list(""))
    node.pass_time(7_000)
    assert not any(name.startswith("orders") for name in node.disk.list(""))


def test_records_before_an_offset_are_deleted_and_not_served() -> None:
    node = bench()
    node.ask(produce_to("orders", batch(b"a", b"b", b"c")))
    partition = DeleteRecordsPartition(partition_index=0, offset=2)
    answer = node.ask(ask(21, topics=(DeleteRecordsTopic(name="orders", partitions=(partition,)),)))

    assert answer.topics[0].partitions[0].low_watermark == 2
    assert fetched(node.ask(fetch_from("orders", 1))).error is ErrorCode.offset_out_of_range
    assert fetched(node.ask(fetch_from("orders", 2))).log_start_offset == 2


def test_f52_who_reads_by_the_id_of_a_deleted_topic_does_not_get_its_namesakes_records() -> None:
    node = Bench()
    [made] = node.ask(create_topic("orders")).topics
    node.ask(produce_to("orders", batch(b"old")))
    node.ask(delete_topic("orders"))
    [again] = node.ask(create_topic("orders")).topics
    node.ask(produce_to("orders", batch(b"new")))

    assert made.topic_id != again.topic_id
    by_old_id = node.ask(fetch_from(made.topic_id), version=13)
    assert fetched(by_old_id).error is ErrorCode.unknown_topic_id
    refused = node.ask(produce_to(made.topic_id, batch(b"late")), version=13)
    assert produced(refused).error is ErrorCode.unknown_topic_id
    assert values(node.ask(fetch_from(again.topic_id), version=13)) == [b"new"]


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(-1, ErrorCode.not_leader_or_follower), (0, ErrorCode.unknown_leader_epoch)],
)
def test_a_broker_that_is_no_replica_does_not_read_what_only_replicas_may(
    epoch: int, error: ErrorCode
) -> None:
    node = bench(flush_messages="1")
    node.send(node.connect(), produce_to("orders", batch(b"not committed yet")))
    wish = fetch_from("orders", epoch=epoch)
    wish.replica_id = 99

    answer = fetched(node.ask(wish))

    assert (answer.error, answer.records) in [(error, None), (error, b"")]


def test_the_latest_offset_is_the_watermark_to_a_consumer_and_the_end_to_a_debugger() -> None:
    node = bench(flush_messages="1")
    node.send(node.connect(), produce_to("orders", batch(b"a", b"b")))
    assert [latest(node, replica_id=reader) for reader in (-1, -2)] == [0, 2]
    node.flush()
    assert [latest(node, replica_id=reader) for reader in (-1, -2)] == [2, 2]


def latest(node: Bench, replica_id: int) -> int:
    asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = (ListOffsetsTopic(name="orders", partitions=(asked,)),)
    answer = node.ask(ask(2, replica_id=replica_id, isolation_level=0, topics=topics))
    offset: int = answer.topics[0].partitions[0].offset
    return offset
