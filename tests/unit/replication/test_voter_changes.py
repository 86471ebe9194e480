"""Voters are added and removed one at a time, under faults: F37, F38, F39 and F40."""

import pytest
from tests.unit.replication.dynamic_world import DynamicWorld

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId
from tidelog.replication.quorum.roles import Follower, Leader
from tidelog.replication.quorum.voters import VoterChangeRefused


def running(nodes: int, first: tuple[NodeId, ...], seed: int = 1) -> DynamicWorld:
    world = DynamicWorld(nodes, seed, first=first)
    for id in world.members:
        world.start(id)
    world.run_until_leader()
    world.run(1000)
    return world


def voters(world: DynamicWorld) -> list[NodeId]:
    assert world.leader is not None
    return list(world.leader.machine.voters)


def error(outcome: VoterChangeRefused | None) -> ErrorCode:
    return ErrorCode.none if outcome is None else outcome.error


def test_a_quorum_grows_from_one_to_three_and_shrinks_again() -> None:
    world = running(3, first=(1,))
    for id in (2, 3):
        assert world.add_voter(id) is None
        world.run(500)
    assert voters(world) == [1, 2, 3]
    world.kill(1)
    assert world.run_until_leader().id in (2, 3)
    world.start(1)
    world.run(3000)
    for id in (1, 2):
        assert world.remove_voter(id) is None
        world.run(5000)
    assert voters(world) == [3]
    assert world.leader is world.members[3]
    assert world.remove_voter(3) is not None, "the last voter stays"


def test_a_voter_that_lags_or_is_known_already_is_not_added() -> None:
    world = running(3, first=(1, 2))
    assert error(world.add_voter(2)) is ErrorCode.duplicate_voter
    world.isolate(3)
    world.run(world.timeouts.fetch_ms + 1)
    assert error(world.add_voter(3)) is ErrorCode.request_timed_out
    assert error(world.remove_voter(3)) is ErrorCode.voter_not_found


def test_f37_a_removed_voter_does_not_join_again_by_itself() -> None:
    for seed in range(10):
        world = running(3, first=(1, 2, 3), seed=seed)
        leader = world.leader
        removed = next(id for id in world.members if id != leader.id)
        # The removed voter does not learn of its removal, so it still considers itself a voter.
        world.isolate(removed)
        assert world.remove_voter(removed) is None
        world.run(10_000)
        epoch = world.leader.machine.epoch
        world.heal()
        world.run(10_000)
        assert world.leader is leader
        assert leader.machine.epoch == epoch, "it disturbed those who vote"
        assert removed not in voters(world)
        assert isinstance(world.members[removed].machine.role, Follower), "it listens on"
        world.kill(removed)
        world.start(removed)
        world.run(10_000)
        assert removed not in voters(world)
        assert not world.members[removed].machine.is_voter


def test_f38_a_leader_that_is_removed_leads_until_that_is_committed_and_resigns() -> None:
    for seed in range(20):
        world = running(3, first=(1, 2, 3), seed=seed)
        leader = world.leader
        assert world.remove_voter(leader.id) is None
        assert isinstance(leader.machine.role, Leader), "nobody else can commit the record"
        assert not leader.machine.is_voter
        world.run(3000)
        successor = world.run_until_leader()
        assert successor is not leader
        assert voters(world) == sorted(set(world.members) - {leader.id})
        assert isinstance(leader.machine.role, Follower), "it follows whom it has made leader"


def test_f38_a_leader_that_is_removed_and_dies_at_once_leaves_one_quorum() -> None:
    for seed in range(20):
        world = running(3, first=(1, 2, 3), seed=seed)
        leader = world.leader
        world.remove_voter(leader.id)
        world.run(seed % 5)
        world.kill(leader.id)
        world.run_until_leader()
        world.start(leader.id)
        world.run(5000)
        world.propose()
        world.run(1000)
        now = world.run_until_leader()
        assert all(m.log == now.log for m in world.members.values()), world.describe()


def test_f39_no_change_begins_while_another_is_uncommitted() -> None:
    world = running(5, first=(1, 2, 3))
    leader = world.leader
    for id in world.members:
        if id != leader.id:
            world.isolate(id)
    assert world.add_voter(4) is None
    assert list(leader.machine.voters) == [1, 2, 3, 4], "in force before it is committed"
    assert error(world.add_voter(5)) is ErrorCode.request_timed_out
    assert error(world.remove_voter(2)) is ErrorCode.request_timed_out
    world.heal()
    world.run(500)
    assert world.add_voter(5) is None


def test_f39_a_change_that_is_cut_away_is_undone() -> None:
    for seed in range(10):
        world = running(4, first=(1, 2, 3), seed=seed)
        old = world.leader
        world.isolate(old.id)
        assert world.add_voter(4) is None
        world.run(world.timeouts.check_quorum_ms + 10_000)
        assert world.leader is not old
        world.propose()
        world.heal()
        world.run(10_000)
        assert list(old.machine.voters) == [1, 2, 3]
        assert voters(world) == [1, 2, 3]


def test_f39_none_begins_before_the_leader_has_committed_in_its_epoch() -> None:
    world = DynamicWorld(3, 1, first=(1, 2, 3))
    for id in (1, 2):
        world.start(id)
    while world.leader is None:
        world.run(1)
    assert error(world.remove_voter(3)) is ErrorCode.request_timed_out


def test_f40_a_voter_with_a_wiped_disk_is_somebody_else() -> None:
    world = running(3, first=(1, 2, 3))
    leader = world.leader
    lagging, wiped = (id for id in world.members if id != leader.id)
    world.isolate(lagging)
    for _ in range(5):
        world.propose()
    world.run(1000)
    world.kill(leader.id)
    world.kill(wiped)
    world.wipe(wiped)
    world.heal()
    world.start(wiped)
    world.run(20_000)
    assert world.leader is None, "elected with the vote of a wiped disk"
    assert not world.members[wiped].machine.is_voter
    world.start(leader.id)
    world.run_until_leader()
    world.run(3000)
    # The old directory must be removed as a voter before the new directory can be added.
    assert error(world.add_voter(wiped)) is ErrorCode.duplicate_voter
    assert world.remove_voter(wiped) is None
    world.run(1000)
    assert world.add_voter(wiped) is None
    world.run(1000)
    assert world.members[wiped].machine.is_voter


@pytest.mark.parametrize("seed", range(40))
def test_agreement_holds_while_voters_change_under_faults(seed: int) -> None:
    world = running(5, first=(1, 2, 3) if seed % 2 else (1,), seed=seed)
    random = world.random
    changes = 0
    for _ in range(80):
        world.run(random.randrange(1200))
        up = [m.id for m in world.members.values() if m.machine]
        down = [id for id in world.members if id not in up]
        match random.randrange(9):
            case 0 if len(up) > 3:
                world.kill(random.choice(up))
            case 1 if down:
                world.start(random.choice(down))
            case 2:
                world.heal()
                world.isolate(random.choice(list(world.members)))
            case 3:
                world.heal()
                world.loss_percent = random.randrange(30)
            case 4 | 5 if world.leader is not None:
                changes += world.add_voter(random.choice(list(world.members))) is None
            case 6 if world.leader is not None:
                changes += world.remove_voter(random.choice(list(world.members))) is None
            case _:
                world.propose()
    world.heal()
    for member in world.members.values():
        if member.machine is None:
            world.start(member.id)
    world.run(10_000)
    world.run_until_leader()
    world.propose()
    world.run(1_000)
    leader = world.run_until_leader()
    assert all(m.log == leader.log for m in world.members.values()), world.describe()
    assert changes > 0
