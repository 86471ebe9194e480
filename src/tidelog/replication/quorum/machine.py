"""One member of the metadata quorum as a step machine: events and time in, effects out.

Invariants: the epoch never goes back; a vote is saved before it is given, and given once per epoch;
at most one leader per epoch; the high watermark covers only what a majority holds, and only once
that includes a record of the leader's own epoch (`commit.quorum_committed`).
"""

from typing import assert_never

from tidelog.model.dice import Dice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, LeaderEpoch, Millis, NodeId
from tidelog.replication.commit import quorum_committed
from tidelog.replication.quorum import leading
from tidelog.replication.quorum.election import can_no_longer_win, grants, has_won
from tidelog.replication.quorum.events import (
    AnswerPeer,
    BeginEpoch,
    Commit,
    DiscoverLeader,
    EndEpoch,
    EpochAcknowledged,
    EpochBegun,
    EpochEnded,
    FollowLeader,
    LeaderAnswered,
    LogGrew,
    LoseLeadership,
    PeerRefused,
    QuorumEffect,
    QuorumEvent,
    ReplicaFetched,
    RequestVote,
    SaveQuorumState,
    ShutdownBegun,
    StopFollowing,
    TakeLeadership,
    TimePassed,
    VoteAnswered,
    VoteRequested,
    VotersChanged,
)
from tidelog.replication.quorum.roles import (
    ENTRIES_INTO_HIGHER_EPOCH,
    TRANSITIONS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from tidelog.replication.quorum.state import (
    LogEnd,
    QuorumState,
    QuorumTimeouts,
    ReplicaKey,
    VoterSet,
)

STAGGER_MS = 40
"""Voters that see the same leader vanish stand for election one after another, not all at once."""
FIRST_BACKOFF_MS = 25


class QuorumMachine:
    def __init__(
        self,
        me: ReplicaKey,
        voters: VoterSet,
        saved: QuorumState | None,
        log_end: LogEnd,
        timeouts: QuorumTimeouts,
        dice: Dice,
    ) -> None:
        self.me = me
        self.voters = voters
        self.log_end = log_end
        self._timeouts = timeouts
        self._dice = dice
        self._saved = saved if saved is not None else QuorumState()
        # Without its old promises a voter cannot know whom it voted for (F40): until it has
        # learnt of a leader it votes only where nobody has anything to lose.
        self._is_fresh = saved is None and log_end.offset == 0
        self._effects: list[QuorumEffect] = []
        self._discovery = 0
        self.role: Role = Unattached(self._saved.epoch, election_deadline=0)

    # -- what others may know ----------------------------------------------------------------------

    @property
    def epoch(self) -> LeaderEpoch:
        return self.role.epoch

    @property
    def is_voter(self) -> bool:
        return self.me in self.voters

    @property
    def leader(self) -> NodeId:
        """The leader of this epoch as far as it is known here; -1 when it is not."""
        match self.role:
            case Leader():
                return self.me.id
            case Follower():
                return self.role.leader
            case _:
                return NO_NODE

    def next_deadline(self) -> Millis | None:
        match self.role:
            case Leader():
                return leading.next_deadline(self.role, self.voters, self.me.id)
            case Resigned():
                return min(self.role.election_deadline, self.role.announce_deadline)
            case Follower():
                return self.role.fetch_deadline
            case Unattached():
                if not self.is_voter:
                    return self.role.next_discovery
                return min(self.role.election_deadline, self.role.next_discovery)
            case Prospective() | Candidate():
                return self.role.election_deadline

    # -- the only ways in --------------------------------------------------------------------------

    def start(self, now: Millis) -> list[QuorumEffect]:
        saved = self._saved
        if saved.leader == self.me.id and self.is_voter and len(self.voters) > 1:
            # It led this epoch and may have lost what it had not synced: never lead it again.
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
                self._is_fresh = False
                self._commit()
            case VotersChanged():
                self.voters = event.voters
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

    # -- requests of peers -------------------------------------------------------------------------

    def _vote_requested(self, event: VoteRequested, now: Millis) -> None:
        if event.voter is not None and not event.voter.is_same(self.me):
            self._answer(event.ticket, ErrorCode.invalid_voter_key)
            return
        if event.epoch < self.role.epoch:
            self._answer(event.ticket, ErrorCode.fenced_leader_epoch)
            return
        if event.epoch > self.role.epoch:
            self._become_unattached(event.epoch, now)
        granted = grants(self.role, event, self.log_end) and not (
            self._is_fresh and event.log_end.offset > 0
        )
        if granted and not event.pre_vote:
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
        if isinstance(role, Follower) and role.leader == event.leader and self.is_voter:
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
            self._commit()

    # -- answers of peers --------------------------------------------------------------------------

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
            if event.leader not in (NO_NODE, self.me.id) and not (
                isinstance(role, Prospective)
                and role.leader_is_gone
                and event.leader == role.last_leader
            ):
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
            role.fetch_deadline = now + self._timeouts.fetch_ms

    def _peer_refused(self, peer: NodeId, now: Millis) -> None:
        role = self.role
        if isinstance(role, Follower) and role.leader == peer:
            role.leader_is_gone = True
            if self.is_voter:
                candidates = [id for id in self.voters if id != peer]
                rank = candidates.index(self.me.id)
                role.fetch_deadline = min(role.fetch_deadline, now + rank * STAGGER_MS)
            else:
                self._become_unattached(role.epoch, now)
        elif isinstance(role, Prospective | Candidate) and peer in self.voters.voters:
            role.rejected.add(peer)
            self._count_votes(now)

    # -- time --------------------------------------------------------------------------------------

    def _pass_time(self, now: Millis) -> None:
        match self.role:
            case Unattached() as role:
                if self.is_voter and now >= role.election_deadline:
                    self._become_prospective(now)
                elif now >= role.next_discovery:
                    self._discover(role, now)
            case Follower() as role if now >= role.fetch_deadline:
                if self.is_voter:
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
                    # The next epoch is the first in which it may stand or vote again.
                    self._become_unattached(role.epoch + 1, now)
            case _:
                pass

    def _discover(self, role: Unattached, now: Millis) -> None:
        others = self.voters.others(self.me.id)
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

    # -- elections ---------------------------------------------------------------------------------

    def _become_prospective(self, now: Millis) -> None:
        """Ask who would vote for us; with no one else to ask, the answer is known."""
        old = self.role
        assert isinstance(old, Unattached | Follower | Prospective | Candidate)
        gone = isinstance(old, Follower | Prospective) and old.leader_is_gone
        last = NO_NODE
        if isinstance(old, Follower):
            last = old.leader
        elif isinstance(old, Prospective):
            last = old.last_leader
        role = Prospective(
            old.epoch,
            election_deadline=now + self._election_timeout(),
            granted={self.me.id},
            voted=self.me if isinstance(old, Candidate) else old.voted,
            last_leader=last,
            leader_is_gone=gone,
            rounds=old.rounds + 1 if isinstance(old, Prospective | Candidate) else 0,
        )
        self._become(role)
        if has_won(role.granted, self.voters):
            self._become_candidate(now)
            return
        for voter in self.voters.others(self.me.id):
            self._effects.append(RequestVote(voter, role.epoch, self.log_end, pre_vote=True))

    def _become_candidate(self, now: Millis) -> None:
        old = self.role
        assert isinstance(old, Prospective)
        role = Candidate(
            old.epoch + 1,
            election_deadline=now + self._election_timeout(),
            granted={self.me.id},
            rounds=old.rounds,
        )
        self._become(role)
        if has_won(role.granted, self.voters):
            self._become_leader(now)
            return
        for voter in self.voters.others(self.me.id):
            self._effects.append(RequestVote(voter, role.epoch, self.log_end, pre_vote=False))

    def _count_votes(self, now: Millis) -> None:
        role = self.role
        assert isinstance(role, Prospective | Candidate)
        if has_won(role.granted, self.voters):
            if isinstance(role, Prospective):
                self._become_candidate(now)
            else:
                self._become_leader(now)
        elif can_no_longer_win(role.rejected, self.voters) and not role.is_backing_off:
            role.is_backing_off = True
            base = min(
                FIRST_BACKOFF_MS << min(role.rounds, 8), self._timeouts.election_backoff_max_ms
            )
            role.election_deadline = now + base + self._dice.below(base)

    def _become_leader(self, now: Millis) -> None:
        old = self.role
        assert isinstance(old, Candidate)
        others = self.voters.others(self.me.id)
        self._is_fresh = False
        self._become(
            Leader(
                old.epoch,
                epoch_start=self.log_end.offset,
                progress=leading.first_progress(self.voters),
                unacknowledged=set(others),
                announce_deadline=now,
                check_quorum_deadline=now + self._timeouts.check_quorum_ms,
            )
        )
        self._effects.append(
            TakeLeadership(old.epoch, tuple(self.voters), tuple(sorted(old.granted)))
        )

    def _resign(self, now: Millis) -> None:
        role = self.role
        assert isinstance(role, Leader)
        self._become(
            Resigned(
                role.epoch,
                election_deadline=now + self._election_timeout(),
                unacknowledged=set(self.voters.others(self.me.id)),
                announce_deadline=now,
                successors=leading.successors(role, self.voters, self.me.id),
            )
        )

    def _voters_changed(self, now: Millis) -> None:
        role = self.role
        if isinstance(role, Leader):
            leading.change_voters(role, self.voters, self.me.id)
            role.announce_deadline = now
            self._commit()

    def _commit(self) -> None:
        role = self.role
        if not isinstance(role, Leader):
            return
        ends = leading.voter_ends(role, self.voters, self.me.id, self.log_end.offset)
        committed = quorum_committed(ends, list(self.voters), role.epoch_start, role.high_watermark)
        if committed > role.high_watermark:
            role.high_watermark = committed
            self._effects.append(Commit(committed))

    # -- transitions -------------------------------------------------------------------------------

    def _learn(self, epoch: LeaderEpoch, leader: NodeId, now: Millis) -> None:
        """Somebody says who leads an epoch that is not older than ours."""
        assert epoch >= self.role.epoch
        if epoch > self.role.epoch:
            if leader in (NO_NODE, self.me.id):
                self._become_unattached(epoch, now)
            else:
                self._become_follower(epoch, leader, now)
        elif leader not in (NO_NODE, self.me.id) and isinstance(
            self.role, Unattached | Prospective | Candidate
        ):
            voted = self.me if isinstance(self.role, Candidate) else self.role.voted
            self._become_follower(epoch, leader, now, voted=voted)

    def _become_unattached(self, epoch: LeaderEpoch, now: Millis) -> None:
        voted = None
        if epoch == self.role.epoch and isinstance(self.role, Follower | Prospective | Unattached):
            voted = self.role.voted
        self._become(
            Unattached(
                epoch,
                election_deadline=now + self._election_timeout(),
                voted=voted,
                next_discovery=now + (self._timeouts.election_ms // 4 if self.is_voter else 0),
            )
        )

    def _become_follower(
        self, epoch: LeaderEpoch, leader: NodeId, now: Millis, voted: ReplicaKey | None = None
    ) -> None:
        self._become(Follower(epoch, leader, now + self._timeouts.fetch_ms, voted=voted))
        self._effects.append(FollowLeader(leader, epoch))

    def _become(self, role: Role) -> None:
        old = self.role
        if role.epoch == old.epoch:
            assert type(role) in TRANSITIONS[type(old)], f"{old} -> {role}"
        else:
            assert role.epoch > old.epoch, f"{old} -> {role}"
            assert isinstance(role, ENTRIES_INTO_HIGHER_EPOCH), f"{old} -> {role}"
        self.role = role
        state = QuorumState(role.epoch, self._leader_to_save(role), self._vote_to_save(role))
        if state != self._saved:
            self._saved = state
            self._effects.append(SaveQuorumState(state))
        if isinstance(old, Leader):
            self._effects.append(LoseLeadership(old.epoch))
        elif isinstance(old, Follower) and not isinstance(role, Follower):
            self._effects.append(StopFollowing())

    def _leader_to_save(self, role: Role) -> NodeId:
        match role:
            case Leader() | Resigned():
                return self.me.id
            case Follower():
                return role.leader
            case Prospective():
                return role.last_leader
            case _:
                return NO_NODE

    def _vote_to_save(self, role: Role) -> ReplicaKey | None:
        match role:
            case Candidate():
                return self.me
            case Unattached() | Prospective() | Follower():
                return role.voted
            case Leader() | Resigned():
                return self.me if self.is_voter else None

    def _answer(self, ticket: int, error: ErrorCode, granted: bool = False) -> None:
        self._effects.append(AnswerPeer(ticket, error, self.role.epoch, self.leader, granted))

    def _take_effects(self) -> list[QuorumEffect]:
        effects, self._effects = self._effects, []
        return effects

    # -- dice --------------------------------------------------------------------------------------

    def _election_timeout(self) -> Millis:
        return self._timeouts.election_ms + self._dice.below(self._timeouts.election_ms)

    def _stagger(self) -> Millis:
        """At start a pre-vote harms nobody, so there is no need to wait out a whole timeout."""
        if not self.is_voter:
            return 0
        rank = list(self.voters).index(self.me.id)
        return rank * STAGGER_MS if len(self.voters) > 1 else 0
