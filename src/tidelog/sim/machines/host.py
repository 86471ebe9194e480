"""A simulated machine: the real Node on a simulated disk and a simulated network.

When the process ends, the host drops the Node object. At a power loss, the disk may also lose
unsynced data. A restart creates a new Node on the same disk. The node does not know that it is
simulated.
"""

from collections.abc import Callable
from itertools import count
from typing import assert_never
from zlib import crc32

from tidelog.config.settings import BrokerSettings
from tidelog.log.checkpoints.checkpoints import MetaProperties, write_meta_properties
from tidelog.model.disk import FileSlice
from tidelog.model.events import (
    Connected,
    Event,
    FrameReceived,
    Ran,
    Ticked,
    WallClockMoved,
)
from tidelog.model.ids import ConnId, Millis, NodeId
from tidelog.model.jobs import Work
from tidelog.model.outbound import (
    Cancel,
    Chunk,
    CloseConnection,
    Connect,
    LimitConnections,
    Outbound,
    RequestFailed,
    Run,
    Send,
    StartReading,
    Stop,
    StopReading,
)
from tidelog.node.node import Node, UnusableMetadata
from tidelog.sim.machines.clock import DriftingClock
from tidelog.sim.machines.disk import SimDisk
from tidelog.sim.machines.host_connection import HostConnection
from tidelog.sim.machines.jobs import SimJobs
from tidelog.sim.machines.network import Address, Party, Side, SimNetwork


