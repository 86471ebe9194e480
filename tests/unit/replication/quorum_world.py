"""A simulated quorum, with an unreliable network, and with lists of epochs as logs.

The module executes the effects of the state machines in the simplest way. After every event it
checks that no epoch has two leaders and that all members agree on committed records.
"""

import random
from heapq import heappop, heappush
from itertools import count
from uuid import UUID

from tests.unit.replication.quorum_member import Member, VotersRecord
from tests.unit.replication.seeded_dice import SeededDice

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NodeId
from tidelog.replication.quorum import events as q
from tidelog.replication.quorum.machine import QuorumMachine
from tidelog.replication.quorum.roles import Follower, Leader
from tidelog.replication.quorum.state import (
    UNKNOWN,
    Held,
    LogEnd,
    QuorumState,
    QuorumTimeouts,
    ReplicaKey,
    Voter,
    VoterSet,
)
from tidelog.replication.quorum.voters import VoterHistory

FETCH_WAIT_MS = 50


class QuorumWorld:
    """If `first` is given, these members are dynamic voters.

    Otherwise all members are static voters.
    """

    def __init__(
        self,
        nodes: int,
        seed: int,
        timeouts: QuorumTimeouts | None = None,
        first: tuple[NodeId, ...] | None = None,
    ) -> None:
        self.now = 0
        self.random = random.Random(seed)
        self.timeouts = timeouts or QuorumTimeouts()
        self.members = {id: Member(id) for id in range(1, nodes + 1)}
        self.is_dynamic = first is not None
        if self.is_dynamic:
            for member in self.members.values():
                member.directory = self._new_directory()
        self.voters = VoterSet({id: Voter(self.members[id].key) for id in first or self.members})
        self.cut: set[frozenset[NodeId]] = set()
        self.loss_percent = 0
        self.leaders: dict[int, NodeId] = {}
        self.agreed: list[int] = []
        self.epochs_begun = 0
        self._queue: list[tuple[int, int, object]] = []
        self._order = count()
        self._tickets: dict[int, tuple[NodeId, NodeId, object]] = {}
        self._ticket = count(1)

    # -- starts and faults ------------------------------------------------------------------------

    def start(self, id: NodeId) -> None:
        member = self.members[id]
        assert member.machine is None
        member.incarnation += 1
        member.fetching = None
        known = self._voters_in(member)
        member.machine = QuorumMachine(
            member.key,
            known.latest,
            member.saved,
            member.end,
            self.timeouts,
            SeededDice(self.random.randrange(1 << 30)),
            has_bootstrap_servers=self.is_dynamic,
            held=member.held,
        )
        member.machine.voters_offset = known.latest_offset
        member.machine.is_retiring = known.is_retiring(member.key, member.committed)
        self._carry_out(member, member.machine.start(self.now))

    def kill(self, id: NodeId) -> None:
        self.members[id].machine = None
        for other in self.members.values():
            if other.machine is not None:
                self._later(1, lambda other=other: self._refused(other, id))

    def refuse(self, id: NodeId, peer: NodeId) -> None:
        """Let the peer's port refuse this member once, although the peer is alive."""
        member = self.members[id]
        if member.fetching is not None and member.fetching[0] == peer:
            member.fetching = None
        self._step(member, q.PeerRefused(peer))

    def wipe(self, id: NodeId) -> None:
        member = self.members[id]
        assert member.machine is None
        member.saved, member.log, member.committed = None, [], 0
        member.held = Held(UNKNOWN, is_fresh=True)
        if self.is_dynamic:
            member.directory = self._new_directory()

    def damage(self, id: NodeId) -> None:
        """Remove a part of the log's end; the separate file with the log's end (`held`) remains."""
        member = self.members[id]
        assert member.machine is None
        del member.log[self.random.randrange(len(member.log) + 1) :]
        member.committed = min(member.committed, len(member.log))

    def forget_promises(self, id: NodeId) -> None:
        """Remove quorum-state; another file still has the epoch of the last vote."""
        member = self.members[id]
        assert member.machine is None
        if member.saved is not None:
            member.saved = QuorumState(member.saved.epoch, NO_NODE, member.key)

    def isolate(self, id: NodeId) -> None:
        self.cut |= {frozenset({id, other}) for other in self.members if other != id}

    def heal(self) -> None:
        self.cut.clear()
        self.loss_percent = 0

    # -- running the simulation -------------------------------------------------------------------

    @property
    def leader(self) -> Member | None:
        """The leader of the highest epoch."""
        leading = [
            m for m in self.members.values() if m.machine and isinstance(m.machine.role, Leader)
        ]
        return max(leading, key=lambda m: m.machine.epoch, default=None)

    def propose(self) -> None:
        leader = self.leader
        if leader is not None:
            leader.log.append(leader.machine.epoch)
            leader.grew()
            self._step(leader, q.LogGrew(leader.end))

    def run(self, duration_ms: int) -> None:
        end = self.now + duration_ms
        while True:
            deadlines = [
                (deadline, id)
                for id, member in self.members.items()
                if member.machine and (deadline := member.machine.next_deadline()) is not None
            ]
            soonest = min(deadlines, default=(end + 1, 0))
            message_at = self._queue[0][0] if self._queue else end + 1
            at = max(self.now, min(soonest[0], message_at))
            if at > end:
                self.now = end
                return
            self.now = at
            if message_at <= at:
                heappop(self._queue)[2]()
            else:
                self._step(self.members[soonest[1]], q.TimePassed())

    def run_until_leader(self, limit_ms: int = 30_000) -> Member:
        deadline = self.now + limit_ms
        while self.now < deadline:
            leader = self.leader
            if leader is not None and leader.committed > 0 and leader.committed == len(leader.log):
                return leader
            self.run(10)
        raise AssertionError(f"no leader within {limit_ms} ms: {self.describe()}")

    def describe(self) -> str:
        return ", ".join(
            f"{m.id}: {m.machine.role if m.machine else 'down'}" for m in self.members.values()
        )

    def _new_directory(self) -> UUID:
        return UUID(int=self.random.getrandbits(128), version=4)

    def _voters_in(self, member: Member) -> VoterHistory:
        known = VoterHistory(self.voters)
        for offset, record in enumerate(member.log):
            if isinstance(record, VotersRecord):
                known.voters_appended(offset, record.voters)
        return known

    def _log_changed(self, member: Member) -> None:
        """Report the voters to the machine; a voters record counts as soon as it is in the log."""
        known = self._voters_in(member)
        is_retiring = known.is_retiring(member.key, member.committed)
        self._step(member, q.VotersChanged(known.latest, known.latest_offset, is_retiring))
        member.grew()
        self._step(member, q.LogGrew(member.end))

    # -- the network ------------------------------------------------------------------------------

    def _later(self, delay: int, action: object) -> None:
        heappush(self._queue, (self.now + delay, next(self._order), action))

    def _send(self, source: NodeId, target: NodeId, deliver: object) -> None:
        """Deliver a message, unless the link is cut or loses it, or the target is down."""
        incarnation = self.members[source].incarnation

        def arrive() -> None:
            member = self.members[target]
            if frozenset({source, target}) in self.cut:
                return
            if member.machine is None:
                sender = self.members[source]
                if sender.incarnation == incarnation and sender.machine is not None:
                    self._later(1, lambda: self._refused(sender, target))
                return
            deliver(member)

        if self.random.randrange(100) >= self.loss_percent:
            self._later(1 + self.random.randrange(3), arrive)

    def _refused(self, member: Member, peer: NodeId) -> None:
        if member.machine is None or frozenset({member.id, peer}) in self.cut:
            return
        if self.members[peer].machine is not None:
            return
        if member.fetching is not None and member.fetching[0] == peer:
            member.fetching = None
        self._step(member, q.PeerRefused(peer))

    def _step(self, member: Member, event: object) -> None:
        if member.machine is not None:
            self._carry_out(member, member.machine.step(event, self.now))
            self._check()

    def _carry_out(self, member: Member, effects: list[object]) -> None:
        if not member.machine.is_in_doubt and member.held.end > member.end:
            member.held = Held(member.end)
        for effect in effects:
            self._one(member, effect)

    def _one(self, member: Member, effect: object) -> None:
        me = member.id
        machine = member.machine
        match effect:
            case q.SaveQuorumState():
                assert member.saved is None or effect.state.epoch >= member.saved.epoch
                if member.saved is not None and effect.state.epoch == member.saved.epoch:
                    assert member.saved.voted in (None, effect.state.voted), "voted twice"
                if member.saved is None or effect.state.epoch > member.saved.epoch:
                    self.epochs_begun = max(self.epochs_begun, effect.state.epoch)
                member.saved = effect.state
            case q.AnswerPeer():
                source, request = self._tickets.pop(effect.ticket)[1:]
                self._answer(member, source, request, effect)
            case q.RequestVote():
                asked = machine.voters.voters[effect.to].key
                self._request(
                    me,
                    effect.to,
                    effect,
                    lambda ticket: q.VoteRequested(
                        ticket, member.key, effect.epoch, effect.log_end, effect.pre_vote, asked
                    ),
                )
            case q.BeginEpoch():
                began = machine.voters.voters[effect.to].key
                self._request(
                    me,
                    effect.to,
                    effect,
                    lambda ticket: q.EpochBegun(ticket, me, effect.epoch, began),
                )
            case q.EndEpoch():
                self._request(
                    me,
                    effect.to,
                    effect,
                    lambda ticket: q.EpochEnded(ticket, me, effect.epoch, effect.successors),
                )
            case q.FollowLeader():
                member.fetching = (effect.leader, effect.epoch)
                self._fetch(member)
            case q.StopFollowing():
                member.fetching = None
            case q.DiscoverLeader():
                asked_id = effect.ask
                if asked_id == NO_NODE:
                    asked_id = self.random.choice(list(self.members))
                self._send(me, asked_id, lambda other: self._tell_leader(other, me))
            case q.TakeLeadership():
                assert self.leaders.setdefault(effect.epoch, me) == me, "two leaders in one epoch"
                member.log.append(effect.epoch)
                member.grew()
                self._carry_out(member, machine.step(q.LogGrew(member.end), self.now))
            case q.Commit():
                self._commit(member, effect.to)
            case q.LoseLeadership():
                pass
            case _:
                raise AssertionError(effect)

    def _request(self, source: NodeId, target: NodeId, effect: object, event: object) -> None:
        def deliver(member: Member) -> None:
            ticket = next(self._ticket)
            self._tickets[ticket] = (target, source, effect)
            self._step(member, event(ticket))

        self._send(source, target, deliver)

    def _answer(self, member: Member, to: NodeId, request: object, answer: q.AnswerPeer) -> None:
        if isinstance(request, q.RequestVote):
            if answer.error is ErrorCode.invalid_voter_key:
                return
            event = q.VoteAnswered(
                member.id, answer.epoch, answer.leader, answer.granted, request.pre_vote
            )
            self._send(member.id, to, lambda other: self._step(other, event))
        else:
            event = q.EpochAcknowledged(member.id, answer.epoch, answer.leader, answer.error)
            self._send(member.id, to, lambda other: self._step(other, event))

    def _tell_leader(self, member: Member, to: NodeId) -> None:
        event = q.LeaderAnswered(member.id, member.machine.epoch, member.machine.leader, False)
        self._send(member.id, to, lambda other: self._step(other, event))

    # -- fetching from the leader -----------------------------------------------------------------

    def _fetch(self, member: Member) -> None:
        if member.fetching is None or member.machine is None:
            return
        leader, epoch = member.fetching
        end, incarnation = member.end, member.incarnation
        key = member.key
        self._send(member.id, leader, lambda other: self._serve_fetch(other, key, epoch, end))
        mine = member.fetching

        def again() -> None:
            if member.incarnation == incarnation and member.fetching == mine:
                self._fetch(member)

        self._later(FETCH_WAIT_MS, again)

    def _serve_fetch(self, leader: Member, key: ReplicaKey, epoch: int, end: LogEnd) -> None:
        machine, replica = leader.machine, key.id
        if machine.epoch != epoch or not isinstance(machine.role, Leader):
            self._tell_leader(leader, replica)
            return
        agreed = 0
        for mine in range(min(len(leader.log), end.offset), -1, -1):
            if mine == 0 or (leader.log[mine - 1] == end.epoch and mine == end.offset):
                agreed = mine
                break
        if end.offset and not agreed:
            matching = [i + 1 for i, e in enumerate(leader.log) if e <= end.epoch]
            cut = min(end.offset - 1, matching[-1] if matching else 0)
            self._send(
                leader.id, replica, lambda other: self._truncate(other, epoch, cut, leader.id)
            )
            return
        records, committed = leader.log[agreed:], machine.role.high_watermark
        self._step(leader, q.ReplicaFetched(key, agreed))
        self._send(
            leader.id,
            replica,
            lambda other: self._appended(other, epoch, agreed, records, committed, leader.id),
        )

    def _truncate(self, member: Member, epoch: int, cut: int, leader: NodeId) -> None:
        if member.fetching != (leader, epoch):
            return
        assert cut >= member.committed, "truncates what is committed"
        was_whole = member.held.end <= member.end
        del member.log[cut:]
        if was_whole:
            member.held = Held(member.end)
        self._log_changed(member)
        self._step(member, q.LeaderAnswered(leader, epoch, leader, True))

    def _appended(
        self,
        member: Member,
        epoch: int,
        base: int,
        records: list[int],
        committed: int,
        leader: NodeId,
    ) -> None:
        if member.fetching != (leader, epoch) or base != len(member.log):
            return
        self._step(member, q.LeaderAnswered(leader, epoch, leader, True))
        if member.machine is None or not isinstance(member.machine.role, Follower):
            return
        if records:
            member.log.extend(records)
            self._log_changed(member)
        self._commit(member, min(committed, len(member.log)))
        is_known = 0 < committed <= len(member.log) and member.log[committed - 1] == epoch
        if is_known and member.end.epoch == epoch:
            self._step(member, q.CaughtUp())
        if member.machine.is_retiring:
            self._log_changed(member)

    # -- checks of invariants ---------------------------------------------------------------------

    def _commit(self, member: Member, to: int) -> None:
        if to <= member.committed:
            return
        member.committed = to
        known = min(to, len(self.agreed))
        assert member.log[:known] == self.agreed[:known], "two members committed different records"
        if to > len(self.agreed):
            self.agreed = member.log[:to]

    def _check(self) -> None:
        leader = self.leader
        if leader is None or leader.machine.epoch < max(self.leaders):
            return  # this leader was replaced and does not know it yet
        if leader.log and leader.log[-1] == leader.machine.epoch:
            assert leader.log[: len(self.agreed)] == self.agreed, "a leader lacks committed records"
