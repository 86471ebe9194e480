"""The runtime of coordinators, shown with a coordinator that keeps tallies."""

import pytest
from tests.unit.coordination.runtime.tally import (
    COMMIT_TIMEOUT_MS,
    PATIENCE_MS,
    Await,
    Look,
    Peek,
    Raise,
    RaiseMany,
    Report,
    Tally,
    TallyShard,
)

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.runtime.decision import ProducerIdAndEpoch
from tidelog.coordination.runtime.shard import TICK_RETRY_MS
from tidelog.coordination.runtime.sizes import MAX_RECORDS
from tidelog.model.errors import ErrorCode


@pytest.fixture
def tallies() -> TallyShard:
    return TallyShard()


def test_a_write_is_answered_when_it_is_committed(tallies: TallyShard) -> None:
    ticket = tallies.ask(Raise("a", 5))
    assert tallies.log.records == [(b"a", b"5")]
    assert tallies.log.awaited == [1]
    assert ticket not in tallies.answers
    tallies.commit()
    assert tallies.answers[ticket] == 5
    assert tallies.machine.settlements == [(("raised", "a"), ErrorCode.none)]


def test_f68_a_read_sees_uncommitted_state_and_is_answered_when_it_is_committed(
    tallies: TallyShard,
) -> None:
    tallies.ask(Raise("a", 5))
    read, peek = tallies.ask(Look("a")), tallies.ask(Peek("a"))
    tallies.ask(Raise("a", 6))
    assert tallies.answers == {peek: 5}, "only the read that asks for it shows uncommitted state"
    tallies.commit(up_to=1)
    assert tallies.answers[read] == 5, "what it saw, not what was written later"
    assert tallies.answers[tallies.ask(Peek("a"))] == 6


def test_f68_a_read_after_loading_waits_for_the_commit_of_what_was_loaded() -> None:
    tallies = TallyShard(Tally("a", 5))
    read = tallies.ask(Look("a"))
    assert read not in tallies.answers
    tallies.commit()
    assert tallies.answers[read] == 5


def test_a_read_is_answered_at_once_if_everything_is_committed(tallies: TallyShard) -> None:
    tallies.ask(Raise("a", 5))
    tallies.commit()
    assert tallies.answers[tallies.ask(Look("a"))] == 5


def test_a_refused_append_has_no_effect(tallies: TallyShard) -> None:
    tallies.log.refuses_with = ErrorCode.not_enough_replicas
    ticket = tallies.ask(Raise("a", 5))
    assert tallies.answers[ticket] is ErrorCode.not_enough_replicas
    assert tallies.machine.tallies == {}
    assert tallies.machine.settlements == [(("raised", "a"), ErrorCode.not_enough_replicas)]


def test_a_write_that_is_not_committed_in_time_is_refused_but_stays(tallies: TallyShard) -> None:
    ticket = tallies.ask(Raise("a", 5))
    assert tallies.shard.next_deadline() == tallies.now + COMMIT_TIMEOUT_MS
    tallies.advance(COMMIT_TIMEOUT_MS - 1)
    assert ticket not in tallies.answers
    tallies.advance(1)
    assert tallies.answers[ticket] is ErrorCode.request_timed_out
    assert tallies.machine.settlements == [(("raised", "a"), ErrorCode.request_timed_out)]
    read = tallies.ask(Look("a"))
    tallies.commit()
    assert tallies.answers[read] == 5
    assert len(tallies.machine.settlements) == 1


def test_what_waits_is_refused_if_the_log_cannot_commit(tallies: TallyShard) -> None:
    error = ErrorCode.not_enough_replicas_after_append
    ticket, read = tallies.ask(Raise("a", 5)), tallies.ask(Look("a"))
    tallies.take(tallies.shard.not_committed(error, tallies.at))
    assert tallies.answers == {ticket: error, read: error}
    again = tallies.ask(Look("a"))
    assert tallies.log.awaited == [1, 1], "the log is asked again, because the first wait is over"
    tallies.commit()
    assert tallies.answers[again] == 5


def test_an_open_request_is_answered_by_a_later_decision(tallies: TallyShard) -> None:
    ticket = tallies.ask(Await("a", 5))
    tallies.ask(Raise("a", 4))
    tallies.commit()
    assert ticket not in tallies.answers
    tallies.ask(Raise("a", 5))
    assert ticket not in tallies.answers
    tallies.commit()
    assert tallies.answers[ticket] == 5


