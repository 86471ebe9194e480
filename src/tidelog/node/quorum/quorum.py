"""This node as a member of the metadata quorum: it runs the quorum machine and builds the image.

Invariant: the image contains only committed records, in the order of the log. Records that a leader
has appended but not committed are only in the pending image, which is dropped when the leadership
ends.
"""

import logging
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from kio.schema.begin_quorum_epoch.v1.request import BeginQuorumEpochRequest
from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse
from kio.schema.fetch_snapshot.v1.request import FetchSnapshotRequest

from tidelog.controller.image.apply import apply_all
from tidelog.controller.image.image import ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_EPOCH, NO_NODE, LeaderEpoch, NodeId, Offset
from tidelog.node.clock import Clock
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.metadata.snapshot_files import decode
from tidelog.node.metadata.stored_metadata import StoredMetadata
from tidelog.node.quorum import describing, proposals, quorum_state, wire
from tidelog.node.quorum.committed_image import CommittedImage
from tidelog.node.quorum.fetching import QuorumFetching
from tidelog.node.quorum.listener import QuorumListener
from tidelog.node.quorum.network import QuorumNetwork
from tidelog.node.quorum.serving import QuorumServing
from tidelog.node.ready import ReadyQueue
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.timers import Timer
from tidelog.protocol.fetch import FetchRequest, FetchResponse, SnapshotId
from tidelog.protocol.metadata.metadata_records import MetadataRecord
from tidelog.replication.quorum.events import (
    AnswerPeer,
    BeginEpoch,
    CaughtUp,
    Commit,
    DiscoverLeader,
    EndEpoch,
    FollowLeader,
    LogGrew,
    LoseLeadership,
    QuorumEffect,
    QuorumEvent,
    RequestVote,
    SaveQuorumState,
    StopFollowing,
    TakeLeadership,
    TimePassed,
    VotersChanged,
)
from tidelog.replication.quorum.machine import QuorumMachine
from tidelog.replication.quorum.state import VoterSet

log = logging.getLogger(__name__)


