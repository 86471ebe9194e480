"""A follower's requests, and its handling of answers, including late and bad ones."""

from dataclasses import replace

from tests.unit.log.support import SMALL, append, batch
from tests.unit.node.following import ME, SESSION, TOPIC_ID, Following, fetched, records

from tidelog.model.effects import EpochEnd
from tidelog.model.errors import ErrorCode
from tidelog.replication.isr.leader import IsrAgreed
from tidelog.replication.rules import ISR

NOT_LEADER = ErrorCode.not_leader_or_follower
DURABLE = replace(SMALL, flush_messages=1)
ALONE = IsrAgreed(frozenset({ME}), frozenset({ME}), 0, 1)


def test_it_asks_with_its_epochs_and_its_end_and_again_at_once() -> None:
    follower = Following()
    replica = follower.replica()
    follower.fetcher.follow(replica, 3)

    [asked] = follower.asked_for().values()
    assert (asked.current_leader_epoch, asked.fetch_offset, asked.last_fetched_epoch) == (3, 0, -1)
    assert (follower.asked.replica_id, follower.asked.replica_epoch) == (ME, 5)

    follower.answer(fetched(records=records(0, 3, count=4), high_watermark=2))

    [asked] = follower.asked_for().values()
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (4, 3)
    assert replica.high_watermark == 2
    assert (follower.asked.session_id, follower.asked.session_epoch) == (99, 1)


def test_what_has_not_changed_is_not_asked_for_again() -> None:
    follower = Following()
    for partition in (0, 1):
        follower.fetcher.follow(follower.replica(partition), 3)
    follower.answer(fetched(0))
    assert list(follower.asked_for()) == [1]
    follower.answer(fetched(1))

    assert follower.asked_for() == {}
    follower.answer(fetched(1, records=records(0, 3)))

    assert list(follower.asked_for()) == [1]


def test_it_cuts_where_the_leader_parts_and_asks_on_from_there() -> None:
    follower = Following()
    replica = follower.replica()
    replica.log.append_as_follower(records(0, 1, count=1))
    replica.log.append_as_follower(records(1, 1, count=1))
    replica.log.append_as_follower(records(2, 2, count=1))
    follower.fetcher.follow(replica, 4)

    follower.answer(fetched(diverging=EpochEnd(1, 1)))

    [asked] = follower.asked_for().values()
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (1, 1)


def test_f09_a_late_answer_of_an_earlier_epoch_cuts_nothing() -> None:
    """The node fetches in epoch 3, leads and writes in epoch 4, and follows again in epoch 5."""
    follower = Following()
    replica = follower.replica()
    replica.log.append_as_follower(records(0, 2, count=1))
    follower.fetcher.follow(replica, 3)
    follower.fetcher.drop(replica)
    replica.lead(ME, 4, ALONE, ISR)
    append(replica.log, batch(2), epoch=4)
    replica.resign(NOT_LEADER)
    follower.fetcher.follow(replica, 5)

    follower.answer(fetched(diverging=EpochEnd(1, 0)))

    assert replica.log.log_end_offset == 3
    [asked] = follower.asked_for().values()
    assert (asked.current_leader_epoch, asked.fetch_offset, asked.last_fetched_epoch) == (5, 3, 4)


def test_f09_late_records_of_an_earlier_epoch_are_not_appended() -> None:
    follower = Following()
    replica = follower.replica()
    follower.fetcher.follow(replica, 3)
    follower.fetcher.follow(replica, 4)

    follower.answer(fetched(records=records(0, 3)))

    assert replica.log.log_end_offset == 0
    [asked] = follower.asked_for().values()
    assert asked.current_leader_epoch == 4


def test_f09_a_late_answer_out_of_range_does_not_empty_the_log() -> None:
    follower = Following()
    replica = follower.replica()
    replica.log.append_as_follower(records(0, 2))
    follower.fetcher.follow(replica, 3)
    follower.fetcher.follow(replica, 4)

    follower.answer(fetched(error=ErrorCode.offset_out_of_range, log_start=50))

    assert replica.log.log_end_offset == 1


def test_f05_a_new_epoch_under_the_same_leader_is_not_forgotten_when_it_is_added() -> None:
    """If a request both names and forgets a partition, the leader adds it and then removes it."""
    follower = Following()
    replica = follower.replica()
    follower.fetcher.follow(replica, 3)
    follower.answer(fetched())
    follower.fetcher.follow(replica, 4)
    follower.answer()

    assert list(follower.asked_for()) == [0]
    assert follower.forgotten() == []


def test_an_answer_for_a_dropped_partition_changes_nothing() -> None:
    follower = Following()
    kept, dropped = follower.replica(0), follower.replica(1)
    follower.fetcher.follow(kept, 3)
    follower.answer(fetched(0))
    follower.fetcher.follow(dropped, 3)
    follower.answer(fetched(0))
    follower.fetcher.drop(dropped)

    follower.answer(fetched(1, records=records(0, 3)))

    assert dropped.log.log_end_offset == 0
    assert follower.forgotten() == [1]


def test_one_partition_in_error_waits_and_does_not_hold_up_the_others() -> None:
    follower = Following()
    for partition in (0, 1):
        follower.fetcher.follow(follower.replica(partition), 3)
    follower.answer(fetched(0))
    follower.answer(fetched(1, error=NOT_LEADER))

    # If partition 1 stayed in the session, the leader would answer at once with the same error.
    assert follower.forgotten() == [1]
    follower.answer(fetched(0, records=records(0, 3)))
    assert list(follower.asked_for()) == [0]
    follower.advance(50)
    follower.answer()
    assert list(follower.asked_for()) == [1]


