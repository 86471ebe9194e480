"""The metadata quorum under delay, loss, partitions, crashes and wiped disks."""

import pytest
from tests.unit.replication.quorum_world import QuorumWorld

from tidelog.replication.quorum.roles import Follower, Leader
from tidelog.replication.quorum.state import QuorumTimeouts


def running(nodes: int, seed: int = 1, timeouts: QuorumTimeouts | None = None) -> QuorumWorld:
    world = QuorumWorld(nodes, seed, timeouts)
    for id in world.members:
        world.start(id)
    return world


@pytest.mark.parametrize("nodes", [1, 2, 3, 5])
def test_a_quorum_elects_one_leader_and_commits(nodes: int) -> None:
    world = running(nodes)
    leader = world.run_until_leader()
    for _ in range(10):
        world.propose()
    world.run(500)
    assert leader.committed == 11
    assert all(member.log == leader.log for member in world.members.values())


def test_a_quorum_of_one_leads_at_once() -> None:
    world = running(1)
    assert isinstance(world.members[1].machine.role, Leader)
    assert world.now == 0


def test_a_fresh_quorum_of_three_has_a_leader_within_a_quarter_of_a_second() -> None:
    for seed in range(50):
        world = running(3, seed)
        world.run_until_leader()
        assert world.now <= 250, (seed, world.now)


def test_a_killed_leader_is_replaced_at_once_since_its_port_refuses() -> None:
    for seed in range(50):
        world = running(3, seed)
        leader = world.run_until_leader()
        world.run(1000)
        died = world.now
        world.kill(leader.id)
        world.run_until_leader()
        assert world.now - died <= 300, (seed, world.now - died)


def test_a_leader_that_falls_silent_is_replaced_in_one_round_of_votes() -> None:
    """Its followers notice at the same moment; nothing refuses, so only time tells them."""
    for seed in range(100):
        world = running(3, seed)
        leader = world.run_until_leader()
        world.run(1000)
        silent = world.now
        world.isolate(leader.id)
        while world.leader in (leader, None):
            world.run(10)
        took = world.now - silent
        assert took <= world.timeouts.fetch_ms + 250, (seed, took)


def test_a_voter_that_was_refused_by_a_living_leader_follows_it_again() -> None:
    """As when a port is not open yet, or something between them refuses for a moment."""
    for seed in range(20):
        world = running(3, seed)
        leader = world.run_until_leader()
        world.run(1000)
        for deceived in [member for member in world.members.values() if member is not leader]:
            world.refuse(deceived.id, leader.id)
            world.run(2000)
            assert isinstance(deceived.machine.role, Follower), deceived.machine.role
        assert world.leader is leader


def test_a_leader_cut_off_from_the_majority_resigns() -> None:
    world = running(3)
    old = world.run_until_leader()
    world.isolate(old.id)
    world.run(world.timeouts.check_quorum_ms + world.timeouts.fetch_ms)
    assert not isinstance(old.machine.role, Leader)
    assert world.run_until_leader().id != old.id


def test_two_of_three_down_no_leader_and_back_again() -> None:
    world = running(3)
    leader = world.run_until_leader()
    world.propose()
    world.run(500)
    committed = leader.committed
    for id in [id for id in world.members if id != leader.id]:
        world.kill(id)
    world.run(10_000)
    assert world.leader is None
    for member in world.members.values():
        if member.machine is None:
            world.start(member.id)
    assert world.run_until_leader().committed > committed


def test_f36_a_voter_that_returns_from_a_partition_does_not_disturb_the_leader() -> None:
    for seed in range(20):
        world = running(3, seed)
        leader = world.run_until_leader()
        away = next(id for id in world.members if id != leader.id)
        world.isolate(away)
        world.run(60_000)
        assert world.leader is leader
        epoch = leader.machine.epoch
        world.heal()
        world.run(10_000)
        assert world.leader is leader
        assert leader.machine.epoch == epoch, "the returning voter began an epoch"
        assert isinstance(world.members[away].machine.role, Follower)


def test_f40_a_voter_with_a_wiped_disk_does_not_vote_again() -> None:
    """It voted for the leader, and must not help to elect one that lacks that leader's records."""
    world = running(3)
    leader = world.run_until_leader()
    lagging, wiped = (id for id in world.members if id != leader.id)
    world.isolate(lagging)
    for _ in range(5):
        world.propose()
    world.run(1000)
    assert leader.committed == 6
    world.kill(leader.id)
    world.kill(wiped)
    world.wipe(wiped)
    world.heal()
    world.start(wiped)
    world.run(20_000)
    assert world.leader is None, "elected with the vote of a wiped disk"
    world.start(leader.id)
    world.run_until_leader()
    assert len(world.agreed) >= 6


@pytest.mark.parametrize("seed", range(40))
def test_random_faults_never_break_agreement_and_heal(seed: int) -> None:
    world = running(3 if seed % 2 else 5, seed)
    random = world.random
    for _ in range(60):
        world.run(random.randrange(1500))
        match random.randrange(7):
            case 0:
                up = [m.id for m in world.members.values() if m.machine]
                if len(up) > len(world.members) // 2 + 1:
                    world.kill(random.choice(up))
            case 1:
                down = [m.id for m in world.members.values() if not m.machine]
                if down:
                    world.start(random.choice(down))
            case 2:
                world.heal()
                world.isolate(random.choice(list(world.members)))
            case 3:
                world.heal()
            case 4:
                world.loss_percent = random.randrange(40)
            case _:
                world.propose()
    world.heal()
    for member in world.members.values():
        if member.machine is None:
            world.start(member.id)
    world.run(5_000)
    world.run_until_leader()
    world.propose()
    world.run(1_000)
    leader = world.run_until_leader()
    assert all(m.log == leader.log for m in world.members.values()), world.describe()
