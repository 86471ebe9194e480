"""Timers fire in the order of their deadlines.

If deadlines are equal, the timer that was set first fires first.
"""

from hypothesis import given
from hypothesis import strategies as st

from tidelog.node.ready import ReadyQueue
from tidelog.node.timers import Timers


def test_nothing_is_due_without_timers() -> None:
    timers = Timers()
    timers.fire(10**15, ReadyQueue().run)
    assert timers.next_deadline() is None


def test_a_timer_fires_once_and_not_before_its_time() -> None:
    timers, fired = Timers(), []
    timers.at(10, lambda: fired.append(10))

    timers.fire(9, ReadyQueue().run)
    assert fired == []
    assert timers.next_deadline() == 10
    timers.fire(10, ReadyQueue().run)
    timers.fire(11, ReadyQueue().run)

    assert fired == [10]
    assert timers.next_deadline() is None


def test_a_cancelled_timer_neither_fires_nor_keeps_the_host_awake() -> None:
    timers, fired = Timers(), []
    timer = timers.at(10, lambda: fired.append(10))
    timers.at(20, lambda: fired.append(20))

    timer.cancel()
    assert timers.next_deadline() == 20
    timers.fire(30, ReadyQueue().run)
    timer.cancel()

    assert fired == [20]


def test_what_an_action_sets_for_now_fires_in_the_same_turn() -> None:
    timers, fired = Timers(), []
    timers.at(10, lambda: timers.at(10, lambda: fired.append("later")))

    timers.fire(10, ReadyQueue().run)

    assert fired == ["later"]


def test_an_action_may_cancel_another_that_is_due() -> None:
    timers, fired = Timers(), []
    timers.at(1, lambda: doomed.cancel())
    doomed = timers.at(2, lambda: fired.append("doomed"))

    timers.fire(5, ReadyQueue().run)

    assert fired == []


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans())), st.integers(0, 20))
def test_exactly_what_is_due_fires_in_order(wanted: list[tuple[int, bool]], now: int) -> None:
    timers, fired = Timers(), []
    for place, (when, is_cancelled) in enumerate(wanted):
        timer = timers.at(when, lambda key=(when, place): fired.append(key))
        if is_cancelled:
            timer.cancel()
    kept = sorted((w, place) for place, (w, is_cancelled) in enumerate(wanted) if not is_cancelled)

    timers.fire(now, ReadyQueue().run)

    assert fired == [key for key in kept if key[0] <= now]
    assert timers.next_deadline() == min((w for w, _ in kept if w > now), default=None)


def test_timers_that_were_cancelled_do_not_pile_up_until_their_time() -> None:
    """A cancelled timer must not use memory until its distant deadline."""
    timers, fired = Timers(), []
    timers.at(5, lambda: fired.append(5))
    for number in range(10_000):
        timers.at(10**9 + number, lambda: fired.append(0)).cancel()

    assert len(timers) < 2_000
    timers.fire(2 * 10**9, ReadyQueue().run)
    assert fired == [5]
    assert len(timers) == 0
