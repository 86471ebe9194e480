"""The voter set and its changes; each change adds, removes or updates one voter (KIP-853).

Invariants: each change is a VotersRecord in the log, which takes effect when it is appended, even
before it is committed. No change begins while another change is uncommitted. Two voter sets that
are in effect at the same time therefore differ by at most one voter, and their majorities share a
voter (F39). No change begins before the leader has committed a record of its own epoch.
"""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, NodeId, Offset
from tidelog.replication.quorum.roles import Leader, ReplicaProgress
from tidelog.replication.quorum.state import ReplicaKey, Voter, VoterSet

STATIC, DYNAMIC = 0, 1
"""Levels of kraft.version. At level 0 the configuration lists the voters, at level 1 the log."""


class VoterMembership(NamedTuple):
    """The kraft.version and the voters in a snapshot; at level 0 there are no voters."""

    kraft_version: int = STATIC
    voters: VoterSet | None = None


class VoterChangeRefused(NamedTuple):
    error: ErrorCode
    message: str


class VoterHistory:
    """The voter sets in the log, by the offsets of their records."""

    def __init__(self, configured: VoterSet) -> None:
        self._configured = configured
        self._voters: list[tuple[Offset, VoterSet]] = []
        self._levels: list[tuple[Offset, int]] = []

    @property
    def latest(self) -> VoterSet:
        """The voters that are in effect now."""
        return self._voters[-1][1] if self._voters else self._configured

    @property
    def latest_offset(self) -> Offset:
        """The offset of the record in effect; -1 if the voters come from the configuration."""
        return self._voters[-1][0] if self._voters else -1

    def is_retiring(self, me: ReplicaKey, committed: Offset) -> bool:
        """Whether the newest VotersRecord removes this voter and is not known to be committed."""
        if me in self.latest or self.latest_offset < committed:
            return False
        before = self._voters[-2][1] if len(self._voters) > 1 else self._configured
        return me in before

    @property
    def kraft_version(self) -> int:
        return self._levels[-1][1] if self._levels else STATIC

    def below(self, end: Offset) -> VoterMembership:
        """The voters in a snapshot that ends at `end`."""
        levels = [level for offset, level in self._levels if offset < end]
        voters = [voters for offset, voters in self._voters if offset < end]
        return VoterMembership(levels[-1] if levels else STATIC, voters[-1] if voters else None)

    def voters_appended(self, offset: Offset, voters: VoterSet) -> None:
        assert offset > self.latest_offset
        self._voters.append((offset, voters))

    def level_appended(self, offset: Offset, level: int) -> None:
        self._levels.append((offset, level))

    def truncate(self, end: Offset) -> None:
        """Restore the voters that were in effect before the truncated records."""
        self._voters = [entry for entry in self._voters if entry[0] < end]
        self._levels = [entry for entry in self._levels if entry[0] < end]

    def restart(self, end: Offset, known: VoterMembership) -> None:
        """Replace the whole history with the voters in a snapshot that ends at `end`."""
        self._levels = [(end - 1, known.kraft_version)] if known.kraft_version else []
        self._voters = [(end - 1, known.voters)] if known.voters is not None else []


def text_of(key: ReplicaKey) -> str:
    """The directory id as Kafka prints it."""
    return urlsafe_b64encode((key.directory or UUID(int=0)).bytes).decode().rstrip("=")


def refuse_any(role: Leader, kraft_version: int, changed_at: Offset) -> VoterChangeRefused | None:
    """The reason why no change of the voters can begin now; None if a change can begin."""
    if kraft_version < DYNAMIC:
        return VoterChangeRefused(
            ErrorCode.unsupported_version,
            f"Cluster doesn't support changing voters: kraft.version is {kraft_version}.",
        )
    if role.high_watermark <= role.epoch_start:
        return VoterChangeRefused(
            ErrorCode.request_timed_out,
            "The leader has not committed a record of its epoch yet.",
        )
    if changed_at >= role.high_watermark:
        return VoterChangeRefused(
            ErrorCode.request_timed_out,
            "The voters are being changed already: the last change is not committed yet.",
        )
    return None


def without_directory_id(
    voters: VoterSet, me: ReplicaKey, directories: Mapping[NodeId, UUID]
) -> list[NodeId]:
    """The other voters whose directory id is unknown."""
    return [voter for voter in voters.others(me.id) if voter not in directories]


def made_dynamic(voters: VoterSet, me: Voter, directories: Mapping[NodeId, UUID]) -> VoterSet:
    """The configured voters, each with its directory id, for the first VotersRecord."""
    assert not without_directory_id(voters, me.key, directories)
    keyed = {
        id: voters.voters[id]._replace(key=ReplicaKey(id, directories[id]))
        for id in voters.others(me.key.id)
    }
    return VoterSet({**keyed, me.key.id: me})


def add(
    voters: VoterSet,
    voter: Voter,
    progress: Mapping[ReplicaKey, ReplicaProgress],
    now: Millis,
    patience: Millis,
) -> VoterSet | VoterChangeRefused:
    """Add a voter, which must have caught up with the leader recently."""
    known = voters.voters.get(voter.key.id)
    if known is not None:
        return VoterChangeRefused(
            ErrorCode.duplicate_voter,
            f"The voter id {voter.key.id} is already part of the set of voters "
            f"with directory {text_of(known.key)}.",
        )
    seen = progress.get(voter.key)
    if seen is None or seen.last_caught_up < 0 or now - seen.last_caught_up > patience:
        return VoterChangeRefused(
            ErrorCode.request_timed_out,
            f"Aborted add voter operation for {voter.key.id} since it is lagging behind.",
        )
    return voters.with_voter(voter)


def remove(voters: VoterSet, key: ReplicaKey) -> VoterSet | VoterChangeRefused:
    """Remove a voter, which may be the leader itself."""
    known = voters.voters.get(key.id)
    if known is None or known.key != key:
        return VoterChangeRefused(
            ErrorCode.voter_not_found,
            f"Cannot remove voter {key.id} with directory {text_of(key)} "
            "since it is not part of the set of voters.",
        )
    if len(voters) == 1:
        return VoterChangeRefused(
            ErrorCode.invalid_request, f"Cannot remove voter {key.id} since it is the only one."
        )
    return voters.without(key.id)


def update(voters: VoterSet, voter: Voter, kraft_version: int) -> VoterSet | VoterChangeRefused:
    """Change the endpoints or the supported versions of a voter."""
    known = voters.voters.get(voter.key.id)
    if known is None or known.key != voter.key:
        return VoterChangeRefused(
            ErrorCode.voter_not_found,
            f"{voter.key.id} with directory {text_of(voter.key)} is not part of the set of voters.",
        )
    unsupported = check_level(voter, kraft_version)
    return unsupported if unsupported is not None else voters.with_voter(voter)


def check_level(voter: Voter, kraft_version: int) -> VoterChangeRefused | None:
    if voter.min_version <= kraft_version <= voter.max_version:
        return None
    return VoterChangeRefused(
        ErrorCode.invalid_request,
        f"Voter {voter.key.id} supports kraft.version {voter.min_version} to "
        f"{voter.max_version} and not {kraft_version}.",
    )
