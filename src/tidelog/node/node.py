"""One node, with its broker and its controller, as one synchronous object.

While the node runs, the host passes every event to `handle(event, now)` and carries out the
returned effects. `next_deadline()` returns the time at which the host must pass a `Ticked` event.
The node reads no clock and opens no socket, so production and the simulator run the same code.
"""

import logging
from collections.abc import Callable, Sequence
from typing import assert_never

from tidelog.api.listeners import ListenerKind, listener_kind
from tidelog.api.registry import served
from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import ClusterImage
from tidelog.model.dice import Dice
from tidelog.model.disk import Disk
from tidelog.model.events import (
    Connected,
    ConnectFailed,
    Disconnected,
    Event,
    FrameReceived,
    PeerConnected,
    Ran,
    ResponsesUnread,
    Ticked,
    WallClockMoved,
)
from tidelog.model.ids import ConnId, LeaderEpoch, Millis, NodeId, TopicId
from tidelog.model.metrics import Metric
from tidelog.model.outbound import Outbound, Stop
from tidelog.node.assembly import build_node
from tidelog.node.basics import NodePorts
from tidelog.node.clock import STEP_MS
from tidelog.node.events import metrics
from tidelog.node.metadata.metadata_log import UnusableMetadata
from tidelog.node.requests.client_sessions import ClientSession
from tidelog.node.storage.failed_directories import failed_part, reason_of
from tidelog.node.storage.opening import NotFormatted
from tidelog.replication.quorum.events import ShutdownBegun

SHUTDOWN_PATIENCE_MS: Millis = 2_000
"""The maximum time that a controlled shutdown waits for the controller's answer."""
RESIGNATION_MS: Millis = 20

__all__ = ["Node", "NotFormatted", "UnusableMetadata"]

log = logging.getLogger(__name__)