def test_each_decision_of_a_tick_sees_the_ones_before(tallies: TallyShard) -> None:
    first, second = tallies.ask(Await("a", 5)), tallies.ask(Await("a", 5))
    assert tallies.shard.next_deadline() == tallies.now + PATIENCE_MS
    tallies.advance(PATIENCE_MS)
    tallies.commit()
    assert tallies.machine.tallies["timeouts"] == 2
    assert tallies.answers == dict.fromkeys((first, second), ErrorCode.request_timed_out)
    assert tallies.shard.next_deadline() is None


def test_a_refused_decision_of_a_tick_is_made_again_after_a_delay(tallies: TallyShard) -> None:
    tallies.ask(Await("a", 5))
    tallies.log.refuses_with = ErrorCode.not_enough_replicas
    tallies.advance(PATIENCE_MS)
    assert tallies.shard.next_deadline() == tallies.now + TICK_RETRY_MS
    tallies.log.refuses_with = ErrorCode.none
    tallies.advance(TICK_RETRY_MS - 1)
    assert "timeouts" not in tallies.machine.tallies
    tallies.advance(1)
    assert tallies.machine.tallies["timeouts"] == 1


def test_a_request_to_a_broker_is_sent_at_the_commit_even_if_that_is_late(
    tallies: TallyShard,
) -> None:
    ticket = tallies.ask(Report("a", 5, broker=2))
    tallies.advance(COMMIT_TIMEOUT_MS)
    assert tallies.answers[ticket] is ErrorCode.request_timed_out
    assert tallies.sent == []
    assert tallies.shard.next_deadline() is None
    tallies.commit()
    [sent] = tallies.sent
    assert (sent.to, sent.message) == ((2,), ("report", 5))
    tallies.take(tallies.shard.answered(sent, 7, tallies.at))
    assert tallies.machine.tallies["a answered"] == 7


def test_records_are_split_only_if_the_decision_allows_it(tallies: TallyShard) -> None:
    names = tuple(f"name{number}" for number in range(40))
    refused = tallies.ask(RaiseMany(names, is_atomic=True))
    assert tallies.answers[refused] is ErrorCode.message_too_large
    ticket = tallies.ask(RaiseMany(names, is_atomic=False))
    assert sum(tallies.log.batches) == 40
    assert len(tallies.log.batches) > 1
    tallies.commit()
    assert tallies.answers[ticket] == 40


def test_a_split_decision_has_at_most_a_thousand_records_per_batch(tallies: TallyShard) -> None:
    tallies.log.largest_batch = 100_000
    tallies.ask(RaiseMany(tuple(map(str, range(5_000))), is_atomic=False))
    assert tallies.log.batches == [MAX_RECORDS] * 5


def test_a_record_larger_than_a_batch_is_refused(tallies: TallyShard) -> None:
    ticket = tallies.ask(RaiseMany(("x" * 1_000,), is_atomic=False))
    assert tallies.answers[ticket] is ErrorCode.message_too_large


def test_a_lost_leadership_fails_what_waits_and_what_is_open(tallies: TallyShard) -> None:
    tickets = [tallies.ask(message) for message in (Await("a", 5), Raise("b", 1), Look("b"))]
    tallies.take(tallies.shard.resign())
    assert tallies.answers == dict.fromkeys(tickets, ErrorCode.not_coordinator)
    assert tallies.shard.next_deadline() is None


def test_a_shard_starts_with_the_changes_of_the_image_during_its_load(tallies: TallyShard) -> None:
    tallies.image = ClusterImage(offset=9)
    tallies.take(tallies.shard.start(ClusterImage(), tallies.at))
    assert tallies.machine.tallies == {"loads": 1, "image": 9}
    tallies.take(tallies.shard.image_changed(tallies.image, tallies.at))
    assert len(tallies.log.records) == 3


def test_a_marker_ends_a_transaction_and_reads_wait_for_it(tallies: TallyShard) -> None:
    tallies.log.records.append((b"marker", None))
    tallies.shard.transaction_ended(ProducerIdAndEpoch(7, 0), 1, committed=True)
    read = tallies.ask(Look("committed"))
    assert read not in tallies.answers
    tallies.commit()
    assert tallies.answers[read] == 7
