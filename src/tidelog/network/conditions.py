"""How the network is doing: which ways are cut, and whose traffic is slow.

A way leads from one party to another: a node, or the clients, who are one party. What is said on a
cut way is held and not lost, as TCP would send it again and again; so are a connection's end and
its beginning.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

CLIENTS: Final = -1
"""Everyone who is not a node of the cluster."""

Party = int
"""A node's id, or CLIENTS."""

CHUNK = 256 * 1024
MIN_CHUNK = 1024
TURNS_PER_SECOND = 50
"""A narrow link is shared in turns of this length, so that small requests get by large ones."""


class Way(NamedTuple):
    """Who speaks, who hears, and on which listener."""

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
        """Nothing is cut and nobody is slow: it does not matter who speaks with whom."""
        return not self._cuts and not self._slow

    def is_cut(self, way: Way) -> bool:
        return way in self._cuts

    def is_slow(self, way: Way) -> bool:
        return way.speaker in self._slow or way.hearer in self._slow

    def chunk(self, way: Way) -> int:
        """How much may be taken from a speaker at once."""
        rates = [rate for one in self._both(way) if (rate := one.bytes_per_second)]
        return max(MIN_CHUNK, min((int(rate / TURNS_PER_SECOND) for rate in rates), default=CHUNK))

    def send(self, way: Way, size: int, now: float) -> tuple[float, float]:
        """So many bytes set out. -> when the next may, and when these arrive.

        A node has one line out and one line in, whoever it speaks with.
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
