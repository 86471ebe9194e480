"""One node, broker and controller, as one synchronous object: events in, outbound out.

`handle(event, now)` is the only way in while it runs, `next_deadline()` says when it wants to be
ticked. It reads no clock and touches no socket: production and the simulator run this same code.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, assert_never

from tidelog.api.handler import Request
from tidelog.api.listeners import ListenerKind, kind_of, listener_kind
from tidelog.api.registry import served
from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import ClusterImage
from tidelog.model.dice import Dice
from tidelog.model.disk import Disk
from tidelog.model.effects import ChangeMetadata
from tidelog.model.events import (
    Connected,
    ConnectFailed,
    Disconnected,
    Event,
    FrameReceived,
    PeerConnected,
    Ran,
    Ticked,
    WallClockMoved,
)
from tidelog.model.ids import METADATA_TOPIC_ID, ConnId, LeaderEpoch, Millis, NodeId, TopicId
from tidelog.model.metrics import Metric
from tidelog.model.outbound import Outbound, Stop
from tidelog.node.broker import Broker
from tidelog.node.clock import STEP_MS, Clock
from tidelog.node.controller.active_controller import ActiveController
from tidelog.node.controller.client import ControllerClient
from tidelog.node.controller.registration import ControllerRegistration
from tidelog.node.events import metrics
from tidelog.node.events.replication_events import ReplicationEvents
from tidelog.node.jobs import Jobs
from tidelog.node.metadata.metadata_log import UnusableMetadata
from tidelog.node.metadata.metadata_opening import METADATA_PARTITION, open_metadata
from tidelog.node.peers import Peers
from tidelog.node.quorum.opening import QuorumSurroundings, open_quorum
from tidelog.node.quorum.quorum import Quorum
from tidelog.node.quorum.voter_changes import Myself, VoterChanges
from tidelog.node.requests.connection_limiting import ConnectionLimiting
from tidelog.node.requests.context import RequestContext
from tidelog.node.requests.executors import executors
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.requests.requests import Requests
from tidelog.node.requests.sessions import ClientSession
from tidelog.node.requests.slices import Slices
from tidelog.node.storage.failed_directories import at_fault, told
from tidelog.node.storage.opening import (
    NotFormatted,
    OpenedDirectory,
    home,
    metadata_log_config,
    myself,
    open_directories,
    quorum_timeouts,
)
from tidelog.node.storage.storage import Storage
from tidelog.node.timers import Timers
from tidelog.replication.quorum.events import ShutdownBegun

SHUTDOWN_PATIENCE_MS: Millis = 2_000
"""How long a controlled shutdown may wait for a controller."""
RESIGNATION_MS: Millis = 20

__all__ = ["Node", "NotFormatted", "UnusableMetadata"]

log = logging.getLogger(__name__)


class Node:
    """Broker, controller or both.

    `disks` are the log directories in the order of log.dirs, None where one cannot be used; `start`
    comes before the first event.
    """

    _broker: Broker

    def __init__(
        self, settings: BrokerSettings, disks: Sequence[Disk | None], dice: Dice, now: Millis
    ) -> None:
        directories = open_directories(disks, settings, dice)
        self._settings = settings
        self._dice = dice
        self._clock = Clock(now)
        self._timers = Timers()
        self._outbound: list[Outbound] = []
        self._sessions: dict[ConnId, ClientSession] = {}
        self._connection_limiting = ConnectionLimiting(settings, self._emit)
        self._is_stopping = False
        self._has_resigned = False
        self._storage = Storage(
            directories,
            lambda place, failure: self._broker.failed_directories.directory_failed(place, failure),
        )
        self._jobs = Jobs(self._emit, self._clock, self._timers)
        self._peers = Peers(self._clock, self._timers, self._emit)
        place = home(settings)
        disk, own = disks[place], directories[place]
        assert disk is not None
        assert own is not None
        self._quorum = self._open_quorum(disk, own)
        self._context = RequestContext(settings, self._clock, dice, self._quorum)
        self._assemble_controller()
        self._broker = Broker(
            settings,
            dice,
            self._clock,
            self._timers,
            self._storage,
            self._jobs,
            self._hold,
            self._peers,
            self._controller.submit,
            own.meta.cluster_id,
            self._fail,
            self._events,
        )
        slices = Slices(self._clock, self._timers)
        self.in_work = slices.in_work
        self._requests = Requests(
            self._context,
            executors(self._broker, self._quorum, self._jobs, slices, self._change_metadata),
            self._events.counters,
            slices,
        )

    def _assemble_controller(self) -> None:
        """What decides here, and the way to whoever decides elsewhere."""
        settings = self._settings
        self._events = ReplicationEvents(
            settings,
            self._clock,
            self._timers,
            self._peers,
            lambda: self._context.image,
            self._submit,
        )
        self._controlling = ActiveController(
            self._quorum,
            self._voter_changes,
            settings,
            self._dice,
            self._clock,
            self._timers,
            self._peers,
            self._events,
        )
        self._controller = ControllerClient(
            self._quorum,
            self._controlling,
            self._peers,
            self._clock,
            self._timers,
            settings.request_timeout_ms,
        )
        self._registration = ControllerRegistration(
            settings,
            self._dice.uuid(),
            lambda message, resume: self._controller.submit(message, resume),
        )

    @property
    def is_ready(self) -> bool:
        """Whether it takes writes, or, for a controller alone, whether there is a quorum."""
        if self._is_stopping:
            return False
        if not self._settings.is_broker:
            return self._quorum.high_watermark > 0
        return self._broker.lifecycle.is_unfenced

    @property
    def image(self) -> ClusterImage:
        """The committed metadata as this node knows it."""
        return self._context.image

    @property
    def is_active_controller(self) -> bool:
        return self._quorum.is_active

    def metrics(self) -> list[Metric]:
        """What this node says of itself, as of now."""
        counters = self._events.counters
        listeners = [listener.name for listener in self._settings.listeners]
        connections = (session.listener for session in self._sessions.values())
        told = [*metrics.of_requests(listeners, connections, counters)]
        if self._settings.is_broker:
            held, sessions = self._broker.partitions, len(self._context.fetch_sessions)
            offline, strays = len(held.offline), self._storage.strays
            told += metrics.of_broker(held, self.image, offline, strays, sessions, counters)
        if self._settings.is_controller:
            told += metrics.of_controller(self.image, self.is_active_controller, counters)
        return told

    # -- the only ways in --------------------------------------------------------------------------

    def start(self) -> list[Outbound]:
        try:
            self._quorum.start()
        except UnusableMetadata as failure:
            self._fail(str(failure))
            return self._take_outbound()
        if self._settings.is_broker:
            self._broker.past.is_whole = self._quorum.was_whole
            self._broker.start()
        return self._take_outbound()

    def handle(self, event: Event, now: Millis) -> list[Outbound]:
        """Apply one event; what is returned is carried out in order."""
        self._clock.now = now
        try:
            self._apply(event)
        except UnusableMetadata as failure:
            self._fail(str(failure))
        except OSError as failure:
            # What fails in a partition's log is dealt with there.
            self._fail(f"{at_fault(failure)} has failed: {told(failure)}")
        return self._take_outbound()

    def _apply(self, event: Event) -> None:
        match event:
            case FrameReceived() if event.conn >= 0:
                session = self._sessions.get(event.conn)
                if session is not None and not session.is_closed:
                    if session.is_busy:
                        self._broker.partitions.hurry(event.conn)
                    self._requests.received(session, event.frame)
            case Ran():
                self._jobs.ended(event)
            case WallClockMoved():
                self._wall_clock_moved(event.ahead_ms)
            case Ticked():
                self._timers.fire(self._clock.now)
            case Connected():
                apis = served(listener_kind(event.listener, self._settings))
                self._sessions[event.conn] = ClientSession(
                    event.conn, event.peer, event.listener, apis, self._emit
                )
            case Disconnected() if event.conn >= 0:
                session = self._sessions.pop(event.conn, None)
                if session is not None:
                    session.is_closed = True
                    self._broker.partitions.connection_lost(event.conn)
                    self._broker.offset_queries.connection_lost(event.conn)
                    self._controlling.connection_lost(event.conn)
            case FrameReceived() | Disconnected() | PeerConnected() | ConnectFailed():
                self._peers.handle(event)
            case _:
                assert_never(event)

    def next_deadline(self) -> Millis | None:
        return self._timers.next_deadline()

    def shutdown(self, now: Millis) -> list[Outbound]:
        """Hand over what this node leads, close every log for good, then stop."""
        self._clock.now = now
        if not self._is_stopping:
            self._is_stopping = True
            self._timers.at(now + SHUTDOWN_PATIENCE_MS, self._resign)
            if self._settings.is_broker and self._settings.controlled_shutdown_enable:
                self._broker.lifecycle.shut_down(self._resign)
            else:
                self._resign()
        return self._take_outbound()

    def _resign(self) -> None:
        """Leave the quorum's lead to another, if it was ours, and give the news a moment to go."""
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
        self._broker.close()
        self._emit(Stop(1, "shut down without handing over what it led"))
        return self._take_outbound()

    def _close(self) -> None:
        self._broker.close()
        self._emit(Stop(0, "shut down"))

    # -- told by the quorum ------------------------------------------------------------------------

    def image_changed(self, old: ClusterImage, new: ClusterImage, *, by_records: bool) -> None:
        self._context.image = new
        self._connection_limiting.image_changed(old, new)
        self._registration.image_changed(new)
        if self._settings.is_broker:
            self._broker.image_changed(old, new, by_records=by_records)

    def topic_removed(self, topic_id: TopicId, name: str) -> None:
        self._broker.topic_removed(topic_id, name)

    def leader_known(self, leader: NodeId, epoch: LeaderEpoch) -> None:
        log.info("follows node %d, which leads the quorum in epoch %d", leader, epoch)
        self._controlling.predecessor = leader
        self._voter_changes.check_own_record()
        if self._settings.is_broker:
            self._broker.lifecycle.controller_changed()

    def leadership_taken(self, epoch: LeaderEpoch) -> None:
        log.info("leads the quorum in epoch %d", epoch)
        self._controlling.activate()
        self._voter_changes.check_own_record()

    def leadership_lost(self) -> None:
        log.info("no longer leads the quorum")
        self._controlling.deactivate()

    def voters_changed(self) -> None:
        self._voter_changes.check_own_record()

    # -- parts -------------------------------------------------------------------------------------

    def _open_quorum(self, disk: Disk, directory: OpenedDirectory) -> Quorum:
        settings = self._settings
        meta = directory.meta
        metadata = open_metadata(
            settings, meta, disk, directory.log_directory, self._dice, self._storage
        )
        opened = directory.log_directory.open(
            METADATA_PARTITION, METADATA_TOPIC_ID, metadata_log_config(settings), self._clock.now
        )
        around = QuorumSurroundings(
            self._clock, self._timers, self._peers, self._dice, self._jobs, self._fail
        )
        quorum = open_quorum(
            settings, meta, disk, metadata, opened, around, self._flush_metadata, self
        )
        self._metadata_log = opened
        self._voter_changes = VoterChanges(
            quorum,
            Myself(
                myself(settings, meta),
                settings.controller_listener_names[0],
                meta.cluster_id,
            ),
            self._peers,
            self._clock,
            self._timers,
            quorum_timeouts(settings),
            lambda message, resume: self._controller.submit(message, resume),
        )
        return quorum

    def _submit(self, message: Any, resume: Resume, patience_ms: Millis | None = None) -> None:
        self._controller.submit(message, resume, patience_ms)

    def _change_metadata(self, effect: ChangeMetadata, resume: Resume, request: Request) -> Parked:
        """Decided here or by the active controller, unless a node asks that believes we are it."""
        if kind_of(request) is ListenerKind.CONTROLLER:
            self._controlling.submit(effect.request, resume, request.conn)
        else:
            self._controller.change(effect.request, resume)
        return PARKED

    def _flush_metadata(self) -> None:
        files, up_to = self._metadata_log.begin_flush(self._clock.now)
        self._jobs.sync(files, lambda: self._quorum.flushed(up_to), self._fail)

    def _hold(self, conn: ConnId) -> Callable[[], None]:
        """Begin no other request of a connection. -> what ends that."""
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

    def _emit(self, outbound: Outbound) -> None:
        self._outbound.append(outbound)

    def _take_outbound(self) -> list[Outbound]:
        outbound, self._outbound = self._outbound, []
        return outbound
