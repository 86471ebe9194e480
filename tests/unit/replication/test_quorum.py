"""The metadata quorum under delay, loss, partitions, crashes and wiped disks."""

import pytest
from tests.unit.replication.quorum_world import QuorumWorld

from tidelog.replication.quorum.roles import Follower, Leader
from tidelog.replication.quorum.state import QuorumState, QuorumTimeouts


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
    """Only a timeout shows the silence, so the followers detect it at the same moment."""
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
    """The port may still be closed, or a device between the nodes may refuse a connection."""
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
    """The wiped voter must not vote for a candidate that lacks records it once acknowledged."""
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


def test_f40_a_wiped_voter_that_has_fetched_some_of_the_log_still_elects_nobody() -> None:
    """The wiped voter must not vote, although it has fetched its first records and restarted."""
    world = running(3)
    leader = world.run_until_leader()
    lagging, wiped = (id for id in world.members if id != leader.id)
    world.isolate(lagging)
    for _ in range(5):
        world.propose()
    world.run(1000)
    world.kill(leader.id)
    world.kill(wiped)
    world.wipe(wiped)
    world.members[wiped].log = world.members[leader.id].log[:1]  # all that it has fetched
    world.members[wiped].saved = QuorumState(leader.saved.epoch)
    world.heal()
    world.start(wiped)
    world.run(20_000)
    assert world.leader is None, "elected with the vote of a wiped disk"
    world.start(leader.id)
    world.run_until_leader()
    assert len(world.agreed) >= 6


@pytest.mark.parametrize("seed", range(20))
def test_a_new_quorum_that_is_stopped_right_after_its_first_election_elects_again(
    seed: int,
) -> None:
    for nodes in (1, 3, 5):
        world = running(nodes, seed)
        for _ in range(40):
            world.run(5)
            if world.leader is not None:
                break
        world.run(seed)
        for id in world.members:
            world.kill(id)
        for id in world.members:
            world.start(id)
        world.run_until_leader()


def test_f57_a_voter_that_lost_the_end_of_its_log_elects_nobody_who_lacks_it() -> None:
    world = running(3)
    leader = world.run_until_leader()
    lagging, damaged = (id for id in world.members if id != leader.id)
    world.isolate(lagging)
    for _ in range(5):
        world.propose()
    world.run(1000)
    world.kill(leader.id)
    world.kill(damaged)
    del world.members[damaged].log[2:]
    world.members[damaged].committed = 0
    world.heal()
    for _ in range(3):  # restarts make no difference
        world.start(damaged)
        world.run(10_000)
        assert world.leader is None
        world.kill(damaged)
    world.start(damaged)
    world.start(leader.id)
    world.run_until_leader()
    assert len(world.agreed) >= 6


def test_f57_a_voter_that_lost_the_end_of_its_log_elects_one_that_has_it() -> None:
    world = running(3)
    leader = world.run_until_leader()
    whole, damaged = (id for id in world.members if id != leader.id)
    for _ in range(5):
        world.propose()
    world.run(1000)
    world.kill(leader.id)
    world.kill(damaged)
    world.members[damaged].log.clear()
    world.members[damaged].committed = 0
    world.start(damaged)
    assert world.run_until_leader().id == whole


@pytest.mark.parametrize("nodes", [1, 3])
def test_f57_voters_that_all_lost_the_end_of_their_logs_elect_nobody(nodes: int) -> None:
    world = running(nodes)
    world.run_until_leader()
    for _ in range(5):
        world.propose()
    world.run(1000)
    for id in world.members:
        world.kill(id)
        del world.members[id].log[2:]
        world.members[id].committed = 0
    for id in world.members:
        world.start(id)
    world.run(30_000)
    assert world.leader is None, "a history without its end is taken for the whole"


@pytest.mark.parametrize("seed", range(60))
def test_f57_random_damage_of_a_minority_never_breaks_agreement_and_heals(seed: int) -> None:
    world = running(3 if seed % 2 else 5, seed)
    random = world.random
    victims = list(world.members)[: len(world.members) // 2]
    for _ in range(80):
        world.run(random.randrange(1500))
        match random.randrange(8):
            case 0 | 1:
                up = [m.id for m in world.members.values() if m.machine]
                if len(up) > 1:
                    world.kill(random.choice(up))
            case 2 | 3:
                down = [m.id for m in world.members.values() if not m.machine]
                if down:
                    world.start(random.choice(down))
            case 4:
                down = [id for id in victims if not world.members[id].machine]
                if down:
                    fault = random.choice((world.damage, world.wipe, world.forget_promises))
                    fault(random.choice(down))
            case 5:
                world.heal()
                world.isolate(random.choice(list(world.members)))
            case 6:
                world.heal()
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