def test_a_lone_partition_in_error_is_asked_for_again_after_a_moment() -> None:
    follower = Following()
    follower.fetcher.follow(follower.replica(), 3)
    follower.answer(fetched(error=NOT_LEADER))

    assert follower.asked is None
    follower.advance(50)

    assert list(follower.asked_for()) == [0]


def test_after_any_failure_the_session_begins_anew_with_everything() -> None:
    follower = Following()
    for partition in (0, 1):
        follower.fetcher.follow(follower.replica(partition), 3)
    follower.answer(fetched(0))
    follower.answer(fetched(1))

    for fail in (
        follower.lose_connection,
        lambda: follower.answer(error=ErrorCode.fetch_session_id_not_found, session=0),
        lambda: follower.answer(error=ErrorCode.invalid_fetch_session_epoch, session=0),
    ):
        fail()
        follower.advance(50)
        assert sorted(follower.asked_for()) == [0, 1]
        # The request names the old session, so that the leader closes it.
        assert (follower.asked.session_id, follower.asked.session_epoch) == (SESSION, 0)
        follower.answer(fetched(0), fetched(1))


def test_what_is_not_durable_yet_is_not_claimed() -> None:
    """With flush.messages=1, a fetch from an offset claims that all earlier records are flushed."""
    follower = Following()
    replica = follower.replica(config=DURABLE)
    follower.fetcher.follow(replica, 3)

    follower.answer(fetched(records=records(0, 3, count=4)))

    assert follower.asked is None, "asked before it was flushed"
    follower.owner.finish_flush()
    follower.fetcher.flushed(replica)
    [asked] = follower.asked_for().values()
    assert asked.fetch_offset == 4


def test_what_waits_for_its_flush_is_not_sent_again_meanwhile() -> None:
    """If the partition stayed in the session, the leader would send the same records again."""
    follower = Following()
    slow, quick = follower.replica(0, config=DURABLE), follower.replica(1)
    follower.fetcher.follow(slow, 3)
    follower.fetcher.follow(quick, 3)
    follower.answer(fetched(0))

    follower.answer(fetched(0, records=records(0, 3)))

    assert follower.forgotten() == [0]
    follower.owner.finish_flush()
    follower.fetcher.flushed(slow)
    follower.answer()
    [asked] = follower.asked_for().values()
    assert (asked.partition, asked.fetch_offset) == (0, 1)


def test_the_leader_is_nudged_once_when_there_is_more_to_ask_for_than_the_fetch_it_holds() -> None:
    follower = Following()
    follower.fetcher.follow(follower.replica(0), 3)
    assert (list(follower.asked_for()), follower.nudges) == ([0], 0)

    follower.fetcher.follow(follower.replica(1), 3)
    follower.fetcher.follow(follower.replica(2), 3)
    assert (list(follower.asked_for()), follower.nudges) == ([0], 1)

    follower.answer(fetched(0))
    assert (list(follower.asked_for()), follower.nudges) == ([1, 2], 1)
    follower.fetcher.follow(follower.replica(3), 3)
    assert (list(follower.asked_for()), follower.nudges) == ([1, 2], 2)


def test_a_deleted_prefix_is_passed_over() -> None:
    follower = Following()
    replica = follower.replica()
    replica.log.append_as_follower(records(0, 1))
    follower.fetcher.follow(replica, 3)

    follower.answer(fetched(error=ErrorCode.offset_out_of_range, log_start=50))

    [asked] = follower.asked_for().values()
    assert (asked.fetch_offset, asked.log_start_offset) == (50, 50)


def test_out_of_range_within_the_leaders_log_keeps_what_is_here() -> None:
    follower = Following()
    replica = follower.replica()
    replica.log.append_as_follower(records(0, 1))
    follower.fetcher.follow(replica, 3)

    follower.answer(fetched(error=ErrorCode.offset_out_of_range, log_start=0))

    assert replica.log.log_end_offset == 1
    assert follower.asked is None
    follower.advance(50)
    assert list(follower.asked_for()) == [0]


def test_an_empty_log_past_the_leaders_end_goes_back_to_its_start() -> None:
    """The follower's records were deleted; then a replica with a shorter log became leader."""
    follower = Following()
    replica = follower.replica()
    replica.restart_at(100)
    follower.fetcher.follow(replica, 3)

    follower.answer(fetched(error=ErrorCode.offset_out_of_range, log_start=10))

    [asked] = follower.asked_for().values()
    assert asked.fetch_offset == 10


def test_a_log_start_that_moved_is_taken_over() -> None:
    follower = Following()
    replica = follower.replica()
    follower.fetcher.follow(replica, 3)
    follower.answer(fetched(records=records(0, 3, count=4), high_watermark=4, log_start=2))

    assert replica.log.log_start_offset == 2


def test_the_watermark_is_learnt_only_as_far_as_the_log_goes() -> None:
    follower = Following()
    replica = follower.replica()
    follower.fetcher.follow(replica, 3)

    follower.answer(fetched(records=records(0, 3, count=4), high_watermark=20))

    assert replica.high_watermark == 4


def test_records_that_do_not_follow_are_refused_and_asked_for_again() -> None:
    follower = Following()
    replica = follower.replica()
    replica.log.append_as_follower(records(0, 1, count=3))
    follower.fetcher.follow(replica, 3)

    follower.answer(fetched(records=records(1, 3)))

    assert replica.log.log_end_offset == 3
    follower.advance(50)
    [asked] = follower.asked_for().values()
    assert asked.fetch_offset == 3


def test_topics_are_asked_for_by_id() -> None:
    follower = Following()
    follower.fetcher.follow(follower.replica(), 3)

    assert [topic for topic, _ in follower.asked.topics] == [TOPIC_ID]
