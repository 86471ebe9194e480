"""A node has two clocks.

The clock for deadlines never jumps. Timestamps use the machine's clock.
"""

from tidelog.node.clock import STEP_MS, TRUST_MS, Clock

HOUR_MS = 3_600_000


def moved(*steps: int) -> Clock:
    """A clock that was moved by these steps, one after another, at the same moment."""
    clock = Clock(1_000)
    for step in steps:
        clock.wall_moved(clock.ahead_ms + step)
    return clock


def test_timestamps_follow_the_machines_clock_at_once_and_deadlines_do_not() -> None:
    for step in (48 * HOUR_MS, -48 * HOUR_MS):
        clock = moved(step)
        assert (clock.now, clock.wall) == (1_000, 1_000 + step)


def test_a_clock_set_back_is_believed_at_once() -> None:
    assert moved(-HOUR_MS).settled_ms == -HOUR_MS


def test_a_clock_set_forward_is_believed_when_it_has_stood_for_an_hour() -> None:
    clock = moved(48 * HOUR_MS)
    assert clock.settled_ms == 0
    clock.now += TRUST_MS - 1
    assert clock.settled_ms == 0
    clock.now += 1
    assert clock.settled_ms == 48 * HOUR_MS


def test_a_clock_set_forward_and_put_right_was_never_believed() -> None:
    clock = moved(48 * HOUR_MS, -48 * HOUR_MS)
    assert (clock.ahead_ms, clock.settled_ms) == (0, 0)
    clock.now += TRUST_MS
    assert clock.settled_ms == 0


def test_every_step_forward_has_to_stand_for_an_hour() -> None:
    clock = moved(HOUR_MS)
    clock.now += TRUST_MS - 1
    clock.wall_moved(48 * HOUR_MS)
    clock.now += 1
    assert clock.settled_ms == 0
    clock.now += TRUST_MS
    assert clock.settled_ms == 48 * HOUR_MS


def test_small_corrections_are_believed_and_keep_no_step_waiting() -> None:
    clock = moved(STEP_MS)
    assert clock.settled_ms == STEP_MS
    clock.wall_moved(HOUR_MS)
    for _ in range(10):
        clock.now += TRUST_MS // 10
        clock.wall_moved(clock.ahead_ms + 20)
    assert clock.settled_ms == HOUR_MS + 200


def test_a_step_back_while_one_forward_waits_is_believed_as_far_as_it_goes() -> None:
    clock = moved(10 * HOUR_MS, -11 * HOUR_MS)
    assert clock.settled_ms == -HOUR_MS
