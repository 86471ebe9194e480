"""A machine's clock, which never moves back: simulated time with its own start and rate."""

from tidelog.model.ids import Millis
from tidelog.sim.machines.world import World

MAX_DRIFT = 100
"""The largest drift of a clock, in parts per thousand. Real clocks drift far less."""


class DriftingClock:
    __slots__ = ("_begun", "_rate", "_since", "_world")

    def __init__(self, world: World) -> None:
        self._world = world
        self._since = self._begun = world.now
        self._rate = 1_000

    @property
    def now(self) -> Millis:
        return self._begun + (self._world.now - self._since) * self._rate // 1_000

    def skew(self, offset_ms: Millis) -> None:
        """Move the clock forward or back. Allowed only while no process runs."""
        self._begun += offset_ms

    def drift(self, per_mille: int) -> None:
        assert abs(per_mille) <= MAX_DRIFT
        self._begun, self._since = self.now, self._world.now
        self._rate = 1_000 + per_mille

    def until(self, deadline: Millis) -> Millis:
        """The simulated time until this clock reaches the deadline."""
        if deadline <= self.now:
            return 0
        return -((self._begun - deadline) * 1_000 // self._rate) - (self._world.now - self._since)
