"""A simulated machine: the real Node on a simulated disk, its bytes carried by a simulated network.

A crash drops the Node object and what the disk had not synced; a restart is a new Node on the same
disk. Nothing in the node knows where it runs.
"""

from collections.abc import Callable
from itertools import count
from typing import assert_never

from tidelog.controller.settings import BrokerSettings
from tidelog.log.checkpoints import MetaProperties, write_meta_properties
from tidelog.model.disk import FileSlice
from tidelog.model.events import Connected, Disconnected, Event, Flushed, FrameReceived, Ticked
from tidelog.model.ids import ConnId, Millis
from tidelog.model.outbound import (
    Chunk,
    CloseConnection,
    Connect,
    Flush,
    Outbound,
    Send,
    StartReading,
    Stop,
    StopReading,
)
from tidelog.node.node import Node
from tidelog.sim.disk import SimDisk
from tidelog.sim.world import World

NETWORK_DELAY_MS = 3
FSYNC_MS = 8


class SimHost:
    def __init__(self, world: World, settings: BrokerSettings, cluster_id: str) -> None:
        self.world = world
        self.settings = settings
        self.disk = SimDisk()
        self.node: Node | None = None
        self._incarnation = 0
        self._conns = count(1)
        self._clients: dict[ConnId, SimConnection] = {}
        self._alarm: Millis | None = None
        directory = world.dice.uuid()
        write_meta_properties(self.disk, MetaProperties(cluster_id, settings.node_id, directory))

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> None:
        assert self.node is None
        self._incarnation += 1
        self.world.note(f"node {self.settings.node_id} starts")
        self.node = Node(self.settings, [self.disk], self.world.dice, self.world.now)
        self._carry_out(self.node.start())

    def crash(self, *, power_loss: bool) -> None:
        """kill -9, or the plug pulled: then what was not synced may be lost or torn."""
        self.world.note(f"node {self.settings.node_id} crashes, power loss {power_loss}")
        self.node = None
        self._alarm = None
        if power_loss:
            self.disk.crash(self.world.dice)
        for client in list(self._clients.values()):
            client.lost()
        self._clients.clear()

    def shutdown(self) -> None:
        assert self.node is not None
        self._carry_out(self.node.shutdown(self.world.now))

    # -- network -----------------------------------------------------------------------------------

    def connect(self, listener: str) -> "SimConnection":
        client = SimConnection(self, next(self._conns))
        self._clients[client.conn] = client
        self._event(Connected(client.conn, f"10.0.0.{client.conn % 250}:40000", listener))
        return client

    def deliver(self, client: "SimConnection", frame: bytes) -> None:
        """A request frame is on its way; it arrives after a delay, if anyone is there."""
        incarnation = self._incarnation

        def arrive() -> None:
            if self._incarnation == incarnation and client.conn in self._clients:
                self._event(FrameReceived(client.conn, memoryview(bytearray(frame))))

        self.world.after(self._delay(), arrive)

    def _delay(self) -> Millis:
        return 1 + self.world.dice.below(NETWORK_DELAY_MS)

    # -- the node's contract -----------------------------------------------------------------------

    def _event(self, event: Event) -> None:
        if self.node is not None:
            self.world.note(f"node {self.settings.node_id} {type(event).__name__}")
            self._carry_out(self.node.handle(event, self.world.now))

    def _carry_out(self, outbound: list[Outbound]) -> None:
        for effect in outbound:
            match effect:
                case Send():
                    self._send(effect.conn, b"".join(map(_bytes_of, effect.chunks)))
                case Flush():
                    self._flush(effect)
                case CloseConnection():
                    self._close(effect.conn, effect.reason)
                case StopReading() | StartReading():
                    pass  # a simulated client has few requests in work
                case Connect():
                    raise AssertionError("a node alone has nobody to connect to")
                case Stop():
                    self.world.note(f"node {self.settings.node_id} stops: {effect.reason}")
                    self.node = None
                case _:
                    assert_never(effect)
        self._set_alarm()

    def _send(self, conn: ConnId, frame: bytes) -> None:
        client = self._clients.get(conn)
        if client is not None:
            self.world.note(f"node {self.settings.node_id} sends {len(frame)} bytes")
            self.world.after(self._delay(), lambda: client.received(frame[4:]))

    def _flush(self, flush: Flush) -> None:
        incarnation = self._incarnation

        def synced() -> None:
            if self._incarnation != incarnation or self.node is None:
                return
            error = None
            try:
                for file in flush.files:
                    file.sync()
            except OSError as failure:
                error = str(failure)
            self._event(Flushed(flush.token, error))

        self.world.after(1 + self.world.dice.below(FSYNC_MS), synced)

    def _close(self, conn: ConnId, reason: str) -> None:
        client = self._clients.pop(conn, None)
        if client is not None:
            self.world.note(f"node {self.settings.node_id} closes a connection: {reason}")
            client.lost()
            self._event(Disconnected(conn))

    def _set_alarm(self) -> None:
        deadline = self.node.next_deadline() if self.node is not None else None
        if deadline is None or (self._alarm is not None and self._alarm <= deadline):
            return
        self._alarm = deadline
        incarnation = self._incarnation

        def ring() -> None:
            if self._incarnation == incarnation and self._alarm == deadline:
                self._alarm = None
                self._event(Ticked())

        self.world.after(max(0, deadline - self.world.now), ring)


class SimConnection:
    """The client's end of a connection: request frames out, answers back in order."""

    def __init__(self, host: SimHost, conn: ConnId) -> None:
        self.conn = conn
        self.is_lost = False
        self._host = host
        self._waiting: list[Callable[[bytes | None], None]] = []

    def request(self, frame: bytes, answered: Callable[[bytes | None], None]) -> None:
        """Send a frame (with its length); `answered` gets the answer's, None if it is lost."""
        if self.is_lost:
            answered(None)
            return
        self._waiting.append(answered)
        self._host.deliver(self, frame[4:])

    def received(self, frame: bytes) -> None:
        if not self.is_lost:
            self._waiting.pop(0)(frame)

    def lost(self) -> None:
        self.is_lost = True
        waiting, self._waiting = self._waiting, []
        for answered in waiting:
            answered(None)


def _bytes_of(chunk: Chunk) -> bytes:
    if isinstance(chunk, FileSlice):
        return chunk.file.read(chunk.position, chunk.length)
    return bytes(chunk)
