from hypothesis import given
from hypothesis import strategies as st

from tidelog.coordination.timers import (
    JoinTimeout,
    KeyedTimers,
    SessionTimeout,
    SyncTimeout,
    TimerKey,
)

A, B, C = JoinTimeout("a"), JoinTimeout("b"), SyncTimeout("a")


def due(timers: KeyedTimers, now: int) -> list[TimerKey]:
    found = []
    while (key := timers.pop_due(now)) is not None:
        found.append(key)
    return found


def test_due_in_order_of_deadline_then_of_scheduling() -> None:
    timers = KeyedTimers()
    timers.schedule(B, 20)
    timers.schedule(C, 10)
    timers.schedule(A, 10)
    assert timers.next_deadline() == 10
    assert due(timers, 9) == []
    assert due(timers, 20) == [C, A, B]
    assert timers.next_deadline() is None


def test_moved_later_and_earlier_and_cancelled() -> None:
    timers = KeyedTimers()
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
    timers = KeyedTimers()
    timers.schedule(A, 10)
    timers.cancel(A)
    timers.schedule(A, 20)
    assert timers.next_deadline() == 20
    assert due(timers, 100) == [A]


def test_keys_of_different_kinds_are_different() -> None:
    timers = KeyedTimers()
    timers.schedule(JoinTimeout("g"), 1)
    timers.schedule(SyncTimeout("g"), 2)
    timers.schedule(SessionTimeout("g", "m"), 3)
    assert len(due(timers, 3)) == 3


keys = st.sampled_from([A, B, C])
steps = st.lists(
    st.tuples(st.just("schedule"), keys, st.integers(0, 20))
    | st.tuples(st.just("cancel"), keys, st.just(0))
    | st.tuples(st.just("pop"), keys, st.integers(0, 20))
)


@given(steps)
def test_agrees_with_a_plain_dictionary(steps: list[tuple[str, TimerKey, int]]) -> None:
    timers, model = KeyedTimers(), {}
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
