"""The host reports how far the machine's clock is ahead of the node's monotonic time."""

from tests.unit.runtime.echo import serving

from tidelog.model.ids import Millis
from tidelog.runtime.clock import SLACK_MS, HostClock

HOUR_MS = 3_600_000


class SettableClock(HostClock):
    set_by: Millis = 0

    def ahead_ms(self, now: Millis) -> Millis:
        return self.set_by


def test_the_node_hears_of_a_step_before_it_handles_what_came_after_it() -> None:
    clock = SettableClock()
    with serving(clock=clock) as served:
        client = served.client()
        for step in (48 * HOUR_MS, -48 * HOUR_MS, 0):
            clock.set_by = step
            client.ask(b"e")
            assert served.node.wall_moves[-1] == step


def test_the_noise_of_two_clocks_is_not_told() -> None:
    clock = SettableClock()
    with serving(clock=clock) as served:
        client = served.client()
        for noise in (1, -1, SLACK_MS - 1, 1 - SLACK_MS):
            clock.set_by = noise
            client.ask(b"e")
        assert served.node.wall_moves == []


def test_a_clock_that_nobody_sets_is_not_ahead() -> None:
    clock = HostClock()
    assert abs(clock.ahead_ms(clock())) < 1_000
