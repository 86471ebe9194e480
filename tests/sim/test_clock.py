"""A drifting clock runs at its own rate, never goes back, and predicts when it reaches a time."""

import pytest

from tidelog.sim.machines.clock import DriftingClock
from tidelog.sim.machines.world import EPOCH_MS, World


@pytest.mark.parametrize("drift", [-100, -7, 0, 3, 100])
def test_a_deadline_comes_when_the_clock_shows_it_and_not_before(drift: int) -> None:
    world = World(1)
    clock = DriftingClock(world)
    clock.skew(1_234)
    clock.drift(drift)
    for ahead in (1, 9, 1_000, 12_345):
        deadline = clock.now + ahead
        delay = clock.until(deadline)
        world.run(delay - 1)
        assert clock.now < deadline
        world.run(1)
        assert clock.now >= deadline
        assert clock.until(deadline) == 0


def test_a_change_of_rate_does_not_move_the_clock_itself() -> None:
    world = World(1)
    clock = DriftingClock(world)
    clock.drift(50)
    world.run(10_000)
    assert clock.now == EPOCH_MS + 10_500
    clock.drift(-50)
    assert clock.now == EPOCH_MS + 10_500
    world.run(10_000)
    assert clock.now == EPOCH_MS + 20_000
