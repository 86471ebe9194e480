"""The rules of a single group."""

import itertools

import pytest

from tidelog.coordination.groups.classic.group import ClassicGroup, GroupState
from tidelog.coordination.groups.classic.member import ClassicMember, Protocol
from tidelog.model.errors import ErrorCode

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState

KAFKAS_TRANSITIONS = {
    (PREPARING, EMPTY),
    (EMPTY, PREPARING),
    (COMPLETING, PREPARING),
    (STABLE, PREPARING),
    (PREPARING, COMPLETING),
    (COMPLETING, STABLE),
    *((state, DEAD) for state in GroupState),
}


def member(member_id: str, *protocols: str, instance: str | None = None) -> ClassicMember:
    return ClassicMember(
        member_id=member_id,
        group_instance_id=instance,
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=60_000,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=tuple(Protocol(name, b"") for name in protocols or ("range",)),
    )


def group_of(*members: ClassicMember, state: GroupState = PREPARING) -> ClassicGroup:
    group = ClassicGroup("g", state, 0)
    for one in members:
        group.add(one)
    return group


@pytest.mark.parametrize(("before", "after"), list(itertools.product(GroupState, repeat=2)))
def test_transitions_are_kafkas(before: GroupState, after: GroupState) -> None:
    group = ClassicGroup("g", before, 0)
    if (before, after) in KAFKAS_TRANSITIONS:
        group.transition_to(after, 5)
        assert (group.state, group.previous_state, group.state_timestamp) == (after, before, 5)
    else:
        with pytest.raises(AssertionError):
            group.transition_to(after, 5)


@pytest.mark.parametrize(
    ("preferences", "selected"),
    [
        (["ab"], "a"),
        (["ab", "ba", "ba"], "b"),
        (["abc", "bc", "cb"], "b"),
        (["ab", "ba"], "a"),
        (["ac", "bc"], "c"),
    ],
)
def test_votes(preferences: list[str], selected: str) -> None:
    group = group_of(*(member(str(n), *likes) for n, likes in enumerate(preferences)))
    assert group.select_protocol() == selected


def test_first_member_leads_and_the_next_follows() -> None:
    group = group_of(member("1"), member("2"), member("3"))
    assert group.leader_id == "1"
    group.remove("1")
    assert group.leader_id == "2"
    group.remove("3")
    group.remove("2")
    assert group.leader_id is None


def test_leader_is_elected_among_those_who_joined() -> None:
    group = group_of(member("1"), member("2"), member("3"))
    assert not group.elect_joined_leader()
    group.change("3", join=7)
    assert group.elect_joined_leader()
    assert group.leader_id == "3"
    group.change("1", join=8)
    assert group.elect_joined_leader()
    assert group.leader_id == "3"


def test_replaced_static_member_keeps_place_leadership_and_what_it_owes() -> None:
    group = group_of(member("1", instance="i"), member("2"))
    group.pending_syncs = {"1": None, "2": None}
    group.change("1", assignment=b"mine")
    new = group.replace_static("1", "9")
    assert list(group.members) == ["9", "2"]
    assert (group.leader_id, new.assignment) == ("9", b"mine")
    assert set(group.pending_syncs) == {"9", "2"}
    assert group.validate_member("9", "i") is ErrorCode.none
    assert group.validate_member("1", "i") is ErrorCode.fenced_instance_id
    assert group.validate_member("1", None) is ErrorCode.unknown_member_id


def test_empty_group_takes_any_protocol_that_has_a_name() -> None:
    group = ClassicGroup("g", EMPTY, 0)
    assert group.supports("connect", (Protocol("p", b""),))
    assert not group.supports("", (Protocol("p", b""),))
    assert not group.supports("connect", ())


def test_subscriptions_are_known_of_consumers_only() -> None:
    assert group_of(member("1")).is_subscribed_to("any")
    assert not ClassicGroup("g", EMPTY, 0).is_subscribed_to("any")
