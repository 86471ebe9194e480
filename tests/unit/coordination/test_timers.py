from hypothesis import given
from hypothesis import strategies as st

from tidelog.coordination.timers import KeyedTimers

A, B, C = "a", "b", "c"


def due(timers: KeyedTimers[str], now: int) -> list[str]:
    """Take the keys that are due."""
    found = timers.due(now)
    assert timers.due(now) == found, "they stay due until they are cancelled"
    assert all(timers.is_due(key, now) for key in found)
    for key in found:
        timers.cancel(key)
    return found


def test_due_in_order_of_deadline_then_of_scheduling() -> None:
    timers: KeyedTimers[str] = KeyedTimers()
    timers.schedule(B, 20)
    timers.schedule(C, 10)
    timers.schedule(A, 10)
    assert timers.next_deadline() == 10
    assert due(timers, 9) == []
    assert due(timers, 20) == [C, A, B]
    assert timers.next_deadline() is None


def test_moved_later_and_earlier_and_cancelled() -> None:
    timers: KeyedTimers[str] = KeyedTimers()
    timers.schedule(A, 10)
    timers.schedule(A, 30)
    timers.schedule(B, 30)
    timers.schedule(B, 5)
    timers.schedule(C, 1)
    timers.cancel(C)
    assert timers.next_deadline() == 5
    assert due(timers, 29) == [B]
    assert due(timers, 30) == [A]


def test_cancelled_and_scheduled_again() -> None:
    timers: KeyedTimers[str] = KeyedTimers()
    timers.schedule(A, 10)
    timers.cancel(A)
    timers.schedule(A, 20)
    assert timers.next_deadline() == 20
    assert due(timers, 100) == [A]


keys = st.sampled_from([A, B, C])
steps = st.lists(
    st.tuples(st.just("schedule"), keys, st.integers(0, 20))
    | st.tuples(st.just("cancel"), keys, st.just(0))
    | st.tuples(st.just("pop"), keys, st.integers(0, 20))
)


@given(steps)
def test_agrees_with_a_plain_dictionary(steps: list[tuple[str, str, int]]) -> None:
    timers: KeyedTimers[str] = KeyedTimers()
    model: dict[str, int] = {}
    for step, key, at in steps:
        if step == "schedule":
            timers.schedule(key, at)
            model[key] = at
        elif step == "cancel":
            timers.cancel(key)
            model.pop(key, None)
        else:
            found = due(timers, at)
            assert set(found) == {k for k, deadline in model.items() if deadline <= at}
            assert len(found) == len(set(found))
            model = {k: deadline for k, deadline in model.items() if deadline > at}
        assert timers.next_deadline() == min(model.values(), default=None)