class Node:
    """A node with the role of a broker, of a controller, or of both.

    `disks` has one entry per directory of log.dirs, in the same order. An entry is None if its
    directory cannot be used. `start` must be called before the first event.
    """

    def __init__(
        self, settings: BrokerSettings, disks: Sequence[Disk | None], dice: Dice, now: Millis
    ) -> None:
        self._settings = settings
        self._outbound: list[Outbound] = []
        self._sessions: dict[ConnId, ClientSession] = {}
        self._is_stopping = False
        self._has_resigned = False
        # This is the list's own method, because every response calls it.
        self._emit: Callable[[Outbound], None] = self._outbound.append
        ports = NodePorts(self._emit, self._fail, self._hold, self)
        parts = build_node(settings, disks, dice, now, ports)
        self._clock = parts.basics.clock
        self._timers = parts.basics.clock.timers
        self.next_deadline = parts.basics.clock.timers.next_deadline
        """Returns the time at which the host must pass a `Ticked` event; None for never."""
        self._ready = parts.basics.ready
        self._jobs = parts.basics.jobs
        self._peers = parts.basics.peers
        self._storage = parts.basics.storage
        self._metadata_log = parts.metadata_log
        self._quorum = parts.quorum
        self._voter_changes = parts.voter_changes
        self._current = parts.basics.current
        self._context = parts.context
        self._events = parts.events
        self._active_controller = parts.active_controller
        self._broker = parts.broker
        self._requests = parts.requests
        self._authentication = parts.authentication
        self.in_work = parts.slices.in_work
        self._begin_no_more = parts.slices.begin_no_more

    @property
    def is_ready(self) -> bool:
        """Whether the broker is unfenced; on a pure controller, whether a record is committed."""
        if self._is_stopping:
            return False
        if not self._settings.is_broker:
            return self._quorum.high_watermark > 0
        return self._broker.lifecycle.is_unfenced

    @property
    def image(self) -> ClusterImage:
        """The committed metadata that this node has applied."""
        return self._current.image

    @property
    def is_active_controller(self) -> bool:
        return self._quorum.is_active

    def metrics(self) -> list[Metric]:
        """The current values of this node's metrics."""
        counters = self._events.counters
        listeners = [listener.name for listener in self._settings.listeners]
        connections = (session.listener for session in self._sessions.values())
        found = [*metrics.of_requests(listeners, connections, counters)]
        if self._settings.is_broker:
            held, sessions = self._broker.partitions, len(self._context.fetch_sessions)
            offline, strays = len(held.offline), self._storage.strays
            found += metrics.of_broker(held, self.image, offline, strays, sessions, counters)
            found += self._broker.cleaner.metrics()
        if self._settings.is_controller:
            found += metrics.of_controller(self.image, self.is_active_controller, counters)
        return found

    # -- entry points ------------------------------------------------------------------------------

    def start(self) -> list[Outbound]:
        try:
            self._ready.run(self._start)
        except UnusableMetadata as failure:
            self._fail(str(failure))
        return self._take_outbound()

    def _start(self) -> None:
        self._quorum.start()
        if self._settings.is_broker:
            self._broker.past.is_whole = self._quorum.was_whole
            self._broker.start()

    def handle(self, event: Event, now: Millis) -> list[Outbound]:
        """Apply one event; the host carries out the returned effects in order."""
        self._clock.now = now
        try:
            if type(event) is Ticked:
                self._timers.fire(now, self._ready.run)
            else:
                self._ready.run(self._apply, event)
        except UnusableMetadata as failure:
            self._fail(str(failure))
        except OSError as failure:
            # Failures of partition logs are handled elsewhere, so this error comes from another
            # file.
            self._fail(f"{failed_part(failure)} has failed: {reason_of(failure)}")
        outbound = self._outbound[:]
        self._outbound.clear()
        return outbound

    def _apply(self, event: Event) -> None:
        match event:
            case FrameReceived() if event.conn < 0:
                self._peers.handle(event)
            case FrameReceived():
                session = self._sessions.get(event.conn)
                if session is not None and not session.is_closed:
                    if session.in_work:
                        self._broker.fetches.answer_follower_fetches(event.conn)
                    self._requests.received(session, event.frame)
            case Ran():
                self._jobs.ended(event)
            case WallClockMoved():
                self._wall_clock_moved(event.ahead_ms)
            case ResponsesUnread():
                self._begin_no_more(event.is_much)
            case Ticked():
                raise AssertionError("`handle` fires the timers")
            case Connected():
                kind = listener_kind(event.listener, self._settings)
                apis = served(kind, is_guarded=self._context.authorizer is not None)
                self._sessions[event.conn] = session = ClientSession(
                    event.conn,
                    event.peer,
                    event.listener,
                    apis,
                    self._emit,
                    is_controllers=kind is ListenerKind.CONTROLLER,
                )
                self._authentication.opened(session, event.subject)
            case Disconnected() if event.conn >= 0:
                session = self._sessions.pop(event.conn, None)
                if session is not None:
                    session.is_closed = True
                    self._broker.fetches.connection_lost(event.conn)
                    self._broker.offset_queries.connection_lost(event.conn)
                    ended = self._context.share_sessions.connection_lost(event.conn)
                    self._broker.share_fetches.connection_lost(event.conn, ended)
                    self._active_controller.connection_lost(event.conn)
                    self._authentication.closed(event.conn)
            case Disconnected() | PeerConnected() | ConnectFailed():
                self._peers.handle(event)
            case _:
                assert_never(event)

    def shutdown(self, now: Millis) -> list[Outbound]:
        """Move this node's leaderships to other brokers, close every log, then stop."""
        self._clock.now = now
        if not self._is_stopping:
            self._is_stopping = True
            self._timers.at(now + SHUTDOWN_PATIENCE_MS, self._resign)
            if self._settings.is_broker and self._settings.controlled_shutdown_enable:
                self._ready.run(self._broker.lifecycle.shut_down, self._resign)
            else:
                self._ready.run(self._resign)
        return self._take_outbound()

    def _resign(self) -> None:
        """Resign as leader of the quorum, and leave time to notify the other voters."""
        if self._has_resigned:
            return
        self._has_resigned = True
        was_leading = self._quorum.is_active
        self._quorum.step(ShutdownBegun())
        delay = RESIGNATION_MS if was_leading and self._quorum.has_peers else 0
        self._timers.at(self._clock.now + delay, lambda: self._events.drain(self._close))

    def stop_now(self, now: Millis) -> list[Outbound]:
        """Close every log and stop, without waiting for a controller or for the other nodes."""
        self._clock.now = now
        self._is_stopping = self._has_resigned = True
        self._ready.run(self._broker.close)
        self._emit(Stop(1, "shut down without moving its leaderships"))
        return self._take_outbound()

    def _close(self) -> None:
        self._broker.close()
        self._emit(Stop(0, "shut down"))

    # -- called by the quorum ----------------------------------------------------------------------

    def topic_removed(self, topic_id: TopicId, name: str) -> None:
        self._broker.topic_removed(topic_id, name)

    def leader_known(self, leader: NodeId, epoch: LeaderEpoch) -> None:
        log.info("follows node %d, which leads the quorum in epoch %d", leader, epoch)
        self._active_controller.predecessor = leader
        self._voter_changes.check_own_record()
        if self._settings.is_broker:
            self._broker.lifecycle.controller_changed()

    def leadership_taken(self, epoch: LeaderEpoch) -> None:
        log.info("leads the quorum in epoch %d", epoch)
        self._active_controller.activate()
        self._voter_changes.check_own_record()

    def leadership_lost(self) -> None:
        log.info("no longer leads the quorum")
        self._active_controller.deactivate()

    def voters_changed(self) -> None:
        self._voter_changes.check_own_record()

    # -- called by the parts -----------------------------------------------------------------------

    def _hold(self, conn: ConnId) -> Callable[[], None]:
        """Make the next requests of a connection wait; returns the function that ends the wait."""
        session = self._sessions.get(conn)
        if session is None:
            return lambda: None
        session.hold()
        return session.release

    def _wall_clock_moved(self, ahead_ms: Millis) -> None:
        by_ms = ahead_ms - self._clock.ahead_ms
        self._clock.wall_moved(ahead_ms)
        if abs(by_ms) > STEP_MS:
            way = "forward" if by_ms > 0 else "back"
            log.warning("the machine's clock was set %s by %.1f s", way, abs(by_ms) / 1000)

    def _fail(self, reason: str) -> None:
        self._is_stopping = True
        self._emit(Stop(1, reason))

    def _take_outbound(self) -> list[Outbound]:
        outbound = self._outbound[:]
        self._outbound.clear()
        return outbound
