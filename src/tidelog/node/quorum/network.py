"""Sends the quorum's requests to other voters, over two connections to each voter.

One connection carries Vote, BeginQuorumEpoch and EndQuorumEpoch. The other connection carries
fetches, so that a waiting fetch never delays a vote. A voter's address comes from its voter record,
unless a message that names this voter as leader gives another address. A node that knows no voter
asks the servers in controller.quorum.bootstrap.servers in turn.
"""

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any, TypeAlias

from tidelog.model.ids import NO_NODE, NodeId
from tidelog.node.channels import Address, Channels
from tidelog.node.peers import LONG_ANSWER_BYTES, Channel, Peers, Unanswered, coded
from tidelog.node.quorum import wire
from tidelog.replication.quorum.events import (
    BeginEpoch,
    EndEpoch,
    PeerRefused,
    QuorumEvent,
    RequestVote,
)
from tidelog.replication.quorum.machine import QuorumMachine
from tidelog.replication.quorum.state import QuorumTimeouts, VoterSet

VOTE, BEGIN_QUORUM_EPOCH, END_QUORUM_EPOCH = 52, 53, 54
Step: TypeAlias = Callable[[QuorumEvent], None]
_VERSIONS = {VOTE: 2, BEGIN_QUORUM_EPOCH: 1, END_QUORUM_EPOCH: 1}


class QuorumNetwork:
    def __init__(
        self,
        peers: Peers,
        machine: QuorumMachine,
        bootstrap_servers: Sequence[Address],
        my_endpoints: Sequence[tuple[str, str, int]],
        cluster_id: str,
        timeouts: QuorumTimeouts,
    ) -> None:
        self._my_endpoints = my_endpoints
        self._machine = machine
        self.cluster_id = cluster_id
        self.timeouts = timeouts
        self._servers = cycle(bootstrap_servers)
        self._announced: dict[NodeId, Address] = {}
        """The addresses that leaders have announced."""
        self._control_channels: Channels[NodeId] = Channels(peers, are_controllers=True)
        self._fetch_channels: Channels[NodeId] = Channels(
            peers, LONG_ANSWER_BYTES, are_controllers=True
        )

    def fetch_channel(self, voter: NodeId, step: Step) -> Channel | None:
        """The channel for fetches; `step` gets an event if the voter refuses the connection."""
        return self._channel(voter, self._fetch_channels, step)

    def address(self, node: NodeId) -> Address | None:
        """The address of a voter or a leader; node id -1 means the next bootstrap server."""
        if node == NO_NODE:
            return next(self._servers, None)
        if node == self._machine.me.id and self._my_endpoints:
            return self._my_endpoints[0][1:]
        if node in self._announced:
            return self._announced[node]
        known = self._machine.voters.voters.get(node)
        if known is None or not known.endpoints:
            return None
        return known.endpoints[0][1:]

    def learn(self, leader: NodeId, address: Address) -> None:
        self._announced[leader] = address

    def voters_changed(self, old: VoterSet, new: VoterSet) -> None:
        """Drop the announced addresses of voters whose records have changed."""
        for id_, voter in new.voters.items():
            before = old.voters.get(id_)
            if before is None or before.endpoints != voter.endpoints:
                self._announced.pop(id_, None)
        for id_, voter in old.voters.items():
            if id_ not in new.voters and voter.endpoints:
                # A removed leader continues to lead until its removal is committed, so its address
                # is still needed.
                self._announced.setdefault(id_, voter.endpoints[0][1:])

    def send(self, effect: RequestVote | BeginEpoch | EndEpoch, step: Step) -> None:
        """Send a request; `step` gets its response as an event."""
        channel = self._channel(effect.to, self._control_channels, step)
        if channel is None:
            return
        me, voters, cluster_id = self._machine.me, self._machine.voters, self.cluster_id
        match effect:
            case RequestVote():
                message = wire.vote(effect, me, voters, cluster_id)
            case BeginEpoch():
                message = wire.begin_epoch(effect, me.id, voters, self._my_endpoints, cluster_id)
            case EndEpoch():
                message = wire.end_epoch(effect, me.id, voters, cluster_id)

        def done(answer: Any) -> None:
            event = _event_of(effect, answer)
            if event is not None:
                step(event)

        encode, decode = coded(message, _VERSIONS[message.__api_key__])
        channel.request(encode, decode, done, self.timeouts.request_ms)

    def _channel(self, voter: NodeId, channels: Channels[NodeId], step: Step) -> Channel | None:
        address = self.address(voter)
        if address is None:
            return None
        return channels.get(voter, address, lambda: self._refused(voter, address, step))

    def _refused(self, voter: NodeId, address: Address, step: Step) -> None:
        if self._announced.get(voter) == address:
            del self._announced[voter]
        step(PeerRefused(voter))


def _event_of(effect: RequestVote | BeginEpoch | EndEpoch, answer: Any) -> QuorumEvent | None:
    if isinstance(answer, Unanswered):
        return None  # the channel has already reported a refused connection
    if isinstance(effect, RequestVote):
        return wire.vote_answered(answer, effect.to, effect.pre_vote)
    return wire.epoch_acknowledged(answer, effect.to)
