"""The quorum's requests on their way to other voters, each voter behind two connections.

Votes and epochs go by one, fetches by the other: a fetch that waits must not hold up a vote.
"""

from collections.abc import Callable
from typing import Any

from tidelog.model.ids import Millis, NodeId
from tidelog.node import quorum_wire
from tidelog.node.peers import Channel, Peers, Unanswered, coded
from tidelog.replication.quorum.events import (
    BeginEpoch,
    EndEpoch,
    PeerRefused,
    QuorumEvent,
    RequestVote,
)
from tidelog.replication.quorum.machine import QuorumMachine
from tidelog.replication.quorum.state import VoterSet

VOTE, BEGIN_QUORUM_EPOCH, END_QUORUM_EPOCH = 52, 53, 54
_VERSIONS = {VOTE: 2, BEGIN_QUORUM_EPOCH: 1, END_QUORUM_EPOCH: 1}


class QuorumNetwork:
    def __init__(
        self,
        peers: Peers,
        voters: Callable[[], VoterSet],
        cluster_id: str,
        request_ms: Millis,
        step: Callable[[QuorumEvent], None],
    ) -> None:
        self._peers = peers
        self._voters = voters
        self._cluster_id = cluster_id
        self._request_ms = request_ms
        self._step = step
        self._channels: dict[tuple[NodeId, str], Channel] = {}

    def fetch_channel(self, voter: NodeId) -> Channel | None:
        return self._channel(voter, "fetch")

    def send(
        self,
        effect: RequestVote | BeginEpoch | EndEpoch,
        machine: QuorumMachine,
        step: Callable[[QuorumEvent], None],
    ) -> None:
        channel = self._channel(effect.to, "control")
        if channel is None:
            return
        me, voters, cluster_id = machine.me, machine.voters, self._cluster_id
        match effect:
            case RequestVote():
                message = quorum_wire.vote(effect, me, voters, cluster_id)
            case BeginEpoch():
                message = quorum_wire.begin_epoch(effect, me.id, voters, cluster_id)
            case EndEpoch():
                message = quorum_wire.end_epoch(effect, me.id, voters, cluster_id)

        def done(answer: Any) -> None:
            event = _event_of(effect, answer)
            if event is not None:
                step(event)

        encode, decode = coded(message, _VERSIONS[message.__api_key__])
        channel.request(encode, decode, done, self._request_ms)

    def _channel(self, voter: NodeId, purpose: str) -> Channel | None:
        found = self._channels.get((voter, purpose))
        if found is None:
            known = self._voters().voters.get(voter)
            if known is None or not known.endpoints:
                return None
            _, host, port = known.endpoints[0]
            found = self._peers.channel(host, port, lambda: self._step(PeerRefused(voter)))
            self._channels[voter, purpose] = found
        return found


def _event_of(effect: RequestVote | BeginEpoch | EndEpoch, answer: Any) -> QuorumEvent | None:
    if isinstance(answer, Unanswered):
        return None  # a refusal has been told by the channel itself
    if isinstance(effect, RequestVote):
        return quorum_wire.vote_answered(answer, effect.to, effect.pre_vote)
    return quorum_wire.epoch_acknowledged(answer, effect.to)
