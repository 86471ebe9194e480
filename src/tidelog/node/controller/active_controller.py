"""The active controller on this node: it decides on requests and fences silent brokers.

Invariant: a decision takes all earlier decisions into account, even uncommitted ones. The response
to a request is sent when the records of its decision are committed. If this node loses the
leadership of the quorum before the commit, the response is NOT_CONTROLLER.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest

from tidelog.config.settings import BrokerSettings
from tidelog.controller.decide.decide import decide
from tidelog.controller.decide.decision import DecideContext
from tidelog.controller.decide.elections import elect_uncleanly, fence_expired
from tidelog.controller.decide.leader_balance import balance_leaders
from tidelog.controller.decide.refusals import refusal
from tidelog.controller.features import activation_records
from tidelog.controller.image.image import ClusterImage
from tidelog.controller.liveness import Liveness
from tidelog.controller.log_ends import LogEndReports
from tidelog.model.dice import Dice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, BrokerEpoch, ConnId, Millis, NodeId
from tidelog.model.replication_events import FenceReason
from tidelog.node.channels import Channels, broker_endpoint
from tidelog.node.clock import Clock
from tidelog.node.events.replication_events import ReplicationEvents
from tidelog.node.peers import Peers
from tidelog.node.quorum.quorum import Quorum
from tidelog.node.quorum.voter_changes import VOTER_REQUESTS, VoterChanges
from tidelog.node.requests.parking import Resume
from tidelog.node.timers import Timer
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.protocol.metadata.metadata_records import MetadataRecord

log = logging.getLogger(__name__)


class ActiveController:
    def __init__(
        self,
        quorum: Quorum,
        voter_changes: VoterChanges,
        settings: BrokerSettings,
        dice: Dice,
        clock: Clock,
        peers: Peers,
        events: ReplicationEvents,
    ) -> None:
        self._quorum = quorum
        self._voter_changes = voter_changes
        self._settings = settings
        self._dice = dice
        self._clock = clock
        self._timers = clock.timers
        self._events = events
        self._liveness = Liveness(settings.broker_session_timeout_ms)
        self._log_ends = LogEndReports()
        self._brokers: dict[ConnId, NodeId] = {}
        """The broker whose heartbeats arrive on each connection."""
        self._signs: dict[NodeId, Millis] = {}
        """When each broker was last known to be alive: at its last heartbeat, or when its
        connection was lost.
        """
        self._probes: Channels[NodeId] = Channels(peers)
        self._refusing: set[NodeId] = set()
        """Brokers that are about to be fenced because their ports refuse connections."""
        self._silenced: dict[NodeId, BrokerEpoch] = {}
        """Brokers that this controller fenced because they did not respond, with their epochs."""
        self._chores: dict[Callable[..., Sequence[MetadataRecord]], Timer] = {}
        self._watch: Timer | None = None
        self.predecessor: NodeId = NO_NODE
        """The last known leader of the quorum."""

    # -- becoming and ceasing to be active ---------------------------------------------------------

    def activate(self) -> None:
        """Write the first records of a new controller, and start to watch the brokers."""
        image = self._quorum.pending_image
        records = activation_records(image, self._settings)
        if records:
            self._propose(records)
        self._liveness = Liveness(self._settings.broker_session_timeout_ms)
        self._log_ends = LogEndReports()
        unfenced = [broker.id for broker in image.brokers.values() if not broker.fenced]
        self._liveness.expect(unfenced, self._clock.now)
        if (sign := self._quorum.machine.last_sign) is not None:
            self._signs[sign[0]] = sign[1]
        if self.predecessor != self._settings.node_id:
            # The previous leader lost its leadership, so it was probably unreachable. If it is
            # alive, it sends a heartbeat to this controller at once. If the heartbeat is late, the
            # broker is fenced, and is unfenced when the heartbeat arrives.
            interval = self._settings.broker_heartbeat_interval_ms
            self._liveness.expect_soon(self.predecessor, self._clock.now, interval)
        self.predecessor = self._settings.node_id
        self._keep_watch()
        for broker in unfenced:
            # Probe all brokers, because the previous controller's machine may have failed together
            # with other brokers that ran on it.
            if broker != self._settings.node_id:
                self._probe(broker)
        if self._settings.auto_leader_rebalance_enable:
            interval = self._settings.leader_imbalance_check_interval_seconds * 1000
            self._every(interval, balance_leaders)
        self._every(5_000, elect_uncleanly)

    def deactivate(self) -> None:
        for timer in self._chores.values():
            timer.cancel()
        self._chores.clear()
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        self._brokers.clear()
        self._signs.clear()

    # -- deciding on requests ----------------------------------------------------------------------

    def submit(self, message: Any, resume: Resume, conn: ConnId | None = None) -> None:
        """Decide on a request, based on the pending image.

        The response is sent when this decision and all earlier decisions are committed.
        """
        if isinstance(message, DescribeQuorumRequest):
            resume(self._quorum.describe(message))
            return
        if isinstance(message, VOTER_REQUESTS):
            self._voter_changes.submit(message, resume)
            return
        if not self._quorum.is_active:
            resume(refusal(message, ErrorCode.not_controller))
            return
        self._record_contact(message, conn)
        self._quorum.in_turn(partial(self._decide, message, resume))

    def _decide(self, message: Any, resume: Resume) -> None:
        if not self._quorum.is_active:
            resume(refusal(message, ErrorCode.not_controller))
            return
        decision = decide(self._quorum.pending_image, message, self._decide_context())

        def done(is_committed: bool) -> None:
            if is_committed:
                resume(decision.response)
            else:
                resume(refusal(message, ErrorCode.not_controller))

        if decision.makes_voters_dynamic:
            if decision.records:
                self._propose(decision.records)
            self._voter_changes.make_dynamic(done)
        elif decision.records:
            self._propose(decision.records, done, self._why(message))
        else:
            self._quorum.when_committed(done)

    def _propose(
        self,
        records: Sequence[MetadataRecord],
        done: Callable[[bool], None] = lambda _: None,
        why: FenceReason = FenceReason.REQUESTED,
        last_sign: Millis | None = None,
    ) -> None:
        """Append the records of a decision; record its replication events once it is committed."""
        before, began = self._quorum.pending_image, self._clock.now

        def settled(after: ClusterImage | None) -> None:
            if after is not None:
                self._events.decided(before, after, self._clock.now - began, why, last_sign)
            done(after is not None)

        self._quorum.propose(records, settled)

    def _why(self, message: Any) -> FenceReason:
        is_heartbeat = isinstance(message, BrokerHeartbeatRequest)
        if is_heartbeat and self._silenced.get(message.broker_id) == message.broker_epoch:
            return FenceReason.RETURNED
        return FenceReason.REQUESTED

    def _record_contact(self, message: Any, conn: ConnId | None) -> None:
        """After a heartbeat, renew the broker's session and note the connection that it uses."""
        if isinstance(message, BrokerHeartbeatRequest):
            broker = self._quorum.pending_image.brokers.get(message.broker_id)
            if broker is None or broker.epoch != message.broker_epoch:
                return  # a heartbeat of an earlier run must not extend the current session
            self._liveness.record_heartbeat(
                message.broker_id, self._clock.now, message.current_metadata_offset
            )
            self._log_ends.received(message.broker_id, broker.epoch, message.log_ends)
            self._signs[message.broker_id] = self._clock.now
            if conn is not None:
                self._brokers[conn] = message.broker_id
            self._keep_watch()
        elif isinstance(message, BrokerRegistrationRequest) and conn is not None:
            self._brokers[conn] = message.broker_id

    def _decide_context(self) -> DecideContext:
        return DecideContext(
            now=self._clock.now,
            dice=self._dice,
            settings=self._settings,
            next_offset=self._quorum.next_offset,
            sessions=self._liveness,
            kraft_version=self._quorum.kraft_version,
            voters_without_directory_id=self._voter_changes.voters_without_directory_id,
            log_ends=self._log_ends,
        )

    # -- failure detection -------------------------------------------------------------------------

    def connection_lost(self, conn: ConnId) -> None:
        """Probe a broker whose heartbeat connection is lost, because its process may have ended."""
        broker = self._brokers.pop(conn, None)
        if broker is not None and self._quorum.is_active and broker not in self._brokers.values():
            self._signs[broker] = self._clock.now
            self._probe(broker)

    def _probe(self, broker: NodeId) -> None:
        """Check whether a process listens at the broker's address."""
        listener = self._settings.inter_broker_listener_name
        endpoint = broker_endpoint(self._quorum.image, broker, listener)
        if endpoint is not None:
            address = endpoint.host, endpoint.port
            self._probes.replace(broker, address, lambda: self._gone(broker)).probe()

    def _gone(self, broker: NodeId) -> None:
        if broker not in self._brokers.values():
            log.info(
                "broker %d has ended: its connection was lost and its port refuses connections",
                broker,
            )
            self._refusing.add(broker)
            self._liveness.lost(broker, self._clock.now)
            self._keep_watch()

    def _keep_watch(self) -> None:
        """Fence brokers whose sessions have expired, and set a timer for the next expiry."""
        if not self._quorum.is_active:
            return
        expired = self._liveness.expired(self._clock.now)
        for broker in expired:
            is_gone = broker in self._refusing
            self._quorum.in_turn(partial(self._fence, broker, is_gone=is_gone))
            self._liveness.forget(broker)
            self._refusing.discard(broker)
        deadline = self._liveness.next_deadline()
        if self._watch is not None:
            self._watch.cancel()
        self._watch = None
        if deadline is not None:
            self._watch = self._timers.at(deadline, self._keep_watch)

    def _fence(self, broker: NodeId, *, is_gone: bool) -> None:
        if not self._quorum.is_active:
            return
        records = fence_expired(self._quorum.pending_image, [broker], self._decide_context())
        if not records:
            return
        log.info(
            "broker %d is fenced: %s",
            broker,
            "its process has ended" if is_gone else "no heartbeat in time",
        )
        self._silenced[broker] = self._quorum.pending_image.brokers[broker].epoch
        why = FenceReason.CONNECTION_REFUSED if is_gone else FenceReason.SESSION_EXPIRED
        self._propose(records, why=why, last_sign=self._signs.pop(broker, None))

    # -- periodic work -----------------------------------------------------------------------------

    def _every(self, interval: Millis, chore: Callable[..., Sequence[MetadataRecord]]) -> None:
        run = partial(self._run, interval, chore)
        self._chores[chore] = self._timers.at(self._clock.now + interval, run)

    def _run(self, interval: Millis, chore: Callable[..., Sequence[MetadataRecord]]) -> None:
        if self._quorum.is_active:
            self._quorum.in_turn(partial(self._do, chore))
            self._every(interval, chore)

    def _do(self, chore: Callable[..., Sequence[MetadataRecord]]) -> None:
        if self._quorum.is_active:
            records = chore(self._quorum.pending_image, self._decide_context())
            if records:
                self._propose(records)
