"""Handles AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter as leader; updates this node's record.

Each change is written as a record. A removal or an addition is answered when the record is
committed. A request for an addition may ask to be answered earlier, when the record is written. As
in Kafka, an update is always answered when the record is written. If this node's own record has a
wrong endpoint, the node sends an update to the leader.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from kio.schema.add_raft_voter.v1.request import AddRaftVoterRequest
from kio.schema.add_raft_voter.v1.response import AddRaftVoterResponse
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.remove_raft_voter.v0.request import RemoveRaftVoterRequest
from kio.schema.remove_raft_voter.v0.response import RemoveRaftVoterResponse
from kio.schema.update_raft_voter.v0 import request as update_request
from kio.schema.update_raft_voter.v0.request import UpdateRaftVoterRequest
from kio.schema.update_raft_voter.v0.response import CurrentLeader, UpdateRaftVoterResponse

from tidelog.controller.features import KRAFT_VERSION, KRAFT_VERSIONS
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, Millis, NodeId
from tidelog.node.channels import Channels
from tidelog.node.clock import Clock
from tidelog.node.peers import Peers, Unanswered, coded
from tidelog.node.quorum.quorum import Quorum
from tidelog.node.requests.parking import Resume
from tidelog.node.timers import Timer
from tidelog.replication.quorum import voters as rules
from tidelog.replication.quorum.roles import Leader
from tidelog.replication.quorum.state import QuorumTimeouts, ReplicaKey, Voter, VoterSet
from tidelog.replication.quorum.voters import VoterChangeRefused

log = logging.getLogger(__name__)

VoterRequest: TypeAlias = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest
VOTER_REQUESTS = (AddRaftVoterRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest)
API_VERSIONS_VERSION = 4

_NOT_LEADER = VoterChangeRefused(
    ErrorCode.not_leader_or_follower, "This node does not lead the metadata quorum."
)
_UNCERTAIN = VoterChangeRefused(
    ErrorCode.request_timed_out,
    "The leadership was lost before the change was committed; it may be carried out or not.",
)


@dataclass(frozen=True, slots=True)
class Myself:
    """This node as a voter, with the endpoints that its record should have."""

    voter: Voter
    listener: str
    """The first of controller.listener.names. Every voter must have this listener."""
    cluster_id: str


class VoterChanges:
    def __init__(
        self,
        quorum: Quorum,
        myself: Myself,
        peers: Peers,
        clock: Clock,
        timeouts: QuorumTimeouts,
        submit: Callable[[Any, Resume], None],
    ) -> None:
        self._quorum = quorum
        self._me = myself
        self._channels: Channels[NodeId] = Channels(peers, are_controllers=True)
        self._clock = clock
        self._timers = clock.timers
        self._timeouts = timeouts
        self._submit = submit
        self._is_adding = False
        self._introduction: Timer | None = None

    # -- at the leader -----------------------------------------------------------------------------

    def submit(self, message: VoterRequest, resume: Resume) -> None:
        """Start the requested change of the voters, or refuse the request if a rule forbids it."""
        refused = self._refuse(message)
        if refused is not None:
            resume(self._answer(message, refused))
            return
        match message:
            case AddRaftVoterRequest():
                self._add(message, resume)
            case RemoveRaftVoterRequest():
                key = ReplicaKey(message.voter_id, message.voter_directory_id)
                self._change(message, rules.remove(self._voters, key), resume)
            case UpdateRaftVoterRequest():
                self._update(message, resume)

    @property
    def voters_without_directory_id(self) -> tuple[NodeId, ...]:
        """Voters whose directory ids this leader does not know."""
        role = self._quorum.machine.role
        known = role.directories if isinstance(role, Leader) else {}
        return tuple(rules.without_directory_id(self._voters, self._me.voter.key, known))

    def make_dynamic(self, done: Callable[[bool], None]) -> None:
        """Write the configured voters to the log, which then defines the voters (KIP-853)."""
        role = self._quorum.machine.role
        assert isinstance(role, Leader)
        voters = rules.made_dynamic(self._voters, self._me.voter, role.directories)
        log.info("the voters of the metadata quorum are now defined by its log: %s", list(voters))
        self._quorum.change_voters(voters, done)

    @property
    def _voters(self) -> VoterSet:
        return self._quorum.machine.voters

    def _refuse(self, message: VoterRequest) -> VoterChangeRefused | None:
        if message.cluster_id not in (None, self._me.cluster_id):
            return VoterChangeRefused(ErrorCode.inconsistent_cluster_id, "This is another cluster.")
        role = self._quorum.machine.role
        if not isinstance(role, Leader):
            return _NOT_LEADER
        if message.voter_id < 0 or message.voter_directory_id is None:
            return VoterChangeRefused(
                ErrorCode.invalid_request, "The request names no valid voter."
            )
        if not isinstance(message, RemoveRaftVoterRequest):
            names = [listener.name for listener in message.listeners]
            if self._me.listener not in names:
                return VoterChangeRefused(
                    ErrorCode.invalid_request,
                    f"The request didn't include the default listener: {self._me.listener}.",
                )
        if isinstance(message, UpdateRaftVoterRequest):
            epoch = message.current_leader_epoch
            if epoch != role.epoch:
                older = 0 <= epoch < role.epoch
                return VoterChangeRefused(
                    ErrorCode.fenced_leader_epoch if older else ErrorCode.unknown_leader_epoch, ""
                )
        if self._is_adding:
            return VoterChangeRefused(ErrorCode.request_timed_out, "Another voter is being added.")
        quorum = self._quorum
        return rules.refuse_any(role, quorum.kraft_version, quorum.machine.voters_offset)

    def _add(self, message: AddRaftVoterRequest, resume: Resume) -> None:
        """Ask the new voter for its supported versions, then add it."""
        outcome = self._added(message, KRAFT_VERSIONS.minimum, KRAFT_VERSIONS.maximum)
        if isinstance(outcome, VoterChangeRefused):
            resume(self._answer(message, outcome))
            return
        endpoint = next(one for one in message.listeners if one.name == self._me.listener)
        channel = self._channels.replace(message.voter_id, (endpoint.host, endpoint.port))
        self._is_adding = True

        def answered(answer: Any) -> None:
            self._is_adding = False
            self._channels.close(message.voter_id)
            self._introduced(message, answer, resume)

        request = ApiVersionsRequest(
            client_software_name="tidelog", client_software_version="unknown"
        )
        encode, decode = coded(request, API_VERSIONS_VERSION)
        channel.request(encode, decode, answered, self._timeouts.request_ms)

    def _introduced(self, message: AddRaftVoterRequest, answer: Any, resume: Resume) -> None:
        if isinstance(answer, Unanswered):
            unreachable = f"The new voter cannot be reached: {answer.reason}."
            resume(
                self._answer(message, VoterChangeRefused(ErrorCode.request_timed_out, unreachable))
            )
            return
        levels = [one for one in answer.supported_features if one.name == KRAFT_VERSION]
        refused = self._refuse(message)
        if refused is None and not levels:
            refused = VoterChangeRefused(
                ErrorCode.invalid_request, "The new voter has no kraft.version."
            )
        outcome = refused or self._added(message, levels[0].min_version, levels[0].max_version)
        self._change(message, outcome, resume)

    def _added(
        self, message: AddRaftVoterRequest, lowest: int, highest: int
    ) -> VoterSet | VoterChangeRefused:
        role = self._quorum.machine.role
        assert isinstance(role, Leader)
        voter = Voter(
            ReplicaKey(message.voter_id, message.voter_directory_id),
            tuple((one.name, one.host, one.port) for one in message.listeners),
            lowest,
            highest,
        )
        unsupported = rules.check_level(voter, self._quorum.kraft_version)
        if unsupported is not None:
            return unsupported
        patience = self._timeouts.fetch_ms
        return rules.add(self._voters, voter, role.progress, self._clock.now, patience)

    def _update(self, message: UpdateRaftVoterRequest, resume: Resume) -> None:
        voter = Voter(
            ReplicaKey(message.voter_id, message.voter_directory_id),
            tuple((one.name, one.host, one.port) for one in message.listeners),
            message.k_raft_version_feature.min_supported_version,
            message.k_raft_version_feature.max_supported_version,
        )
        outcome = rules.update(self._voters, voter, self._quorum.kraft_version)
        self._change(message, outcome, resume)

    def _change(
        self, message: VoterRequest, outcome: VoterSet | VoterChangeRefused, resume: Resume
    ) -> None:
        if isinstance(outcome, VoterChangeRefused) or outcome == self._voters:
            resume(
                self._answer(message, outcome if isinstance(outcome, VoterChangeRefused) else None)
            )
            return
        is_awaited = isinstance(message, RemoveRaftVoterRequest) or (
            isinstance(message, AddRaftVoterRequest) and message.ack_when_committed
        )
        log.info("the voters of the metadata quorum change to %s", list(outcome))

        def committed(is_committed: bool) -> None:
            if is_awaited:
                resume(self._answer(message, None if is_committed else _UNCERTAIN))

        self._quorum.change_voters(outcome, committed)
        if not is_awaited:
            resume(self._answer(message, None))

    def _answer(self, message: VoterRequest, refused: VoterChangeRefused | None) -> Any:
        error, text = (ErrorCode.none, None) if refused is None else refused
        if isinstance(message, UpdateRaftVoterRequest):
            return UpdateRaftVoterResponse(
                throttle_time=timedelta(0), error_code=error, current_leader=self._leader()
            )
        shape = (
            AddRaftVoterResponse
            if isinstance(message, AddRaftVoterRequest)
            else RemoveRaftVoterResponse
        )
        return shape(throttle_time=timedelta(0), error_code=error, error_message=text)

    def _leader(self) -> CurrentLeader:
        machine = self._quorum.machine
        address = self._quorum.leader_address
        if machine.leader == machine.me.id and self._me.voter.endpoints:
            address = self._me.voter.endpoints[0][1:]
        host, port = address or ("", 0)
        return CurrentLeader(
            leader_id=machine.leader, leader_epoch=machine.epoch, host=host, port=port
        )

    # -- this node's own record --------------------------------------------------------------------

    def check_own_record(self) -> None:
        """Send updates to the leader as long as this voter's own record is wrong."""
        if self._introduction is not None:
            self._introduction.cancel()
            self._introduction = None
        machine, me = self._quorum.machine, self._me.voter
        known = machine.voters.voters.get(me.key.id)
        if self._quorum.kraft_version < rules.DYNAMIC or known is None or known.key != me.key:
            return
        if known == me or machine.leader == NO_NODE:
            return
        self._submit(self._own_update(machine.epoch), lambda _: None)
        again: Millis = self._clock.now + self._timeouts.fetch_ms
        self._introduction = self._timers.at(again, self.check_own_record)

    def _own_update(self, epoch: int) -> UpdateRaftVoterRequest:
        me = self._me.voter
        return UpdateRaftVoterRequest(
            cluster_id=self._me.cluster_id,
            current_leader_epoch=epoch,
            voter_id=me.key.id,
            voter_directory_id=me.key.directory,
            listeners=tuple(
                update_request.Listener(name=name, host=host, port=port)
                for name, host, port in me.endpoints
            ),
            k_raft_version_feature=update_request.KRaftVersionFeature(
                min_supported_version=me.min_version, max_supported_version=me.max_version
            ),
        )
