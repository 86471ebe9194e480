"""The conditions of the network: the directions that are cut, and the parties that are slow.

A party is a node, or all clients together. A way is the direction from one party to another. While
a way is cut, the network holds its bytes. It delivers them after the cut, because TCP would
retransmit them. A cut way also delays the opening and the closing of connections.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

CLIENTS: Final = -1
"""All processes that are not nodes of the cluster."""

Party = int
"""A node id, or CLIENTS."""

CHUNK = 256 * 1024
MIN_CHUNK = 1024
TURNS_PER_SECOND = 50
"""The number of chunks per second on a slow link. Small chunks let connections take turns."""


class Way(NamedTuple):
    """A direction: its sender, its receiver, and the listener of the connection."""

    speaker: Party
    hearer: Party
    listener: str


class Slowness(NamedTuple):
    latency_seconds: float = 0.0
    bytes_per_second: float | None = None


class Conditions:
    def __init__(self) -> None:
        self._cuts: set[Way] = set()
        self._slow: dict[Party, Slowness] = {}
        self._busy_until: dict[tuple[Party, bool], float] = {}

    def cut(
        self, speakers: Collection[Party], hearers: Collection[Party], listeners: Collection[str]
    ) -> None:
        self._cuts |= {
            Way(speaker, hearer, listener)
            for speaker in speakers
            for hearer in hearers
            for listener in listeners
        }

    def slow(self, party: Party, slowness: Slowness) -> None:
        self._slow[party] = slowness

    def heal(self) -> None:
        self._cuts.clear()
        self._slow.clear()
        self._busy_until.clear()

    @property
    def is_calm(self) -> bool:
        """Whether no way is cut or slow.

        If so, it does not matter which party opened a connection.
        """
        return not self._cuts and not self._slow

    def is_cut(self, way: Way) -> bool:
        return way in self._cuts

    def is_slow(self, way: Way) -> bool:
        return way.speaker in self._slow or way.hearer in self._slow

    def chunk(self, way: Way) -> int:
        """The maximum number of bytes to read from the sender at once."""
        rates = [rate for one in self._both(way) if (rate := one.bytes_per_second)]
        return max(MIN_CHUNK, min((int(rate / TURNS_PER_SECOND) for rate in rates), default=CHUNK))

    def send(self, way: Way, size: int, now: float) -> tuple[float, float]:
        """Count bytes as sent.

        Returns two times: when the way is free again, and when the bytes arrive. All connections of
        a node share its bandwidth, separately for each direction.
        """
        gone = now
        for party, is_out in ((way.speaker, True), (way.hearer, False)):
            rate = self._slow.get(party, Slowness()).bytes_per_second
            if rate:
                gone = max(gone, self._busy_until.get((party, is_out), now)) + size / rate
                self._busy_until[party, is_out] = gone
        return gone, gone + sum(one.latency_seconds for one in self._both(way))

    def _both(self, way: Way) -> list[Slowness]:
        return [self._slow.get(party, Slowness()) for party in (way.speaker, way.hearer)]
