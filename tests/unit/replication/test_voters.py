"""The voters in a log, and the rules for changing them."""

from uuid import UUID

from tidelog.model.errors import ErrorCode
from tidelog.replication.quorum.state import ReplicaKey, Voter, VoterSet
from tidelog.replication.quorum.voters import (
    DYNAMIC,
    STATIC,
    VoterChangeRefused,
    VoterHistory,
    VoterMembership,
    remove,
    update,
)


def key(id_: int, directory: int = 1) -> ReplicaKey:
    return ReplicaKey(id_, UUID(int=directory))


def voters(*ids: int) -> VoterSet:
    return VoterSet({id_: Voter(key(id_)) for id_ in ids})


def test_the_configuration_counts_until_a_log_names_voters() -> None:
    history = VoterHistory(voters(1))
    assert (history.latest, history.latest_offset) == (voters(1), -1)
    assert history.below(100) == VoterMembership(STATIC, None)


def test_the_newest_voters_count_and_those_before_them_once_they_are_cut_away() -> None:
    history = VoterHistory(voters())
    history.restart(0, VoterMembership(DYNAMIC, voters(1)))
    history.voters_appended(5, voters(1, 2))
    history.voters_appended(9, voters(2))
    assert (history.latest, history.latest_offset) == (voters(2), 9)
    assert history.below(9) == VoterMembership(DYNAMIC, voters(1, 2))
    history.truncate(9)
    assert (history.latest, history.latest_offset) == (voters(1, 2), 5)
    history.truncate(5)
    assert (history.latest, history.latest_offset) == (voters(1), -1)
    assert history.kraft_version == DYNAMIC


def test_who_is_removed_retires_until_that_is_known_to_be_committed() -> None:
    history = VoterHistory(voters(1, 2))
    history.voters_appended(9, voters(2))
    assert history.is_retiring(key(1), committed=9)
    assert not history.is_retiring(key(1), committed=10)
    assert not history.is_retiring(key(2), committed=9)
    assert not history.is_retiring(key(3), committed=9), "it never voted"


def test_a_voter_is_an_id_and_a_directory() -> None:
    other = remove(voters(1, 2), key(2, directory=7))
    assert isinstance(other, VoterChangeRefused)
    assert other.error is ErrorCode.voter_not_found
    moved = Voter(key(2), (("CONTROLLER", "elsewhere", 1),))
    changed = update(voters(1, 2), moved, DYNAMIC)
    assert isinstance(changed, VoterSet)
    assert changed.voters[2] == moved
    stranger = update(voters(1, 2), Voter(key(2, directory=7)), DYNAMIC)
    assert isinstance(stranger, VoterChangeRefused)
    assert stranger.error is ErrorCode.voter_not_found
    old = update(voters(1, 2), Voter(key(2), (), 0, 0), DYNAMIC)
    assert isinstance(old, VoterChangeRefused)
    assert old.error is ErrorCode.invalid_request
