"""A connection of a simulated host."""

from collections import deque
from typing import TYPE_CHECKING

from tidelog.model.events import ConnectFailed, Disconnected, FrameReceived, PeerConnected
from tidelog.model.ids import ConnId
from tidelog.sim.machines.network import Side

if TYPE_CHECKING:
    from tidelog.sim.machines.host import SimHost


class HostConnection:
    """A connection, and the frames that arrived while the node had stopped reading it."""

    def __init__(self, host: "SimHost", id: ConnId, longest: int, side: Side | None = None) -> None:
        self.id = id
        self._longest = longest
        self.side = side
        self.is_connected = side is not None
        self.is_muted = False
        self._host = host
        self._held: deque[bytes] = deque()

    def connected(self, side: Side) -> None:
        self.is_connected = True
        self._host.when_running(lambda: self._host.tell(PeerConnected(self.id)))

    def connect_failed(self, was_refused: bool, reason: str) -> None:
        self._host.forget(self.id)
        event = ConnectFailed(self.id, was_refused, reason)
        self._host.when_running(lambda: self._host.tell(event))

    def received(self, frame: bytes) -> None:
        def read() -> None:
            self._held.append(frame)
            self._read()

        self._host.when_running(read)

    def lost(self) -> None:
        def read() -> None:
            if self._host.forget(self.id):
                self._host.tell(Disconnected(self.id))

        self._host.when_running(read)

    def send(self, frame: bytes) -> None:
        assert self.side is not None
        self.side.send(frame)

    def close(self) -> None:
        self.is_muted = True
        self._held.clear()
        if self.side is not None:
            self.side.close()

    def read_on(self) -> None:
        """Deliver frames again."""
        self.is_muted = False
        self._read()

    def _read(self) -> None:
        while self._held and not self.is_muted:
            frame = self._held.popleft()
            if len(frame) > self._longest:
                self._host.cut(self, f"a frame of {len(frame)} bytes")
                return
            self._host.tell(FrameReceived(self.id, memoryview(bytearray(frame))))
