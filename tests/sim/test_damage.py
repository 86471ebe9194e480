"""Whole simulated runs in which files are damaged. A run fails if no node reports the damage."""

import pytest

from tidelog.sim.faults import wounds
from tidelog.sim.faults.damage import Harm
from tidelog.sim.faults.faults import Fault
from tidelog.sim.faults.wounds import AFTER_SHUTDOWN
from tidelog.sim.machines.disk import SimDisk
from tidelog.sim.runs.plan import WORKLOADS, Plan
from tidelog.sim.runs.run import simulate

SCHEDULE = (Fault(2_000, "damage", (2,), 500, AFTER_SHUTDOWN), Fault(5_000, "damage", (3,), 500))
PLAN = Plan(1, nodes=3, seconds=8, schedule=SCHEDULE, workload=WORKLOADS["light"])


def test_a_damage_that_could_be_known_and_is_not_reported_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unnoticed(disk: SimDisk, dice: object) -> Harm:
        disk.rot("nobody-looks-here", b"")
        return Harm("nothing that anybody reads", ("nobody-looks-here",))

    monkeypatch.setattr(wounds, "damage", unnoticed)
    failure = simulate(PLAN).failure

    assert failure is not None
    assert failure.invariant == "every damage is reported"
    assert "node 2: nothing that anybody reads" in failure.sentence
    assert "node 3" in failure.sentence


def test_leader_epochs_that_are_garbage_are_reported_and_do_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def garbage(disk: SimDisk, dice: object) -> Harm:
        path = "orders-0/leader-epoch-checkpoint"
        disk.rot(path, b"garbage")
        return Harm("garbage", (path,))

    monkeypatch.setattr(wounds, "damage", garbage)

    assert simulate(PLAN).failure is None


def test_a_damaged_header_that_hides_the_batches_behind_it_is_not_taken_for_their_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def damaged(disk: SimDisk, dice: object) -> Harm:
        logs = [one for one in disk.files() if one.startswith("orders-0/") and one.endswith(".log")]
        path = max(one for one in logs if len(disk.read_file(one)) > 1_000)
        first_batch_end = 12 + int.from_bytes(disk.read_file(path)[8:12])
        disk.flip_bit(path, 8 * (first_batch_end + 8))
        return Harm("the length of the second batch", (path,))

    monkeypatch.setattr(wounds, "damage", damaged)

    schedule = (Fault(4_000, "damage", (2,), 500, AFTER_SHUTDOWN),)
    plan = Plan(5, nodes=3, seconds=10, schedule=schedule, workload=WORKLOADS["steady"])

    assert simulate(plan).failure is None
