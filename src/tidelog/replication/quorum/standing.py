"""The role and the durable state of a quorum member, and every transition between roles.

Invariants: the epoch never goes back. Within an epoch only the transitions in `roles.TRANSITIONS`
happen. State that must survive a crash is saved before any message that depends on it is sent.
"""

from tidelog.model.dice import Dice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, LeaderEpoch, Millis, NodeId, Offset
from tidelog.replication.quorum.events import (
    AnswerPeer,
    FollowLeader,
    LoseLeadership,
    QuorumEffect,
    SaveQuorumState,
    StopFollowing,
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
    UNKNOWN,
    Held,
    LogEnd,
    QuorumState,
    QuorumTimeouts,
    ReplicaKey,
    VoterSet,
)

STAGGER_MS = 40
"""When a leader fails, voters stand for election one after another, at this interval, so that votes
do not split.
"""


class Standing:
    def __init__(
        self,
        me: ReplicaKey,
        voters: VoterSet,
        saved: QuorumState | None,
        log_end: LogEnd,
        timeouts: QuorumTimeouts,
        dice: Dice,
        has_bootstrap_servers: bool = False,
        held: Held | None = None,
    ) -> None:
        self.me = me
        self.voters = voters
        self.voters_offset: Offset = -1
        self.is_retiring = False
        self._has_bootstrap_servers = has_bootstrap_servers
        self.log_end = log_end
        self._timeouts = timeouts
        self._dice = dice
        self._saved = saved if saved is not None else QuorumState()
        if held is None:
            is_new = saved is None and log_end.offset == 0
            held = Held(UNKNOWN, is_fresh=True) if is_new else Held()
        self.held = held
        self._effects: list[QuorumEffect] = []
        self._discovery = 0
        self.role: Role = Unattached(self._saved.epoch, election_deadline=0)
        self.last_sign: tuple[NodeId, Millis] | None = None
        """The last followed leader, and when it last answered or first refused a connection."""

    # -- queries, which change nothing -------------------------------------------------------------

    @property
    def epoch(self) -> LeaderEpoch:
        return self.role.epoch

    @property
    def is_voter(self) -> bool:
        return self.me in self.voters

    @property
    def may_stand(self) -> bool:
        """Whether this member may be a candidate.

        A voter may be a candidate. A removed voter may be one until its removal is committed (ADR
        7). A member must not be a candidate while its log lacks records that it may have
        acknowledged.
        """
        return (self.is_voter or self.is_retiring) and (not self.is_in_doubt or self._is_new)

    @property
    def is_in_doubt(self) -> bool:
        """Whether the log lacks records that this voter may have acknowledged to a leader."""
        return self.log_end < self.held.end

    @property
    def _is_new(self) -> bool:
        """Whether this may be the first start of a new cluster."""
        return self.held.is_fresh and self.log_end.offset == 0

    def _may_elect(self, candidate: LogEnd) -> bool:
        """Whether a leader with this log holds every record that this voter may have acknowledged.

        A new voter cannot know whether it was a voter before its disk was wiped (F40). It votes
        only for a candidate with an empty log, as in a new cluster.
        """
        if not self.is_in_doubt:
            return True
        return candidate.offset == 0 if self._is_new else candidate >= self.held.end

    @property
    def leader(self) -> NodeId:
        """The known leader of this epoch; -1 when it is unknown."""
        match self.role:
            case Leader():
                return self.me.id
            case Follower():
                return self.role.leader
            case _:
                return NO_NODE

    # -- transitions between roles -----------------------------------------------------------------

    def _learn(self, epoch: LeaderEpoch, leader: NodeId, now: Millis) -> None:
        """Apply a peer's report about the leader of our epoch or of a newer epoch."""
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
                next_discovery=now + (self._timeouts.election_ms // 4 if self.may_stand else 0),
            )
        )

    def _become_follower(
        self, epoch: LeaderEpoch, leader: NodeId, now: Millis, voted: ReplicaKey | None = None
    ) -> None:
        self._become(Follower(epoch, leader, self._fetch_deadline(leader, now), voted=voted))
        self._effects.append(FollowLeader(leader, epoch))

    def _become(self, role: Role) -> None:
        old = self.role
        if role.epoch == old.epoch:
            assert type(role) in TRANSITIONS[type(old)], f"{old} -> {role}"
        else:
            assert role.epoch > old.epoch, f"{old} -> {role}"
            assert isinstance(role, ENTRIES_INTO_HIGHER_EPOCH), f"{old} -> {role}"
        self.role = role
        self._save()
        if isinstance(old, Leader):
            self._effects.append(LoseLeadership(old.epoch))
        elif isinstance(old, Follower) and not isinstance(role, Follower):
            self._effects.append(StopFollowing())

    def _save(self) -> None:
        role = self.role
        state = QuorumState(role.epoch, self._leader_to_save(role), self._vote_to_save(role))
        if state != self._saved:
            self._saved = state
            self._effects.append(SaveQuorumState(state))

    def _take_part(self) -> None:
        """Clear `is_in_doubt` for a new voter that takes part in an election of a new cluster."""
        if self._is_new:
            self.held = Held()

    def _end_doubt(self) -> None:
        """Clear `is_in_doubt`: the log again holds all records that this voter helped to commit."""
        role = self.role
        if self.held.end == UNKNOWN and isinstance(role, Follower) and role.voted is None:
            role.voted = self.me  # the member may have voted in this epoch; it must not vote again
        self.held = Held()
        self._save()

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
                return self.me

    def _answer(self, ticket: int, error: ErrorCode, granted: bool = False) -> None:
        self._effects.append(AnswerPeer(ticket, error, self.role.epoch, self.leader, granted))

    def _take_effects(self) -> list[QuorumEffect]:
        effects, self._effects = self._effects, []
        return effects

    # -- election deadlines ------------------------------------------------------------------------

    def _election_timeout(self) -> Millis:
        return self._timeouts.election_ms + self._dice.below(self._timeouts.election_ms)

    def _fetch_deadline(self, leader: NodeId, now: Millis) -> Millis:
        """When to give up on a leader that no longer answers.

        All voters lose the leader at the same moment, so each voter has a different deadline. If
        two voters stood for election at the same moment, they would split the votes and wait for
        another election timeout.
        """
        return now + self._timeouts.fetch_ms + self._turn_after(leader)

    def _turn_after(self, leader: NodeId) -> Millis:
        """How long this voter waits, so that voters with lower ids stand for election first."""
        return STAGGER_MS * sum(id != leader and id < self.me.id for id in self.voters)

    def _stagger(self) -> Millis:
        """How long this member waits after its start before its first election.

        The delay may be shorter than an election timeout, because a pre-vote does not disrupt a
        leader.
        """
        if not self.is_voter:
            return 0
        rank = list(self.voters).index(self.me.id)
        return rank * STAGGER_MS if len(self.voters) > 1 else 0
