"""A simulated client: one connection, on which responses arrive in the order of the requests."""

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from tidelog.model.ids import Millis
from tidelog.sim.machines.network import Address, Side, SimNetwork

Answered: TypeAlias = Callable[[bytes | None], None]
"""Called with the response frame, or None if there is no response."""

PATIENCE_MS: Millis = 30_000


class SimClient:
    """A client that connects on creation, and queues requests until it is connected."""

    def __init__(
        self,
        network: SimNetwork,
        address: Address,
        name: str = "client",
        patience_ms: Millis = PATIENCE_MS,
    ) -> None:
        self.is_lost = False
        self._world = network.world
        self._patience_ms = patience_ms
        self._is_connected = False
        self._unsent: list[bytes] = []
        self._waiting: deque[Answered] = deque()
        self._side = network.connect(name, address, self)

    def request(self, frame: bytes, answered: Answered) -> None:
        """Send a frame. If no response arrives in time, the client closes its connection."""
        if self.is_lost:
            answered(None)
            return
        self._waiting.append(answered)
        self._world.after(self._patience_ms, lambda: self._give_up(answered))
        self.send(frame[4:])

    def send(self, frame: bytes) -> None:
        """Send without waiting for an answer (acks=0)."""
        if self._is_connected:
            self._side.send(frame)
        else:
            self._unsent.append(frame)

    def close(self) -> None:
        self._side.close()
        self.lost()

    # -- called by the network ---------------------------------------------------------------------

    def connected(self, side: Side) -> None:
        self._is_connected = True
        for frame in self._unsent:
            side.send(frame)
        self._unsent.clear()

    def connect_failed(self, was_refused: bool, reason: str) -> None:
        self.lost()

    def received(self, frame: bytes) -> None:
        self._waiting.popleft()(frame)

    def lost(self) -> None:
        self.is_lost = True
        waiting, self._waiting = self._waiting, deque()
        for answered in waiting:
            answered(None)

    def _give_up(self, answered: Answered) -> None:
        if any(one is answered for one in self._waiting):
            self.close()