class SimHost:
    def __init__(self, network: SimNetwork, settings: BrokerSettings, cluster_id: str) -> None:
        self.network = network
        self.world = network.world
        self.settings = settings
        self.cluster_id = cluster_id
        self.name = settings.listeners[0].host
        self.node: Node | None = None
        self.exit: Stop | None = None
        """The exit status and reason of the last process; None if it still runs or was killed."""
        self.is_paused = False
        self.clock = DriftingClock(self.world)
        self.handle: Callable[[Node, Event, Millis], list[Outbound]] = Node.handle
        """The function that passes an event to the node. A meter may replace this function."""
        self.told: Callable[[SimHost], None] = _nobody_listens
        """The callback after every event of the node, and after the node starts or ends."""
        self.wall_ahead_ms: Millis = 0
        """By how much the machine's clock was set ahead after its process started."""
        self._dice = self.world.dice.fork(self.name)
        self.runs = 0
        """The number of starts."""
        self._conn_ids = count(1)
        self._conns: dict[ConnId, HostConnection] = {}
        self.jobs = SimJobs(self.world, self._dice, self.when_running, self.tell)
        self._slow_sync_in = 0
        """The number of the last run in which an fsync or a read started on a faulty disk."""
        self._alarm: Millis | None = None
        self._missed: list[Callable[[], None]] = []
        self.wipe()

    @property
    def id(self) -> NodeId:
        return self.settings.node_id

    @property
    def is_up(self) -> bool:
        return self.node is not None

    @property
    def has_bad_disk(self) -> bool:
        """Whether the disk has a fault, or had one while this process used it."""
        return self.disk.faults.is_any or self._slow_sync_in == self.runs

    def address(self, listener: str = "PLAINTEXT") -> Address:
        return next((one.host, one.port) for one in self.settings.listeners if one.name == listener)

    # -- start and end -----------------------------------------------------------------------------

    def wipe(self) -> None:
        """Replace the disk with a new, formatted disk."""
        assert self.node is None
        self.disk = SimDisk()
        meta = MetaProperties(self.cluster_id, self.id, self._dice.uuid())
        write_meta_properties(self.disk, meta)

    def start(self) -> None:
        assert self.node is None
        self.runs += 1
        self.exit = None
        # A process reads the machine's clock when it starts.
        self.clock.skew(self.wall_ahead_ms)
        self.wall_ahead_ms = 0
        self._note("starts")
        self.disk.only_cached = False
        self.disk.evict(self._dice.fork(f"page cache of run {self.runs}"))
        self.network.regain_power(self.name)
        for listener in self.settings.listeners:
            self._listen(listener.name, (listener.host, listener.port))
        dice = self._dice.fork(f"run {self.runs}")
        try:
            self.node = Node(self.settings, [self.disk], dice, self.clock.now)
            self._carry_out(self.node.start())
        except (OSError, UnusableMetadata) as failure:
            self._die(failure)
        self.told(self)

    def kill(self) -> None:
        """kill -9. The process ends, its writes stay in the page cache, its connections close."""
        self._note("is killed")
        self._end_process()
        self.told(self)

    def lose_power(self) -> None:
        """Lose power. Unsynced data may be lost or torn, and peers do not see connections close."""
        self._note("loses power")
        self.network.lose_power(self.name)
        self._end_process()
        self.disk.crash(self._dice)
        self.told(self)

    def shutdown(self) -> None:
        """Request a controlled shutdown; it is complete when `is_up` is False."""
        assert self.node is not None
        try:
            self._carry_out(self.node.shutdown(self.clock.now))
        except OSError as failure:
            self._die(failure)
        self.told(self)

    def stop_now(self) -> None:
        """Request an immediate stop. The node closes its logs, and the process ends."""
        if self.node is not None:
            self._carry_out(self.node.stop_now(self.clock.now))
            self.told(self)

    def pause(self) -> None:
        """SIGSTOP. The machine accepts connections and bytes, but the process handles none."""
        self._note("is paused")
        self.is_paused = True

    def resume(self) -> None:
        """SIGCONT. The process handles everything that was received meanwhile, and then timers."""
        self._note("goes on")
        self.is_paused = False
        missed, self._missed = self._missed, []
        for news in missed:
            news()
        self._set_alarm()

    def when_running(self, news: Callable[[], None]) -> None:
        """Call `news` now or, if the process is paused, when it resumes."""
        if self.is_paused:
            self._missed.append(news)
        else:
            news()

    def drift(self, per_mille: int) -> None:
        """Change the rate of the machine's clock."""
        self._note(f"drifts by {per_mille}")
        self.clock.drift(per_mille)
        self._alarm = None
        if not self.is_paused:
            self._set_alarm()

    def set_clock(self, by_ms: Millis) -> None:
        """Set the machine's clock forward or back."""
        self._note(f"sets its clock by {by_ms}")
        self.wall_ahead_ms += by_ms
        self.when_running(lambda: self.tell(WallClockMoved(self.wall_ahead_ms)))

    def _die(self, failure: Exception) -> None:
        """End the process after an unexpected error, as a real process would end."""
        self._note(f"dies: {failure}")
        self._end_process()
        self.exit = Stop(1, str(failure))

    def _end_process(self) -> None:
        self.node = None
        self.is_paused = False
        self._alarm = None
        self._missed.clear()
        self.jobs.end()
        self.network.stop_listening(self.name)
        conns, self._conns = self._conns, {}
        for conn in conns.values():
            conn.close()

    # -- called by the network ---------------------------------------------------------------------

    def _listen(self, listener: str, address: Address) -> None:
        def accept(side: Side, source: str) -> Party:
            longest = self.settings.socket_request_max_bytes
            conn = HostConnection(self, next(self._conn_ids), longest, side)
            self._conns[conn.id] = conn
            peer = f"{source}:{40_000 + conn.id}"
            self.when_running(lambda: self.tell(Connected(conn.id, peer, listener)))
            return conn

        self.network.listen(address, accept)

    def cut(self, conn: HostConnection, reason: str) -> None:
        """Close a connection that received an unreadable frame."""
        self._note(f"closes {conn.id}: {reason}")
        conn.close()
        self._soon(conn.lost)

    def forget(self, conn: ConnId) -> bool:
        """Remove the connection; returns whether it was known."""
        return self._conns.pop(conn, None) is not None

    # -- events and effects of the node ------------------------------------------------------------

    def tell(self, event: Event) -> None:
        if self.node is not None:
            self._note(_described(event))
            try:
                self._carry_out(self.handle(self.node, event, self.clock.now))
            except OSError as failure:
                self._die(failure)
            self.told(self)

    def _carry_out(self, outbound: list[Outbound]) -> None:
        for effect in outbound:
            match effect:
                case Send():
                    self._send(effect)
                case Run():
                    self._run(effect)
                case Cancel():
                    self.jobs.cancel(effect.token)
                case CloseConnection():
                    self._close(effect)
                case RequestFailed():
                    raise effect.error
                case StopReading():
                    if (conn := self._conns.get(effect.conn)) is not None:
                        conn.is_muted = True
                case StartReading():
                    if (conn := self._conns.get(effect.conn)) is not None:
                        self._soon(conn.read_on)
                case Connect():
                    self._connect(effect)
                case LimitConnections():
                    self._note(f"limits connections to {effect.total}")
                case Stop():
                    self._note(f"stops: {effect.reason}")
                    self._end_process()
                    self.exit = effect
                    return
                case _:
                    assert_never(effect)
        self._set_alarm()

    def _send(self, send: Send) -> None:
        conn = self._conns.get(send.conn)
        if conn is not None:
            frame = b"".join(map(_bytes_of, send.chunks))
            assert int.from_bytes(frame[:4], "big") == len(frame) - 4, "wrong frame length"
            self._note(f"sends {send.conn} {len(frame)} {crc32(frame)}")
            conn.send(frame[4:])

    def _connect(self, wish: Connect) -> None:
        assert wish.conn < 0, "connections that a node opens have negative ids"
        assert wish.conn not in self._conns, "duplicate connection id"
        conn = HostConnection(self, wish.conn, wish.answer_bytes)
        self._conns[wish.conn] = conn
        conn.side = self.network.connect(self.name, (wish.host, wish.port), conn)

    def _close(self, close: CloseConnection) -> None:
        conn = self._conns.get(close.conn)
        if conn is not None:
            self._note(f"closes {close.conn}: {close.reason}")
            conn.close()
            if conn.is_connected:
                self._soon(conn.lost)
            else:
                self.forget(conn.id)

    def _run(self, run: Run) -> None:
        """Start a job. It does its work at a random time, and the node gets the result later."""
        slower_by = 0
        if run.job.work in (Work.FLUSH, Work.READ):
            slower_by = self.disk.faults.sync_ms
            if self.disk.faults.is_any:
                self._slow_sync_in = self.runs
        self.jobs.start(run, slower_by)

    def _set_alarm(self) -> None:
        deadline = self.node.next_deadline() if self.node is not None else None
        if deadline is None or (self._alarm is not None and self._alarm <= deadline):
            return
        self._alarm = deadline
        runs = self.runs

        def ring() -> None:
            if self.runs == runs and self._alarm == deadline:
                self._alarm = None
                if not self.is_paused:
                    self._ring()

        self.world.after(self.clock.until(deadline), ring)

    def _ring(self) -> None:
        """Send `Ticked` to the node, unless its deadline was cancelled or moved meanwhile."""
        deadline = self.node.next_deadline() if self.node is not None else None
        if deadline is not None and deadline <= self.clock.now:
            self.tell(Ticked())
        else:
            self._set_alarm()

    def _soon(self, action: Callable[[], None]) -> None:
        """Call `action` as a separate event, if the same process is still running at that time."""
        runs = self.runs

        def act() -> None:
            if self.runs == runs:
                self.when_running(action)

        self.world.after(0, act)

    def _note(self, what: str) -> None:
        self.world.note(f"{self.name} {what}")


def _nobody_listens(host: SimHost) -> None:
    """The default callback of a host without a checker."""


def _described(event: Event) -> str:
    if isinstance(event, FrameReceived):
        return f"hears {event.conn} {len(event.frame)} {crc32(event.frame)}"
    if isinstance(event, Ran):
        return f"hears of job {event.token}: {event.error}"
    return f"hears {event}"


def _bytes_of(chunk: Chunk) -> bytes:
    if isinstance(chunk, FileSlice):
        return chunk.file.read(chunk.position, chunk.length)
    return bytes(chunk)
