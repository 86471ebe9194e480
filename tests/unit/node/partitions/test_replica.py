"""One replica through leader changes and flushes: visible records stay visible."""

from dataclasses import replace

import pytest
from tests.sim.messages import create_topic, fetch_from
from tests.unit.log.support import NOW, SMALL, append, batch, new_log
from tests.unit.node.bench import Bench
from tests.unit.node.following import TOPIC_ID, Owner

from tidelog.log.config import LogConfig
from tidelog.model.effects import AppendResult
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.partitions.replica import Replica
from tidelog.node.requests.pending import Pending
from tidelog.replication.isr.leader import FollowerFetched, IsrAgreed
from tidelog.replication.rules import ISR

ME, OTHER = 1, 2


def agreed(*isr: int, epoch: int = 0, minimum: int = 1) -> IsrAgreed:
    return IsrAgreed(frozenset(isr), frozenset({ME, OTHER}), epoch, minimum)


def new_replica(owner: Owner, config: LogConfig = SMALL) -> Replica:
    partition = TopicPartition("orders", 0)
    return Replica(partition, TOPIC_ID, new_log(config), 0, Clock(NOW), owner)


def write(replica: Replica, count: int = 1) -> None:
    assert replica.leader is not None
    append(replica.log, batch(count), epoch=replica.leader.epoch)
    replica.appended()


def heard(replica: Replica, offset: int) -> None:
    replica.follower_fetched(FollowerFetched(OTHER, offset, -1, True))


def parked(replica: Replica, end: int) -> list[list[AppendResult]]:
    """Let a write with acks=all wait for this offset; return the list that will get its answer."""
    answers: list[list[AppendResult]] = []
    pending = Pending([AppendResult(ErrorCode.none, 0)], answers.append, AppendResult)
    pending.expect(0)
    replica.await_ack(-1, end, pending, 0)
    return answers


def test_the_watermark_stays_when_the_same_leader_begins_a_new_epoch() -> None:
    replica = new_replica(Owner())
    replica.lead(ME, 1, agreed(ME, OTHER), ISR)
    write(replica, 5)
    heard(replica, 5)
    assert replica.high_watermark == 5

    replica.lead(ME, 2, agreed(ME, OTHER, epoch=1), ISR)

    assert replica.high_watermark == 5


def test_a_write_that_waits_is_acknowledged_in_the_next_epoch_of_the_same_leader() -> None:
    replica = new_replica(Owner())
    replica.lead(ME, 1, agreed(ME, OTHER), ISR)
    write(replica, 5)
    answers = parked(replica, 5)
    replica.lead(ME, 2, agreed(ME, OTHER, epoch=1), ISR)
    assert not answers

    heard(replica, 5)

    assert answers[0][0].error is ErrorCode.none


def test_no_leadership_begins_in_an_epoch_that_the_log_has_left_behind() -> None:
    replica = new_replica(Owner())
    replica.lead(ME, 5, agreed(ME), ISR)

    with pytest.raises(AssertionError, match="later leader"):
        replica.lead(ME, 4, agreed(ME), ISR)


def test_a_flush_begun_before_what_was_acknowledged_takes_nothing_back() -> None:
    """The first flush goes up to 4 and ends late, when all records up to 9 are already visible."""
    owner = Owner()
    replica = new_replica(owner, replace(SMALL, flush_messages=10, flush_ms=1_000))
    replica.lead(ME, 1, agreed(ME), ISR)
    write(replica, 4)
    replica.do_chores(NOW + 1_000)
    write(replica, 5)
    assert replica.visible_end == replica.high_watermark == 9
    write(replica, 6)
    assert replica.visible_end == 9

    owner.finish_flush()

    assert replica.visible_end == 9
    owner.finish_flush()
    assert replica.visible_end == replica.high_watermark == 15


def test_a_flush_begun_before_a_cut_shows_nothing_past_the_end_of_the_log() -> None:
    owner = Owner()
    replica = new_replica(owner, replace(SMALL, flush_messages=1))
    replica.lead(ME, 1, agreed(ME, OTHER), ISR)
    for _ in range(6):
        write(replica)
    owner.finish_flush()  # the first flush ends; the flush of all six records begins
    replica.resign(ErrorCode.not_leader_or_follower)
    replica.truncate(3)
    replica.lead(ME, 2, agreed(ME, epoch=1), ISR)
    write(replica)

    owner.finish_flush()

    assert (replica.log.log_end_offset, replica.visible_end, replica.high_watermark) == (4, 3, 3)
    owner.finish_flush()
    assert replica.visible_end == replica.high_watermark == 4


def test_f32_a_write_that_cannot_be_committed_is_told_so_and_does_not_wait_in_silence() -> None:
    replica = new_replica(Owner())
    replica.lead(ME, 1, agreed(ME, OTHER, minimum=2), ISR)
    write(replica)
    answers = parked(replica, 1)

    replica.step(agreed(ME, epoch=1, minimum=2))

    assert answers[0][0].error is ErrorCode.not_enough_replicas_after_append
    assert replica.high_watermark == 0


def test_a_resigning_leader_answers_all_who_wait() -> None:
    replica = new_replica(Owner())
    replica.lead(ME, 1, agreed(ME, OTHER), ISR)
    write(replica)
    answers = parked(replica, 1)

    replica.resign(ErrorCode.not_leader_or_follower)

    assert answers[0][0].error is ErrorCode.not_leader_or_follower


def test_cutting_takes_the_watermark_no_further_back_than_it_must() -> None:
    replica = new_replica(Owner())
    replica.lead(ME, 1, agreed(ME), ISR)
    for _ in range(5):
        write(replica)
    replica.resign(ErrorCode.not_leader_or_follower)

    replica.truncate(3)

    assert (replica.log.log_end_offset, replica.visible_end, replica.high_watermark) == (3, 3, 3)


def test_fetches_of_a_lost_connection_wait_no_more() -> None:
    node = Bench()
    node.ask(create_topic("orders"))
    conn = node.connect()
    node.send(conn, fetch_from("orders", max_wait_ms=3))
    assert node.node.next_deadline() == node.now + 3

    node.disconnect(conn)

    assert node.node.next_deadline() > node.now + 3
