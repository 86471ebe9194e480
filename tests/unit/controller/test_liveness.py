"""Broker sessions: when they begin, continue and expire."""

from tidelog.controller.liveness import Liveness


def test_a_session_lasts_until_its_timeout_after_the_last_heartbeat() -> None:
    sessions = Liveness(9000)
    sessions.record_heartbeat(1, 1000)
    sessions.record_heartbeat(2, 2000)
    assert sessions.next_deadline() == 10_000
    assert sessions.expired(9999) == []
    assert sessions.expired(10_000) == [1]

    sessions.record_heartbeat(1, 5000)
    assert sessions.next_deadline() == 11_000
    assert sessions.expired(14_000) == [1, 2]
    assert sessions.is_live(1, 13_999)
    assert not sessions.is_live(1, 14_000)


def test_a_broker_stays_expired_until_it_is_forgotten() -> None:
    sessions = Liveness(10)
    sessions.record_heartbeat(1, 0)
    assert sessions.expired(10) == sessions.expired(11) == [1]

    sessions.forget(1)
    assert sessions.expired(11) == []
    assert sessions.next_deadline() is None
    assert not sessions.is_live(1, 0)


def test_a_process_that_is_gone_ends_its_session_at_once() -> None:
    sessions = Liveness(9000)
    sessions.record_heartbeat(1, 0)
    sessions.lost(1, 100)
    sessions.lost(2, 100)

    assert sessions.expired(100) == [1]
    assert sessions.next_deadline() == 100
    sessions.record_heartbeat(1, 200)
    assert sessions.expired(200) == [], "it was there after all"


def test_a_new_controller_gives_everyone_a_whole_session() -> None:
    sessions = Liveness(9000)
    sessions.record_heartbeat(2, 0)
    sessions.expect([1, 2], 5000)

    assert sessions.expired(9000) == [2]
    assert sessions.expired(14_000) == [1, 2]


def test_how_far_a_broker_has_read() -> None:
    sessions = Liveness(9000)
    sessions.record_heartbeat(1, 0, 77)

    assert (sessions.metadata_offset(1), sessions.metadata_offset(2)) == (77, -1)


def test_who_has_been_silent_before_is_waited_for_less_long() -> None:
    sessions = Liveness(9000)
    sessions.expect([1, 2], 0)
    sessions.expect_soon(1, 0, 2000)
    sessions.expect_soon(3, 0, 2000)

    assert sessions.expired(2000) == [1]
    sessions.record_heartbeat(1, 1999)
    assert sessions.expired(9000) == [2]
    sessions.expect_soon(2, 8000, 2000)
    assert sessions.next_deadline() == 9000, "nobody is given more than a session"
