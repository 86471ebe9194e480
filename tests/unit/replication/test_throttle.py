"""A rate limit: a caller may exceed it once, and then waits for whole milliseconds."""

from hypothesis import given
from hypothesis import strategies as st

from tidelog.replication.throttle import NO_LIMIT, Throttle

KILOBYTE = 1_000


def test_without_a_limit_nothing_is_ever_too_much() -> None:
    throttle = Throttle()
    throttle.record(1 << 60, 0)
    assert not throttle.is_on
    assert throttle.wait_ms(0) == 0


def test_what_was_spent_ahead_is_waited_for() -> None:
    throttle = Throttle(KILOBYTE)
    throttle.record(5 * KILOBYTE, 0)
    assert throttle.wait_ms(0) == 5_000
    assert throttle.wait_ms(4_999) == 1
    assert not throttle.is_exceeded(5_000)


def test_a_pause_saves_up_no_more_than_a_second() -> None:
    throttle = Throttle(KILOBYTE)
    assert throttle.wait_ms(100_000) == 0
    throttle.record(3 * KILOBYTE, 100_000)
    assert throttle.wait_ms(100_000) == 2_000


def test_a_rate_of_nothing_is_waited_for_until_it_is_changed() -> None:
    throttle = Throttle(0)
    throttle.record(1, 0)
    assert throttle.is_exceeded(1_000_000)
    throttle.set_rate(NO_LIMIT, 1_000_000)
    assert not throttle.is_exceeded(1_000_000)


def test_a_higher_rate_pays_sooner_for_what_was_spent() -> None:
    throttle = Throttle(KILOBYTE)
    throttle.record(10 * KILOBYTE, 0)
    throttle.set_rate(10 * KILOBYTE, 0)
    assert throttle.wait_ms(0) == 1_000


@given(
    rate=st.integers(1, 1 << 30),
    sizes=st.lists(st.integers(1, 1 << 20), min_size=1, max_size=50),
)
def test_whoever_waits_as_told_keeps_to_the_rate(rate: int, sizes: list[int]) -> None:
    throttle, now, sent = Throttle(rate), 0, 0
    for size in sizes:
        now += throttle.wait_ms(now)
        assert not throttle.is_exceeded(now)
        # The bytes sent so far are within the rate, plus the bytes of one second.
        assert sent <= rate * now // 1_000 + rate
        throttle.record(size, now)
        sent += size
