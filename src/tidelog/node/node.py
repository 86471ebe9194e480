"""One node, broker and controller, as one synchronous object: events in, outbound out.

`handle(event, now)` is the only way in while it runs, `next_deadline()` says when it wants to be
ticked. It reads no clock and touches no socket: production and the simulator run this same code.
"""

import logging
from collections.abc import Sequence
from typing import assert_never

from tidelog.api.handler import Request
from tidelog.api.internal_topics import CONSUMER_OFFSETS
from tidelog.api.listeners import ListenerKind, kind_of, listener_kind
from tidelog.controller.image import ClusterImage
from tidelog.controller.settings import BrokerSettings
from tidelog.log.checkpoints import MetaProperties
from tidelog.log.directory import LogDirectory
from tidelog.model.dice import Dice
from tidelog.model.disk import Disk
from tidelog.model.effects import ChangeMetadata
from tidelog.model.events import (
    Connected,
    ConnectFailed,
    Disconnected,
    Event,
    Flushed,
    FrameReceived,
    PeerConnected,
    Ticked,
)
from tidelog.model.ids import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    ConnId,
    LeaderEpoch,
    Millis,
    NodeId,
    TopicPartition,
)
from tidelog.model.outbound import Outbound, Stop
from tidelog.node.assignments import Assignments
from tidelog.node.clock import Clock
from tidelog.node.context import RequestContext
from tidelog.node.controller_client import ControllerClient
from tidelog.node.controller_registration import ControllerRegistration
from tidelog.node.controlling import Controlling
from tidelog.node.coordinators import Coordinators
from tidelog.node.departures import Departures
from tidelog.node.executors import executors
from tidelog.node.fetchers import Fetchers
from tidelog.node.flushes import Flushes
from tidelog.node.housekeeping import Housekeeping
from tidelog.node.isr_proposals import IsrProposals
from tidelog.node.lifecycle import Lifecycle
from tidelog.node.opening import (
    NotFormatted,
    metadata_log_config,
    myself,
    quorum_timeouts,
    read_metas,
)
from tidelog.node.parking import PARKED, Parked, Resume
from tidelog.node.partitions import Partitions
from tidelog.node.peers import Peers
from tidelog.node.queries import Queries
from tidelog.node.quorum import Quorum
from tidelog.node.quorum_opening import Surroundings, open_quorum
from tidelog.node.replica import Replica
from tidelog.node.requests import Requests
from tidelog.node.sessions import Session
from tidelog.node.storage import Storage
from tidelog.node.timers import Timers
from tidelog.node.voter_changes import Myself, VoterChanges
from tidelog.replication.isr.leader import ProposeIsr
from tidelog.replication.quorum.events import ShutdownBegun

METADATA_PARTITION = TopicPartition(METADATA_TOPIC, 0)
SHUTDOWN_PATIENCE_MS: Millis = 2_000
"""How long a controlled shutdown may wait for a controller."""
RESIGNATION_MS: Millis = 20

__all__ = ["Node", "NotFormatted"]

log = logging.getLogger(__name__)


