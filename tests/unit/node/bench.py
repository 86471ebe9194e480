"""One real node on a simulated disk, with direct access to its events and effects."""

from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import count
from typing import Any, assert_never

from tests.sim.messages import answer_in, frame_of

from tidelog.log.checkpoints.checkpoints import MetaProperties, write_meta_properties
from tidelog.model.disk import FileSlice
from tidelog.model.events import Connected, Disconnected, Event, FrameReceived, Ran, Ticked
from tidelog.model.ids import ConnId, Millis
from tidelog.model.jobs import Work
from tidelog.model.outbound import (
    Cancel,
    CloseConnection,
    Connect,
    Outbound,
    RequestFailed,
    Run,
    Send,
    StartReading,
    Stop,
    StopReading,
)
from tidelog.node.node import Node
from tidelog.sim.machines.cluster import CLUSTER_ID, node_settings
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

START_MS = 1_700_000_000_000


def formatted(node_id: int = 1, cluster_id: str = CLUSTER_ID, seed: int = 2) -> SimDisk:
    """The formatted, empty log directory of a node."""
    disk = SimDisk()
    write_meta_properties(disk, MetaProperties(cluster_id, node_id, SeededDice(seed).uuid()))
    return disk


class Bench:
    """A node for tests; `settings` are Kafka's keys with underscores instead of dots.

    If `nodes` is above 1, the other nodes do not exist, so the node never becomes ready.
    """

    def __init__(
        self, nodes: int = 1, *disks: SimDisk | None, seed: int = 1, **settings: str
    ) -> None:
        overrides = {key.replace("_", "."): value for key, value in settings.items()}
        self.settings = node_settings(1, nodes, overrides)
        self.dice = SeededDice(seed)
        self.now: Millis = START_MS
        given = list(disks) or [formatted()]
        self.disks = [disk for disk in given if disk is not None]
        self.disk = self.disks[0]
        self.outbound: list[Outbound] = []
        """All effects of the node, in order."""
        self.sent: dict[ConnId, deque[bytes]] = defaultdict(deque)
        """Answers that no test has read yet, each without its length."""
        self.closed: dict[ConnId, str] = {}
        self.flushes: deque[Run] = deque()
        self.jobs: deque[Run] = deque()
        """Pending jobs other than fsync."""
        self.connects: deque[Connect] = deque()
        self.stopped: Stop | None = None
        self._conns = count(1)
        self._correlation_ids = count(1)
        self.node = Node(self.settings, given, self.dice, self.now)
        self._take(self.node.start())
        if nodes == 1 and self.stopped is None:
            self.settle()
            assert self.node.is_ready

    # -- events for the node -----------------------------------------------------------------------

    def tell(self, event: Event) -> list[Outbound]:
        return self._take(self.node.handle(event, self.now))

    def connect(self, listener: str = "PLAINTEXT") -> ConnId:
        conn = next(self._conns)
        self.tell(Connected(conn, "10.0.0.1:40000", listener))
        return conn

    def disconnect(self, conn: ConnId) -> None:
        self.tell(Disconnected(conn))

    def send(self, conn: ConnId, message: Any, version: int | None = None) -> list[Outbound]:
        return self.send_frame(conn, frame_of(message, next(self._correlation_ids), version)[4:])

    def send_frame(self, conn: ConnId, frame: bytes) -> list[Outbound]:
        """Send a frame without its length, then overwrite the buffer, which a host may reuse."""
        buffer = bytearray(frame)
        outbound = self.tell(FrameReceived(conn, memoryview(buffer)))
        buffer[:] = b"\xee" * len(buffer)
        return outbound

    def flush(self) -> None:
        """Complete every fsync in progress."""
        while self.flushes:
            self.end_one_flush()

    def end_one_flush(self) -> None:
        self._run(self.flushes.popleft())

    def fail_flush(self, error: str) -> None:
        self.tell(Ran(self.flushes.popleft().token, None, OSError(error)))

    def run_jobs(self) -> None:
        """Complete every job except fsync."""
        while self.jobs:
            self._run(self.jobs.popleft())

    def _run(self, run: Run) -> None:
        steps = run.job.run()
        while True:
            try:
                next(steps)
            except StopIteration as done:
                self.tell(Ran(run.token, done.value, None))
                return
            except OSError as failure:
                self.tell(Ran(run.token, None, failure))
                return

    def pass_time(self, duration: Millis) -> None:
        """Let time pass, and tick at every deadline."""
        end = self.now + duration
        while (deadline := self.node.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.tell(Ticked())
        self.now = end

    def settle(self) -> None:
        """Run flushes and jobs, and let 200 ms pass."""
        for _ in range(20):
            self.flush()
            self.run_jobs()
            self.pass_time(10)

    def shutdown(self) -> None:
        self._take(self.node.shutdown(self.now))

    # -- answers of the node -----------------------------------------------------------------------

    def answer(self, conn: ConnId, message: Any, version: int | None = None) -> Any:
        """The oldest unread answer, decoded as a response to `message`; None if there is none."""
        if not self.sent[conn]:
            return None
        return answer_in(self.sent[conn].popleft(), message, version)

    def ask(self, message: Any, conn: ConnId | None = None, version: int | None = None) -> Any:
        """Send a request, let the node work on it, and return the answer."""
        conn = self.connect() if conn is None else conn
        self.send(conn, message, version)
        if not self.sent[conn]:
            self.settle()
        return self.answer(conn, message, version)

    def _take(self, outbound: list[Outbound]) -> list[Outbound]:
        self.outbound += outbound
        for effect in outbound:
            match effect:
                case Send():
                    self.sent[effect.conn].append(_unframed(_bytes_of(effect.chunks)))
                case CloseConnection():
                    self.closed[effect.conn] = effect.reason
                case RequestFailed():
                    raise effect.error
                case Run():
                    is_flush = effect.job.work is Work.FLUSH
                    (self.flushes if is_flush else self.jobs).append(effect)
                case Cancel():
                    self.jobs = deque(run for run in self.jobs if run.token != effect.token)
                case Connect():
                    self.connects.append(effect)
                case Stop():
                    self.stopped = effect
                case StopReading() | StartReading():
                    pass
                case _:
                    assert_never(effect)
        return outbound


def _bytes_of(chunks: Iterable[Any]) -> bytes:
    return b"".join(
        chunk.file.read(chunk.position, chunk.length) if isinstance(chunk, FileSlice) else chunk
        for chunk in chunks
    )


def _unframed(frame: bytes) -> bytes:
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4, "a frame lies of its length"
    return frame[4:]
