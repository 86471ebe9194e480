"""The real host of a node: one thread with one epoll, which connects the node to its sockets.

A pass waits for events, passes received frames to the node, runs due timers and sends responses.

Invariants: in one pass, a connection gets one read and at most `FRAMES_PER_PASS` frames. Once the
pass has taken `SHARED_MS`, each remaining connection gets only one frame. A connection with slow
requests is served last, and so is the rest of a crowd (F97). For every connection, the node gets
`Connected` first and `Disconnected` last. The host passes events to the node one at a time.
"""

import logging
import select
from collections.abc import Callable, Iterator
from time import thread_time_ns
from typing import assert_never

from tidelog.model.events import (
    Connected,
    Event,
    FrameReceived,
    PeerConnected,
    Ticked,
    WallClockMoved,
)
from tidelog.model.ids import Millis
from tidelog.model.metrics import Metric
from tidelog.model.outbound import (
    Cancel,
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
from tidelog.protocol.foreign_protocols import AN_HTTP_REQUEST
from tidelog.protocol.framing import BadFrame
from tidelog.runtime.alarm import Alarm
from tidelog.runtime.clock import HostClock
from tidelog.runtime.freezes import SLOW_MS, STEP_MS, FreezeMeter
from tidelog.runtime.hosted import HostedNode
from tidelog.runtime.interrupts import Interrupts
from tidelog.runtime.jobs import JobThreads
from tidelog.runtime.transport.connection import SOCKET, Connection
from tidelog.runtime.transport.connections import BY_CLOSE, BY_NODE, FEW, Connections
from tidelog.runtime.transport.descriptors import DescriptorReserve
from tidelog.runtime.transport.gateway import Gateway
from tidelog.runtime.transport.limits import COSTLY_CPU_NS, COSTLY_MS, CROWD, Limits
from tidelog.runtime.transport.listeners import ListeningSocket
from tidelog.runtime.transport.tls import TlsTransport
from tidelog.runtime.transport.tls_contexts import NO_TLS, TlsContexts
from tidelog.runtime.transport.tls_session import TlsFailure
from tidelog.runtime.workers import Workers

LATE_MS: Millis = 200
FRAMES_PER_PASS = 64
EVENTS_PER_PASS = 256
SHARED_MS: Millis = 10
"""When a pass has taken this long, it handles one frame of each remaining connection."""
LAST_MS: Millis = 3
"""How long a pass handles slow connections, and then frames that it has read earlier."""
READING_THREADS = 4

log = logging.getLogger(__name__)


class Host:
    """Serves one node on its listeners until the node returns `Stop`."""

    def __init__(
        self,
        node: HostedNode,
        listeners: list[ListeningSocket],
        limits: Limits,
        clock: HostClock,
        reserve: DescriptorReserve | None = None,
        contexts: TlsContexts = NO_TLS,
        cpu_clock: Callable[[], int] = thread_time_ns,
    ) -> None:
        self._node = node
        self._limits = limits
        self._clock = clock
        self._now = clock()
        self._cpu_clock = cpu_clock
        self._meter = FreezeMeter(cpu_clock)
        self._is_crowded = False
        self._is_late = False
        self._epoll = select.epoll()
        self._alarm = Alarm()
        self._epoll.register(self._alarm.fileno(), select.EPOLLIN)
        self._jobs = JobThreads(self._alarm.ring, self._handle)
        self._readers = Workers(READING_THREADS, self._alarm.ring)
        self._reserve = reserve or DescriptorReserve()
        names = [listener.name for listener in listeners]
        self.connections = Connections(self._epoll, limits, names, self._readers, self._now)
        self._gateway = Gateway(
            self._epoll, listeners, limits, self.connections, self._reserve, contexts
        )
        self._reserve.wake_with(self._alarm.ring)
        self._interrupts = Interrupts(self._alarm.ring)
        self._status: int | None = None

    def interrupt(self) -> None:
        """Shut down. A second call only closes the logs, and a third call exits. Thread-safe."""
        self._interrupts.add()

    def begin_shutdown(self) -> None:
        """Call `interrupt`, unless a shutdown is already in progress. Thread-safe."""
        if not self._interrupts:
            self._interrupts.add()

    def run_soon(self, action: Callable[[], None]) -> None:
        """Call `action` in the loop's thread, between two events. Thread-safe."""
        self._readers.submit(lambda: None, lambda _: action())

    def alarm_fd(self) -> int:
        """The descriptor for `signal.set_wakeup_fd`."""
        return self._alarm.button_fd()

    def metrics(self) -> list[Metric]:
        """The loop's own metrics. Call it in the loop's thread."""
        return self._meter.metrics()

    def run(self, ready: Callable[[], None]) -> int:
        """Serve and return the exit status. Calls `ready` once, when the node accepts writes."""
        is_announced = False
        try:
            self._perform(self._node.start())
            self._now = self.connections.now = self._clock()
            while self._status is None:
                self._pass()
                if not is_announced and self._node.is_ready:
                    is_announced = True
                    self._gateway.node_is_ready()
                    ready()
        finally:
            self._close()
        return self._status

    # -- One pass ------------------------------------------------------------------------------

    def _pass(self) -> None:
        ready = self._epoll.poll(self._patience(), EVENTS_PER_PASS)
        meter = self._meter
        now = self._now = self.connections.now = self._clock()
        if now != meter.began:
            meter.begin(now)
        if (ahead_ms := self._clock.moved(now)) is not None:
            self._handle(WallClockMoved(ahead_ms))
        self._is_crowded = len(ready) > CROWD
        if len(ready) > FEW:
            self.connections.share_sending(len(ready))
        last: list[tuple[Connection, int]] = []
        for fd, mask in ready:
            conn = self.connections.by_fd.get(fd)
            if conn is not None:
                is_late = self._is_crowded and self._now - now >= SHARED_MS
                if is_late or conn.costly_until > now:
                    last.append((conn, mask))
                else:
                    self._serve(conn, mask)
            elif fd == self._alarm.fileno():
                self._answer_alarm()
                self._step_ended("the results of background work")
            else:
                self._open(self._gateway.serve(fd, now))
                self._step_ended("new connections")
        if last:
            self._serve_last(last)
        if self.connections.is_holding:
            self._resume_holding(self._now + LAST_MS)
        if self._gateway.ready:
            self._open(self._gateway.shake_hands(self._clock))
            self._step_ended("TLS handshakes")
        # After a long pass, read again before timers run, so no queued heartbeat is missed.
        self._is_late = self._now - now >= LATE_MS and not self._is_late
        if not self._is_late:
            self._keep_time()
        self._settle()
        self._step_ended("sending answers")
        if self._now - now >= SLOW_MS or meter.report_from_ms > STEP_MS:
            meter.end(self._now, len(ready))

    def _step_ended(self, step: str, conn: Connection | None = None) -> None:
        """Read the clock, and report the step to the meter if it took a long time."""
        now = self._clock()
        if now - self._now >= self._meter.report_from_ms:
            self._meter.blame(now - self._now, step, conn)
        self._now = self.connections.now = now

    def _patience(self) -> float:
        """How long to wait for input, in seconds."""
        if self.connections.is_holding or self._gateway.ready:
            return 0
        until = self.connections.check_at
        if self._gateway.due_at < until:
            until = self._gateway.due_at
        if (deadline := self._node.next_deadline()) is not None:
            until = min(until, deadline)
        return max(0, until - self._now) / 1000

    def _answer_alarm(self) -> None:
        self._alarm.quiet()
        self._reserve.free_for_waiters()
        self._jobs.finish()
        self._readers.finish()
        self._perform(self._interrupts.obey(self._node, self._now))

    def _keep_time(self) -> None:
        deadline = self._node.next_deadline()
        if deadline is not None and deadline <= self._now:
            self._handle(Ticked())
            self._step_ended(self._node.in_work() or "timers")
        if self._gateway.due_at <= self._now:
            self._gateway.keep_time(self._now)
        if self.connections.check_at <= self._now:
            self.connections.check()
            self._step_ended("closing idle connections")

    def _settle(self) -> None:
        """Send responses and report ended connections to the node, until nothing is left to do."""
        while True:
            self.connections.send_answers()
            if not self.connections.events and not self._gateway.failed:
                return
            events = self.connections.take_events()
            failed, self._gateway.failed = self._gateway.failed, []
            self._gateway.resume()
            for event in (*events, *failed):
                self._handle(event)
            self._step_ended("connections that ended")

    def _close(self) -> None:
        self._jobs.stop()
        self._readers.stop()
        self._gateway.close()
        self.connections.close()
        self._epoll.close()
        self._alarm.close()

    def _open(self, events: Iterator[Event]) -> None:
        """Report new connections to the node, and read what came with a handshake."""
        for event in events:
            self._handle(event)
            if isinstance(event, Connected | PeerConnected):
                conn = self.connections.find(event.conn)
                if conn is not None and isinstance(conn.transport, TlsTransport):
                    self._serve(conn, select.EPOLLIN)

    def _serve(self, conn: Connection, mask: int) -> None:
        if mask & select.EPOLLOUT and conn.waits_for == SOCKET:
            self.connections.send(conn)
            self._step_ended("sending answers to", conn)
            if conn not in self.connections:
                return
        if mask & select.EPOLLIN:
            if conn.muted or conn.held is not None:
                self.connections.watch(conn)
            else:
                self._read(conn)
        elif mask & ~select.EPOLLOUT:  # the peer hung up, or the connection broke
            self.connections.drop(conn)

    def _serve_last(self, ready: list[tuple[Connection, int]]) -> None:
        """For `LAST_MS`, serve connections with slow requests, starting with the longest idle."""
        until = self._now + LAST_MS
        for conn, mask in sorted(ready, key=lambda one: one[0].active_at):
            if self._now < until and conn in self.connections:
                self._serve(conn, mask)

    def _read(self, conn: Connection) -> None:
        try:
            frames = conn.transport.receive(conn, self.connections.shared)
        except BlockingIOError:
            return
        except OSError as error:
            if isinstance(error, TlsFailure):
                log.warning("%s: closed: %s", conn.peer, error)
            self.connections.drop(conn)
            return
        except BadFrame as bad:
            self._deliver(conn, bad.frames)
            hint = self._limits.http_hint if AN_HTTP_REQUEST in bad.reason else ""
            self.connections.end(conn, bad.reason + hint)
            return
        if frames is None:
            self.connections.end(conn, "")
            return
        if conn.splitter.filled != conn.half_received:
            self.connections.half_received(conn)
        if not frames:
            if conn.is_bulk:
                conn.active_at = self._now
            self._step_ended("receiving from", conn)
            return
        conn.active_at = self._now
        done = self._deliver(conn, frames)
        if done < len(frames) and not conn.muted & BY_CLOSE:
            self.connections.hold(conn, frames[done:])

    def _resume_holding(self, until: Millis) -> None:
        """Handle the held frames of as many connections as time allows."""
        holding = self.connections.take_resumable()
        for done, conn in enumerate(holding, start=1):
            self._resume(conn)
            if self._now >= until:
                self.connections.resume_first(holding[done:])
                return

    def _resume(self, conn: Connection) -> None:
        if conn.held is None or conn.muted:
            return  # the connection has changed since `take_resumable` returned it
        conn.held.drop(self._deliver(conn, conn.held.first(FRAMES_PER_PASS)))
        if conn.held:
            self.connections.hold_on(conn)
        elif conn in self.connections:
            self.connections.release(conn)
            self.connections.watch(conn)

    def _deliver(self, conn: Connection, frames: list[memoryview]) -> int:
        """Deliver as many frames as this pass allows for the connection; returns how many."""
        handle, perform, clock, meter = self._node.handle, self._perform, self._clock, self._meter
        done, is_slow = 0, False
        cpu_ns = self._cpu_clock() if self._is_crowded else None
        try:
            until = meter.began + SHARED_MS
            for frame in frames[:FRAMES_PER_PASS]:
                if conn.muted:
                    break
                done += 1
                perform(handle(FrameReceived(conn.id, frame), self._now))
                now = clock()
                if now - self._now >= COSTLY_MS:
                    is_slow = is_slow or meter.has_computed(COSTLY_MS)
                    if now - self._now >= meter.report_from_ms:
                        meter.blame_frame(now - self._now, conn, frame)
                self._now = now
                if now >= until:
                    break
            if cpu_ns is not None and self._cpu_clock() - cpu_ns >= done * COSTLY_CPU_NS:
                is_slow = True
            if is_slow or conn.was_slow:
                conn.served(self._now, is_slow=is_slow)
        except Exception:
            # A request has triggered a bug. Close its connection, and serve the other connections.
            log.exception("%s: a request could not be handled", conn.peer)
            self.connections.drop(conn)
            self._step_ended("a request that could not be handled, from", conn)
        return done

    def _handle(self, event: Event) -> None:
        self._perform(self._node.handle(event, self._now))

    def _perform(self, outbounds: list[Outbound]) -> None:
        for outbound in outbounds:
            match outbound:
                case Send():
                    self.connections.enqueue(outbound)
                case Run():
                    self._jobs.start(outbound)
                case Cancel():
                    self._jobs.cancel(outbound.token)
                case StopReading():
                    if (conn := self.connections.find(outbound.conn)) is not None:
                        conn.muted |= BY_NODE
                case StartReading():
                    if (conn := self.connections.find(outbound.conn)) is not None:
                        self.connections.unmute(conn, BY_NODE)
                case CloseConnection():
                    if (conn := self.connections.find(outbound.conn)) is not None:
                        self.connections.end(conn, outbound.reason)
                    else:
                        self._gateway.hang_up(outbound.conn)
                case RequestFailed():
                    self.connections.fail(outbound)
                case Connect():
                    self._gateway.dial(outbound)
                case LimitConnections():
                    self.connections.limit(outbound)
                    self._gateway.resume()
                case Stop():
                    log.log(logging.ERROR if outbound.status else logging.INFO, outbound.reason)
                    self._status = outbound.status
                case _:
                    assert_never(outbound)
