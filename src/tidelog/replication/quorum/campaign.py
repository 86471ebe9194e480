"""Elections: a voter requests pre-votes, opens an epoch, counts votes, leads and resigns."""

from tidelog.model.ids import NO_NODE, Millis, Offset
from tidelog.replication.quorum import leading
from tidelog.replication.quorum.events import RequestVote, TakeLeadership
from tidelog.replication.quorum.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from tidelog.replication.quorum.standing import Standing
from tidelog.replication.quorum.vote_rules import can_no_longer_win, has_won

FIRST_BACKOFF_MS = 25


class Campaign(Standing):
    """The election side of a quorum member."""

    def _become_prospective(self, now: Millis) -> None:
        """Request pre-votes; if there is only one voter, it wins at once with its own vote."""
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
        self._take_part()
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

    def epoch_started(self, at: Offset) -> None:
        """Set the offset of the leader's first record. Unsynced records may precede it.

        Only a record of the leader's own epoch is committed by counting replicas, because a record
        of an earlier epoch can still be lost.
        """
        assert isinstance(self.role, Leader)
        assert at >= self.role.epoch_start
        self.role.epoch_start = at

    def _resign(self, now: Millis) -> None:
        role = self.role
        assert isinstance(role, Leader)
        # A member that is not a voter never stands for election, so it looks for a leader sooner.
        patience = self._election_timeout() if self.is_voter else self._timeouts.election_ms // 4
        self._become(
            Resigned(
                role.epoch,
                election_deadline=now + patience,
                unacknowledged=set(self.voters.others(self.me.id)),
                announce_deadline=now,
                successors=leading.successors(role, self.voters, self.me.id),
            )
        )
