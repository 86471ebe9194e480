"""Share groups while nodes die at random: no record is lost, held twice or delivered too often."""

import pytest
from tests.sim.messages import batch, produce_to
from tests.sim.share_member import PARTITION, TOPIC, from_the_start, leader_of, share_cluster
from tests.sim.share_workload import Deliveries, DeliveryViolation, Worker
from tests.sim.talk import Talk, await_ready

from tidelog.coordination.delivery.share_partition import SharePartition
from tidelog.coordination.delivery.stored_state import StateBatch
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.rules import Replacement, Rules, applied_rules

MEMBERS, RECORDS, KILLS = 3, 60, 4
CALM_MS = 240_000


def workload(seed: int) -> tuple[SimCluster, Deliveries]:
    cluster = share_cluster(seed)
    from_the_start(cluster, **{"share.record.lock.duration.ms": "15000"})
    talk = Talk(cluster, leader_of(cluster, PARTITION))
    for number in range(RECORDS):
        talk.ask(produce_to(TOPIC, batch(b"%d" % number), acks=-1))
    deliveries = Deliveries(cluster)
    workers = [Worker(cluster, f"m{number}", deliveries) for number in range(MEMBERS)]
    for worker in workers:
        worker.begin()
    return cluster, deliveries


def run_with_faults(seed: int) -> Deliveries:
    """Kill one node after the other, and wait until every record is settled."""
    cluster, deliveries = workload(seed)
    dice = cluster.world.dice.fork("kills")
    for _ in range(KILLS):
        cluster.world.run(200 + dice.below(2_000))
        host = cluster.hosts[1 + dice.below(len(cluster.hosts))]
        host.kill()
        cluster.world.run(500 + dice.below(5_000))
        host.start()
        await_ready(cluster)
    cluster.world.run_until(lambda: not deliveries.unsettled(RECORDS), CALM_MS)
    cluster.world.run(20_000)  # records that are delivered again would show now
    assert deliveries.unsettled(RECORDS) == [], "these records were never settled"
    return deliveries


@pytest.mark.parametrize("first", range(0, 12, 3))
def test_f70_no_record_is_lost_or_held_twice_or_delivered_after_it_was_accepted(first: int) -> None:
    for seed in range(first, first + 3):
        deliveries = run_with_faults(seed)

        assert list(deliveries.settled.values()).count("accepted") > RECORDS // 2
        assert max(deliveries.delivered.values()) > 1, "no record was delivered again"


def test_f70_a_leader_that_forgets_the_stored_state_is_detected() -> None:
    """The wrong rule: a new leader knows the start, but not the state of the records."""
    right = SharePartition._load

    def forgets(self: SharePartition, batches: tuple[StateBatch, ...]) -> None:
        right(self, ())

    wrong = Rules(
        "forgets-share-state",
        (
            Replacement(
                "tidelog.coordination.delivery.share_partition:SharePartition._load", forgets
            ),
        ),
    )

    with applied_rules(wrong), pytest.raises(DeliveryViolation, match="delivered after it was"):
        run_with_faults(0)
