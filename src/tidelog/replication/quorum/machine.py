"""One member of the metadata quorum as a state machine: events and time in, effects out.

Invariants: the epoch never goes back. A vote is saved before it is granted, and a member grants at
most one vote per epoch. An epoch has at most one leader. The high watermark covers only records
that a majority holds. It moves only if a majority also holds a record of the leader's epoch
(`commit.quorum_committed`).
"""

from typing import assert_never

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, Millis, NodeId
from tidelog.replication.commit import quorum_committed
from tidelog.replication.quorum import leading
from tidelog.replication.quorum.campaign import Campaign
from tidelog.replication.quorum.events import (
    BeginEpoch,
    CaughtUp,
    Commit,
    DiscoverLeader,
    EndEpoch,
    EpochAcknowledged,
    EpochBegun,
    EpochEnded,
    LeaderAnswered,
    LogGrew,
    PeerRefused,
    QuorumEffect,
    QuorumEvent,
    ReplicaFetched,
    ShutdownBegun,
    TimePassed,
    VoteAnswered,
    VoteRequested,
    VotersChanged,
)
from tidelog.replication.quorum.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from tidelog.replication.quorum.standing import STAGGER_MS
from tidelog.replication.quorum.vote_rules import grants


class QuorumMachine(Campaign):
    """Call `start` once, then `step` for every event; `TimePassed` is due at `next_deadline`."""

    def next_deadline(self) -> Millis | None:
        match self.role:
            case Leader():
                return leading.next_deadline(self.role, self.voters, self.me.id)
            case Resigned():
                return min(self.role.election_deadline, self.role.announce_deadline)
            case Follower():
                return self.role.fetch_deadline
            case Unattached():
                if not self.may_stand:
                    return self.role.next_discovery
                return min(self.role.election_deadline, self.role.next_discovery)
            case Prospective() | Candidate():
                return self.role.election_deadline

    # -- entry points ------------------------------------------------------------------------------

    def start(self, now: Millis) -> list[QuorumEffect]:
        saved = self._saved
        if saved.leader == self.me.id and self.is_voter and len(self.voters) > 1:
            # This member led the epoch and may have lost unsynced records. It must not lead the
            # same epoch again.
            self.role = Resigned(
                saved.epoch,
                election_deadline=now + self._stagger(),
                unacknowledged=set(self.voters.others(self.me.id)),
                announce_deadline=now,
            )
        elif saved.leader not in (NO_NODE, self.me.id):
            self._become_follower(saved.epoch, saved.leader, now, voted=saved.voted)
        else:
            self.role = Unattached(
                saved.epoch, election_deadline=now + self._stagger(), voted=saved.voted
            )
        self._pass_time(now)
        return self._take_effects()

    def step(self, event: QuorumEvent, now: Millis) -> list[QuorumEffect]:
        """Apply one event. The returned effects are carried out in order."""
        match event:
            case VoteRequested():
                self._vote_requested(event, now)
            case EpochBegun():
                self._epoch_begun(event, now)
            case EpochEnded():
                self._epoch_ended(event, now)
            case ReplicaFetched():
                self._replica_fetched(event, now)
            case VoteAnswered():
                self._vote_answered(event, now)
            case EpochAcknowledged():
                self._epoch_acknowledged(event, now)
            case LeaderAnswered():
                self._leader_answered(event, now)
            case PeerRefused():
                self._peer_refused(event.peer, now)
            case LogGrew():
                self.log_end = event.end
                self._commit(now)
            case CaughtUp():
                self._end_doubt()
            case VotersChanged():
                self.voters, self.voters_offset = event.voters, event.offset
                self.is_retiring = event.is_retiring
                self._voters_changed(now)
            case ShutdownBegun():
                if isinstance(self.role, Leader):
                    self._resign(now)
            case TimePassed():
                pass
            case _:
                assert_never(event)
        self._pass_time(now)
        return self._take_effects()

    # -- requests from peers -----------------------------------------------------------------------

    def _vote_requested(self, event: VoteRequested, now: Millis) -> None:
        if event.voter is not None and not event.voter.is_same(self.me):
            self._answer(event.ticket, ErrorCode.invalid_voter_key)
            return
        if event.epoch < self.role.epoch:
            self._answer(event.ticket, ErrorCode.fenced_leader_epoch)
            return
        if event.epoch > self.role.epoch:
            self._become_unattached(event.epoch, now)
        granted = grants(self.role, event, self.log_end) and self._may_elect(event.log_end)
        if granted and not event.pre_vote:
            self._take_part()
            self._become(
                Unattached(
                    self.role.epoch,
                    election_deadline=now + self._election_timeout(),
                    voted=event.candidate,
                )
            )
        self._answer(event.ticket, ErrorCode.none, granted=granted)

    def _epoch_begun(self, event: EpochBegun, now: Millis) -> None:
        if event.voter is not None and not event.voter.is_same(self.me):
            self._answer(event.ticket, ErrorCode.invalid_voter_key)
            return
        if event.epoch < self.role.epoch:
            self._answer(event.ticket, ErrorCode.fenced_leader_epoch)
            return
        self._learn(event.epoch, event.leader, now)
        self._answer(event.ticket, ErrorCode.none)

    def _epoch_ended(self, event: EpochEnded, now: Millis) -> None:
        if event.epoch < self.role.epoch:
            self._answer(event.ticket, ErrorCode.fenced_leader_epoch)
            return
        self._learn(event.epoch, event.leader, now)
        role = self.role
        if isinstance(role, Follower) and role.leader == event.leader and self.may_stand:
            role.leader_is_gone = True
            if self.me.id in event.successors:
                rank = event.successors.index(self.me.id)
            else:
                rank = len(event.successors)
            role.fetch_deadline = now + rank * STAGGER_MS
        self._answer(event.ticket, ErrorCode.none)

    def _replica_fetched(self, event: ReplicaFetched, now: Millis) -> None:
        if isinstance(self.role, Leader):
            leading.record_fetch(self.role, self.voters, event, self.log_end.offset, now)
            self._commit(now)

    # -- responses from peers ----------------------------------------------------------------------

    def _vote_answered(self, event: VoteAnswered, now: Millis) -> None:
        if event.epoch > self.role.epoch:
            self._learn(event.epoch, event.leader, now)
            return
        role = self.role
        if event.epoch < role.epoch or not isinstance(role, Prospective | Candidate):
            return
        if isinstance(role, Prospective) != event.pre_vote or event.voter not in self.voters.voters:
            return
        if event.granted:
            role.granted.add(event.voter)
        else:
            role.rejected.add(event.voter)
            # Other voters may still name a leader that is gone. Only the leader's own answer proves
            # that it is alive.
            is_old_news = (
                isinstance(role, Prospective)
                and role.leader_is_gone
                and event.leader == role.last_leader != event.voter
            )
            if event.leader not in (NO_NODE, self.me.id) and not is_old_news:
                self._learn(event.epoch, event.leader, now)
                return
        self._count_votes(now)

    def _epoch_acknowledged(self, event: EpochAcknowledged, now: Millis) -> None:
        if event.epoch > self.role.epoch:
            self._learn(event.epoch, event.leader, now)
        elif event.error is ErrorCode.none and isinstance(self.role, Leader | Resigned):
            self.role.unacknowledged.discard(event.voter)

    def _leader_answered(self, event: LeaderAnswered, now: Millis) -> None:
        if event.epoch < self.role.epoch:
            return
        if event.leader != self.me.id:
            self._learn(event.epoch, event.leader, now)
        role = self.role
        if event.is_success and isinstance(role, Follower) and role.leader == event.source:
            role.has_fetched = True
            role.leader_is_gone = False
            self.last_sign = event.source, now
            role.fetch_deadline = self._fetch_deadline(role.leader, now)

    def _peer_refused(self, peer: NodeId, now: Millis) -> None:
        role = self.role
        if isinstance(role, Follower) and role.leader == peer:
            if not role.leader_is_gone:
                self.last_sign = peer, now
            role.leader_is_gone = True
            if self.may_stand:
                role.fetch_deadline = min(role.fetch_deadline, now + self._turn_after(peer))
            else:
                self._become_unattached(role.epoch, now)
        elif isinstance(role, Prospective | Candidate) and peer in self.voters.voters:
            role.rejected.add(peer)
            self._count_votes(now)

    # -- timed work and commits --------------------------------------------------------------------

    def _pass_time(self, now: Millis) -> None:
        match self.role:
            case Unattached() as role:
                if self.may_stand and now >= role.election_deadline:
                    self._become_prospective(now)
                elif now >= role.next_discovery:
                    self._discover(role, now)
            case Follower() as role if now >= role.fetch_deadline:
                if self.may_stand:
                    self._become_prospective(now)
                else:
                    self._become_unattached(role.epoch, now)
                    self._pass_time(now)
            case Prospective() | Candidate() as role if now >= role.election_deadline:
                self._become_prospective(now)
            case Leader() as role:
                if leading.has_lost_majority(
                    role, self.voters, self.me.id, now, self._timeouts.check_quorum_ms
                ):
                    self._resign(now)
                elif now >= role.announce_deadline:
                    self._announce(role, now)
            case Resigned() as role:
                if now >= role.announce_deadline:
                    self._announce_end(role, now)
                if now >= role.election_deadline:
                    # The member may vote and stand for election again from the next epoch on.
                    self._become_unattached(role.epoch + 1, now)
            case _:
                pass

    def _discover(self, role: Unattached, now: Millis) -> None:
        others = self.voters.others(self.me.id)
        if self._has_bootstrap_servers and not self.is_voter:
            # All known voters may be gone, so also ask the bootstrap servers, one after another.
            others.append(NO_NODE)
        role.next_discovery = now + self._timeouts.election_ms // 4
        if others:
            self._discovery += 1
            self._effects.append(DiscoverLeader(others[self._discovery % len(others)], role.epoch))

    def _announce(self, role: Leader, now: Millis) -> None:
        for voter in sorted(role.unacknowledged):
            self._effects.append(BeginEpoch(voter, role.epoch))
        role.announce_deadline = now + self._timeouts.fetch_ms // 4

    def _announce_end(self, role: Resigned, now: Millis) -> None:
        for voter in sorted(role.unacknowledged):
            self._effects.append(EndEpoch(voter, role.epoch, role.successors))
        role.announce_deadline = now + self._timeouts.fetch_ms // 4

    def _voters_changed(self, now: Millis) -> None:
        role = self.role
        if isinstance(role, Leader):
            leading.change_voters(role, self.voters, self.me.id)
            role.announce_deadline = now
            self._commit(now)

    def _commit(self, now: Millis) -> None:
        role = self.role
        if not isinstance(role, Leader):
            return
        ends = leading.voter_ends(role, self.voters, self.me.id, self.log_end.offset)
        committed = quorum_committed(ends, list(self.voters), role.epoch_start, role.high_watermark)
        if committed > role.high_watermark:
            role.high_watermark = committed
            self._effects.append(Commit(committed))
        if not self.is_voter and role.high_watermark > self.voters_offset:
            # The leader's own removal is committed. A leader that removes itself resigns only now,
            # because until the commit its log may be the only one with the record (F38).
            self.is_retiring = False
            self._resign(now)