class Quorum:
    def __init__(
        self,
        machine: QuorumMachine,
        stored: StoredMetadata,
        clock: Clock,
        ready: ReadyQueue,
        network: QuorumNetwork,
        current: CurrentImage,
        listener: QuorumListener,
    ) -> None:
        self.machine = machine
        self._log = log = stored.log
        self._disk = stored.disk
        self._clock = clock
        self._timers = clock.timers
        self._network = network
        self._listener = listener
        self._current = current
        self._ready = ready
        self._snapshots = stored.snapshots
        self._serving = QuorumServing(machine, log, clock, network)
        self._fetching = QuorumFetching(machine.me, log, clock, network, self)
        log.subscribe(self.flushed)
        self._proposals = proposals.Proposals(log, clock, ready, self._serving.wake)
        self.in_turn = self._proposals.in_turn
        self.when_committed = self._proposals.when_committed
        self._committed = CommittedImage(
            stored.image, log, self._proposals, clock, self._advanced, listener.topic_removed
        )
        self._was_in_doubt = machine.is_in_doubt
        self.was_whole = not machine.is_in_doubt
        """Whether the node started with all metadata of its last run."""
        self._leading: LeaderEpoch = NO_EPOCH
        self.is_active = False
        """Whether this node is the active controller."""
        self._behind: list[tuple[Offset, Callable[[], None]]] = []
        self._questions: dict[int, tuple[Any, Resume]] = {}
        self._tickets = count(1)
        self._alarm: Timer | None = None

    @property
    def has_peers(self) -> bool:
        return bool(self.machine.voters.others(self.machine.me.id))

    @property
    def image(self) -> ClusterImage:
        """The committed image, in which a metadata transaction may be open."""
        return self._committed.image

    @property
    def high_watermark(self) -> Offset:
        """The offset up to which the log is known to be committed; the image may be behind it."""
        return self._committed.high_watermark

    @property
    def pending_image(self) -> ClusterImage:
        """The image after all appended records, including those that are not committed yet."""
        return self._proposals.newest or self._committed.image

    @property
    def leader(self) -> NodeId:
        """The known leader of the quorum; -1 if none is known."""
        return self.machine.leader

    @property
    def kraft_version(self) -> int:
        return self._log.voters.kraft_version

    @property
    def leader_address(self) -> tuple[str, int] | None:
        """The address of the leader, if another node leads and its address is known."""
        leader = self.machine.leader
        if leader in (NO_NODE, self.machine.me.id):
            return None
        return self._network.address(leader)

    @property
    def next_offset(self) -> Offset:
        """The offset of the next record."""
        return self._log.log.log_end_offset

    def start(self) -> None:
        if self.image.offset >= 0:
            self._current.change_to(self.image.visible, by_records=False)
        self.machine.voters = self._log.voters.latest
        self.machine.voters_offset = self._log.voters.latest_offset
        self.machine.is_retiring = self._log.voters.is_retiring(
            self.machine.me, self.high_watermark
        )
        self._snapshots.restart()
        self._listener.voters_changed()
        self._carry_out(self.machine.start(self._clock.now))

    def step(self, event: QuorumEvent) -> None:
        self._carry_out(self.machine.step(event, self._clock.now))

    # -- called by the controller ------------------------------------------------------------------

    def propose(
        self, records: Sequence[MetadataRecord], done: Callable[[ClusterImage | None], None]
    ) -> None:
        """Append one batch after the batches that are already being written.

        `done` gets the image after the batch when it is committed, or None if leadership is lost.
        """
        assert self.is_active
        self._proposals.propose(self.pending_image, records, self._leading, done)

    def change_voters(self, voters: VoterSet, done: Callable[[bool], None]) -> None:
        """Append this voter set; `done` gets True when it is committed."""
        assert self.is_active
        # If this change waited for its turn, a second change could be accepted before it is
        # written.
        self._proposals.finish_writing()
        end = self._log.append_voters(voters, self._leading, self._clock.wall)
        image = apply_all(self.pending_image, (), end - 1, self._leading)
        self._proposals.add(end, image, done)
        self.log_changed()

    def log_changed(self) -> None:
        """Pass the log's voter set to the machine, if it has changed."""
        machine, known = self.machine, self._log.voters
        is_retiring = known.is_retiring(machine.me, self.high_watermark)
        new = (known.latest, known.latest_offset, is_retiring)
        if (machine.voters, machine.voters_offset, machine.is_retiring) == new:
            return
        self._network.voters_changed(machine.voters, known.latest)
        self.step(VotersChanged(*new))
        self._listener.voters_changed()

    def when_applied(self, high_watermark: Offset, done: Callable[[], None]) -> None:
        """Call `done` when this node's image reaches a high watermark, whichever node leads."""
        if self._committed.applied_end >= high_watermark:
            self._ready.add((done, ()))
        else:
            self._behind.append((high_watermark, done))

    def flushed(self, up_to: Offset) -> None:
        """Handle the end of an fsync that covers the metadata log up to this offset."""
        self._log.flushed(up_to)
        self.step(LogGrew(self._log.synced_end))
        if not self._log.is_flushing:
            self._fetching.synced()

    # -- requests from peers -----------------------------------------------------------------------

    def ask(self, message: Any, resume: Resume) -> Parked | Any:
        """Handle a Vote, BeginQuorumEpoch, EndQuorumEpoch or FetchSnapshot request."""
        if isinstance(message, FetchSnapshotRequest):
            return self._serving.fetch_snapshot(message)
        if message.cluster_id not in (None, self._network.cluster_id):
            return wire.refusal_of(message, ErrorCode.inconsistent_cluster_id)
        ticket = next(self._tickets)
        event = wire.event_of(message, ticket)
        if event is None:
            return wire.refusal_of(message, ErrorCode.invalid_request)
        if isinstance(message, BeginQuorumEpochRequest):
            self._learn_leader(message)
        self._questions[ticket] = (message, resume)
        self.step(event)
        return PARKED

    def _learn_leader(self, message: BeginQuorumEpochRequest) -> None:
        leader = message.topics[0].partitions[0].leader_id
        for endpoint in message.leader_endpoints[:1]:
            self._network.learn(leader, (endpoint.host, endpoint.port))

    def describe(self, message: DescribeQuorumRequest) -> DescribeQuorumResponse:
        return describing.describe(self.machine, message, self._clock)

    def serve_fetch(self, message: FetchRequest, resume: Resume) -> FetchResponse | Parked:
        proof = self._serving.proof(message)
        if proof is not None:
            self.step(proof)
        return self._serving.fetch(message, resume)

    def follower_committed(self, high_watermark: Offset) -> None:
        """Adopt the leader's high watermark."""
        if high_watermark > self.high_watermark:
            self._committed.commit(high_watermark)
            self.log_changed()

    # -- loading a snapshot ------------------------------------------------------------------------

    def load_snapshot(self, snapshot: SnapshotId, content: bytes) -> bool:
        """Replace the log with a leader's snapshot; returns False if it is invalid or not newer."""
        found = decode(snapshot, content, self._network.cluster_id)
        if found is None or found.image.offset <= self.image.offset:
            return False
        self._log.snapshots.keep(snapshot, content)
        self._log.start_at(snapshot, found, self._clock.now)
        self._committed.replace(found.image)
        self._snapshots.restart()
        self._current.change_to(self.image.visible, by_records=False)
        self.log_changed()
        self.step(LogGrew(self._log.synced_end))
        return True

    def caught_up(self) -> None:
        """If the log had lost records, note that it holds all committed records again."""
        if self.machine.is_in_doubt:
            self.step(CaughtUp())
            log.info(
                "the lost part of the metadata log has been fetched again; this node votes again"
            )

    # -- effects of the machine --------------------------------------------------------------------

    def _carry_out(self, effects: list[QuorumEffect]) -> None:
        for effect in effects:
            if self._was_in_doubt and not isinstance(effect, SaveQuorumState):
                self._settle_doubt()
            match effect:
                case SaveQuorumState():
                    quorum_state.save(self._disk, effect.state)
                    self._log.mark.voted_in(effect.state.epoch)
                case AnswerPeer():
                    message, resume = self._questions.pop(effect.ticket)
                    resume(wire.response_of(message, effect))
                case RequestVote() | BeginEpoch() | EndEpoch():
                    self._network.send(effect, self.step)
                case FollowLeader():
                    self._fetching.follow(effect.leader, effect.epoch)
                    self._listener.leader_known(effect.leader, effect.epoch)
                    self._serving.wake()
                case StopFollowing():
                    self._fetching.stop()
                case DiscoverLeader():
                    self._fetching.discover(effect.ask, effect.epoch)
                case TakeLeadership():
                    self._take_leadership(effect)
                case LoseLeadership():
                    self._lose_leadership()
                case Commit():
                    self._committed.commit(effect.to)
        if self._was_in_doubt:
            self._settle_doubt()
        self._set_alarm()

    def _settle_doubt(self) -> None:
        """If the log is complete again, record this on disk. The vote state is already saved."""
        if not self.machine.is_in_doubt:
            self._was_in_doubt = False
            self._log.end_doubt()

    def _take_leadership(self, effect: TakeLeadership) -> None:
        self._committed.finish()
        self._leading = effect.epoch
        self.machine.epoch_started(self._log.log.log_end_offset)
        self._log.append_leader_change(
            self.machine.me.id, effect.epoch, effect.voters, effect.granted_by, self._clock.wall
        )
        self.log_changed()

    def _lose_leadership(self) -> None:
        self._leading = NO_EPOCH
        self.is_active = False
        answer = self._proposals.drop()
        self._listener.leadership_lost()
        answer(self.high_watermark)
        self._serving.wake()

    def _advanced(self, old: ClusterImage) -> None:
        """Report the records that have been committed and applied."""
        if self.image is not old:
            self._current.change_to(self.image.visible, by_records=True)
        applied_end = self._committed.applied_end
        is_level = applied_end >= self.high_watermark
        if self._leading != NO_EPOCH and not self.is_active and is_level:
            self.is_active = True
            self._listener.leadership_taken(self._leading)
        self._proposals.answer(applied_end)
        self._serving.wake()
        self._call_back()
        self._snapshots.image_changed(self.image)

    def _call_back(self) -> None:
        """Call the waiters whose high watermark the image has reached."""
        if not self._behind:
            return
        behind, self._behind = self._behind, []
        for high_watermark, done in behind:
            self.when_applied(high_watermark, done)

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        deadline = self.machine.next_deadline()
        if deadline is not None:
            self._alarm = self._timers.at(deadline, lambda: self.step(TimePassed()))