class Node:
    """Broker, controller or both.

    `disks` are the log directories in the order of log.dirs; `start` comes before the first event.
    """

    def __init__(
        self, settings: BrokerSettings, disks: Sequence[Disk], dice: Dice, now: Millis
    ) -> None:
        metas = read_metas(disks, settings)
        self._settings = settings
        self._dice = dice
        self._clock = Clock(now)
        self._timers = Timers()
        self._outbound: list[Outbound] = []
        self._sessions: dict[ConnId, Session] = {}
        self._is_stopping = False
        self._has_resigned = False
        self._has_begun = False
        self._storage = Storage([LogDirectory(disk, dice) for disk in disks])
        self._flushes = Flushes(self._emit, self._fail)
        self._peers = Peers(self._clock, self._timers, self._emit)
        self._partitions = Partitions(self._clock, self._timers, self._storage_failed)
        self._quorum = self._open_quorum(disks, metas)
        self._context = RequestContext(settings, self._clock, dice, self._quorum)
        self._controlling = Controlling(
            self._quorum,
            self._voter_changes,
            settings,
            dice,
            self._clock,
            self._timers,
            self._peers,
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
            settings, dice.uuid(), lambda message, resume: self._controller.submit(message, resume)
        )
        self._assemble_broker(metas)
        self._requests = Requests(
            self._context,
            executors(
                self._partitions,
                Queries(self._partitions, self._storage, settings.log_dirs),
                self._quorum,
                self._coordinators,
                self._departures,
                self._change_metadata,
            ),
        )

    def _assemble_broker(self, metas: Sequence[MetaProperties]) -> None:
        """What only a broker needs: replicas, fetchers, groups, its life and its chores."""
        settings, dice = self._settings, self._dice
        self._coordinators = Coordinators(
            settings, dice, self._clock, self._timers, self._partitions, self._offsets_partitions
        )
        self._isr_proposals = IsrProposals(settings.node_id, self._controller.submit)
        self._departures = Departures(self._clock, self._timers, lambda: self._context.image)
        self._fetchers = Fetchers(
            settings,
            self._clock,
            self._timers,
            self._peers,
            lambda: self._context.image,
            lambda: self._lifecycle.epoch,
            self._storage_failed,
            self._departures,
        )
        self._assignments = Assignments(
            settings,
            self._clock,
            self._timers,
            self._storage,
            self._partitions,
            self._fetchers,
            self,
            led=self._led,
            resigned=self._resigned,
            deleted=lambda gone: self._coordinators.partitions_deleted(gone),
            caught_up=lambda: self._lifecycle.become_willing(),
        )
        self._lifecycle = Lifecycle(
            settings,
            dice,
            self._clock,
            self._timers,
            self._controller.submit,
            metas[0].cluster_id,
            tuple(meta.directory_id for meta in metas),
            self._storage.previous_broker_epoch,
            self._fail,
        )
        self._housekeeping = Housekeeping(
            settings,
            self._clock,
            self._timers,
            self._storage,
            self._partitions,
            self._storage_failed,
        )

    @property
    def is_ready(self) -> bool:
        """Whether it takes writes, or, for a controller alone, whether there is a quorum."""
        if self._is_stopping:
            return False
        if not self._settings.is_broker:
            return self._quorum.high_watermark > 0
        return self._lifecycle.is_unfenced

    @property
    def image(self) -> ClusterImage:
        """The committed metadata as this node knows it."""
        return self._context.image

    @property
    def is_active_controller(self) -> bool:
        return self._quorum.is_active

    # -- the only ways in --------------------------------------------------------------------------

    def start(self) -> list[Outbound]:
        self._quorum.start()
        if self._settings.is_broker:
            self._housekeeping.start()
            self._lifecycle.register()
        return self._take_outbound()

    def handle(self, event: Event, now: Millis) -> list[Outbound]:
        """Apply one event; what is returned is carried out in order."""
        self._clock.now = now
        match event:
            case FrameReceived() if event.conn >= 0:
                session = self._sessions.get(event.conn)
                if session is not None and not session.is_closed:
                    self._requests.received(session, event.frame)
            case Flushed():
                self._flushes.ended(event)
            case Ticked():
                self._timers.fire(now)
            case Connected():
                kind = listener_kind(event.listener, self._settings)
                self._sessions[event.conn] = Session(
                    event.conn, event.peer, event.listener, kind, self._emit
                )
            case Disconnected() if event.conn >= 0:
                session = self._sessions.pop(event.conn, None)
                if session is not None:
                    session.is_closed = True
                    self._partitions.connection_lost(event.conn)
                    self._controlling.connection_lost(event.conn)
            case FrameReceived() | Disconnected() | PeerConnected() | ConnectFailed():
                self._peers.handle(event)
            case _:
                assert_never(event)
        return self._take_outbound()

    def next_deadline(self) -> Millis | None:
        return self._timers.next_deadline()

    def shutdown(self, now: Millis) -> list[Outbound]:
        """Hand over what this node leads, close every log for good, then stop."""
        self._clock.now = now
        if not self._is_stopping:
            self._is_stopping = True
            self._timers.at(now + SHUTDOWN_PATIENCE_MS, self._resign)
            if self._settings.is_broker and self._settings.controlled_shutdown_enable:
                self._lifecycle.shut_down(self._resign)
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
        self._timers.at(self._clock.now + delay, self._close)

    def _close(self) -> None:
        self._coordinators.resign_all()
        self._storage.close(self._partitions, self._lifecycle.epoch)
        self._emit(Stop(0, "shut down"))

    # -- told by the quorum ------------------------------------------------------------------------

    def image_changed(self, old: ClusterImage, new: ClusterImage) -> None:
        self._context.image = new
        self._registration.image_changed(new)
        if not self._settings.is_broker:
            return
        if self._has_begun:
            self._assignments.apply(old, new)
        elif self._lifecycle.is_registered_in(new):
            # Earlier images tell what an earlier run led and followed. With a log that may have
            # lost its tail this one would lead in the same epoch again: two values for one offset.
            self._has_begun = True
            self._lifecycle.is_willing = False
            self._assignments.remove_strays(new)
            self._assignments.apply(ClusterImage(), new)
        self._lifecycle.image_changed(new)
        self._departures.image_changed(old, new)

    def leader_known(self, leader: NodeId, epoch: LeaderEpoch) -> None:
        log.info("follows node %d, which leads the quorum in epoch %d", leader, epoch)
        self._voter_changes.check_own_record()

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

    def _open_quorum(self, disks: Sequence[Disk], metas: Sequence[MetaProperties]) -> Quorum:
        settings = self._settings
        home = settings.log_dirs.index(settings.metadata_log_dir)
        opened = self._storage.directories[home].open(
            METADATA_PARTITION, METADATA_TOPIC_ID, metadata_log_config(settings), self._clock.now
        )
        around = Surroundings(self._clock, self._timers, self._peers, self._dice)
        quorum = open_quorum(
            settings, metas[home], disks[home], opened, around, self._flush_metadata, self
        )
        self._metadata_log = opened
        self._voter_changes = VoterChanges(
            quorum,
            Myself(
                myself(settings, metas[home]),
                settings.controller_listener_names[0],
                metas[home].cluster_id,
            ),
            self._peers,
            self._clock,
            self._timers,
            quorum_timeouts(settings),
            lambda message, resume: self._controller.submit(message, resume),
        )
        return quorum

    def _change_metadata(self, effect: ChangeMetadata, resume: Resume, request: Request) -> Parked:
        """Decided here or by the active controller, unless a node asks that believes we are it."""
        if kind_of(request) is ListenerKind.CONTROLLER:
            self._controlling.submit(effect.request, resume, request.conn)
        else:
            self._controller.change(effect.request, resume)
        return PARKED

    # -- what the parts ask of each other ----------------------------------------------------------

    def _led(self, replica: Replica) -> None:
        if replica.partition.topic == CONSUMER_OFFSETS:
            self._coordinators.lead(replica)

    def _resigned(self, replica: Replica) -> None:
        if replica.partition.topic == CONSUMER_OFFSETS:
            self._coordinators.resign(replica.partition.partition)

    def _offsets_partitions(self) -> int:
        topic = self._context.image.topics.get(CONSUMER_OFFSETS)
        return len(topic.partitions) if topic is not None else 0

    def start_flush(self, replica: Replica) -> None:
        files, up_to = replica.log.begin_flush(self._clock.now)
        replica.flushing = True

        def done() -> None:
            replica.flushed(up_to)
            self._fetchers.flushed(replica)

        self._flushes.start(files, done)

    def propose_isr(self, replica: Replica, proposal: ProposeIsr) -> None:
        self._isr_proposals.broker_epoch = self._lifecycle.epoch
        self._isr_proposals.propose(replica, proposal)

    def _flush_metadata(self) -> None:
        files, up_to = self._metadata_log.begin_flush(self._clock.now)
        self._flushes.start(files, lambda: self._quorum.flushed(up_to))

    def _storage_failed(self, failure: OSError) -> None:
        """A write or read failed; the client is told, and what was written before stays served."""
        log.error("storage: %s", failure)

    def _fail(self, reason: str) -> None:
        self._is_stopping = True
        self._emit(Stop(1, reason))

    def _emit(self, outbound: Outbound) -> None:
        self._outbound.append(outbound)

    def _take_outbound(self) -> list[Outbound]:
        outbound, self._outbound = self._outbound, []
        return outbound
