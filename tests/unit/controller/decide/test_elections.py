"""Elections that the controller makes when brokers are fenced or unfenced, or by a timer."""

from typing import Any

from tests.unit.controller.support import (
    broker,
    cluster,
    context,
    directory,
    min_isr,
    partition,
)

from tidelog.controller.decide import elections, leader_balance
from tidelog.controller.image.apply import apply_all
from tidelog.controller.image.image import RECOVERING, ClusterImage, PartitionImage
from tidelog.protocol.metadata.metadata_records import MetadataRecord


def after(image: ClusterImage, records: list[Any]) -> ClusterImage:
    made: list[MetadataRecord] = list(records)
    return apply_all(image, made, image.offset + len(made), image.epoch)


def fenced(image: ClusterImage, *brokers: int) -> ClusterImage:
    for id_ in brokers:
        image = after(image, elections.fence(image, image.brokers[id_], context(image)))
    return image


def unfenced(image: ClusterImage, *brokers: int) -> ClusterImage:
    for id_ in brokers:
        image = after(image, elections.unfence(image, image.brokers[id_], context(image)))
    return image


def only(image: ClusterImage) -> PartitionImage:
    return image.topics["t"].partitions[0]


# -- Elections when brokers are fenced or unfenced -------------------------------------------------


def test_a_dead_leader_is_followed_by_the_next_in_sync_replica() -> None:
    image = fenced(cluster(3, {"t": partition()}), 1)

    assert (only(image).leader, only(image).isr) == (2, (2, 3))
    assert (only(image).leader_epoch, only(image).partition_epoch) == (6, 8)


def test_a_dead_follower_leaves_without_a_new_leader_epoch() -> None:
    image = fenced(cluster(3, {"t": partition()}), 3)

    assert (only(image).leader, only(image).isr) == (1, (1, 2))
    assert (only(image).leader_epoch, only(image).partition_epoch) == (5, 8)


def test_f16_a_fenced_or_stopping_replica_is_not_elected() -> None:
    image = cluster(
        [broker(1), broker(2, in_controlled_shutdown=True), broker(3)], {"t": partition()}
    )

    assert only(fenced(image, 1)).leader == 3


def test_f20_the_last_in_sync_replica_dies_and_nobody_else_is_elected() -> None:
    image = fenced(cluster(3, {"t": partition()}), 3, 2, 1)

    assert (only(image).leader, only(image).isr) == (-1, ())
    assert (only(image).elr, only(image).last_known_elr) == ((1,), (1,))


def test_f18_below_the_minimum_those_who_left_stay_eligible() -> None:
    """Below min.insync.replicas nothing is committed, so replicas that leave miss nothing."""
    image = fenced(cluster(3, {"t": partition()}, min_isr("t", 2)), 3, 2)
    assert (only(image).leader, only(image).isr, only(image).elr) == (1, (1,), (2,))

    image = fenced(image, 1)
    assert (only(image).leader, only(image).isr, only(image).elr) == (-1, (), (1, 2))

    image = unfenced(image, 2)
    assert (only(image).leader, only(image).isr, only(image).elr) == (2, (2,), (1,))
    assert only(image).last_known_elr == ()


def test_a_replica_that_was_never_eligible_does_not_lead() -> None:
    image = fenced(cluster(3, {"t": partition()}, min_isr("t", 2)), 3, 2, 1)

    assert only(unfenced(image, 3)).leader == -1


def test_f21_without_eligible_replicas_the_last_member_is_remembered_and_returns() -> None:
    image = fenced(cluster(3, {"t": partition()}, elr=False), 3, 2, 1)
    assert (only(image).leader, only(image).isr) == (-1, (1,))

    assert only(unfenced(image, 3)).leader == -1
    image = unfenced(image, 1)
    assert (only(image).leader, only(image).isr) == (1, (1,))


def test_an_unclean_election_only_where_the_topic_allows_it() -> None:
    allowed = {(2, "t"): {"unclean.leader.election.enable": "true"}}
    image = fenced(cluster(3, {"t": partition(isr=(1,))}, allowed, elr=False), 1)

    assert (only(image).leader, only(image).isr) == (2, (2,))
    assert only(image).leader_recovery_state == RECOVERING
    refused = fenced(cluster(3, {"t": partition(isr=(1,))}, elr=False), 1)
    assert only(refused).leader == -1


def test_the_last_known_leader_leads_again_when_nobody_is_eligible() -> None:
    lost = partition(isr=(), leader=-1, last_known_elr=(1,))
    image = cluster([broker(1, fenced=True), broker(2), broker(3)], {"t": lost})
    image = unfenced(image, 1)

    assert (only(image).leader, only(image).isr, only(image).last_known_elr) == (1, (1,), ())
    assert only(image).leader_recovery_state == RECOVERING


def test_a_replica_on_a_failed_directory_does_not_lead() -> None:
    elsewhere = partition(directories=(directory(1), directory(99), directory(3)))

    assert only(fenced(cluster(3, {"t": elsewhere}), 1)).leader == 3


def test_fencing_again_changes_nothing() -> None:
    image = fenced(cluster(3, {"t": partition()}), 1)

    assert elections.fence(image, image.brokers[1], context(image)) == []


def test_expired_sessions_are_fenced_one_after_the_other() -> None:
    image = cluster(3, {"t": partition()})
    for _ in range(2):
        image = after(image, elections.fence_expired(image, [1, 2, 9], context(image)))

    assert elections.fence_expired(image, [1, 2, 9], context(image)) == []
    assert [image.brokers[id_].fenced for id_ in (1, 2, 3)] == [True, True, False]
    assert (only(image).leader, only(image).isr) == (3, (3,))


def test_no_image_shows_a_fenced_leader_in_a_cluster_of_many_partitions() -> None:
    spread = [partition((a, b)) for a in (1, 2, 3) for b in (1, 2, 3) if a != b]
    image = fenced(cluster(3, {"t": spread}), 2)

    for found in image.topics["t"].partitions.values():
        assert found.leader != 2
        assert 2 not in found.isr


# -- Elections by a timer --------------------------------------------------------------------------


def test_the_lead_goes_back_to_preferred_replicas_that_are_in_sync() -> None:
    image = cluster(
        [broker(1), broker(2), broker(3, fenced=True)],
        {
            "t": [
                partition((1, 2), leader=2),
                partition((1, 2), isr=(2,), leader=2),
                partition((3, 2), leader=2),
                partition((1, 2)),
            ]
        },
    )
    records = leader_balance.balance_leaders(image, context(image))

    assert [(record.partition_id, record.leader) for record in records] == [(0, 1)]


def test_only_so_many_leaderships_move_at_once() -> None:
    moved = [partition((1, 2), leader=2)] * (leader_balance.BALANCE_LIMIT + 5)
    image = cluster(2, {"t": moved})

    assert (
        len(leader_balance.balance_leaders(image, context(image))) == leader_balance.BALANCE_LIMIT
    )


def test_allowing_unclean_elections_later_elects_later() -> None:
    image = fenced(cluster(3, {"t": partition(isr=(1,)), "u": partition(isr=(1,))}), 1)
    allowed = {(2, "t"): {"unclean.leader.election.enable": "true"}}
    image = cluster(
        image.brokers.values(), {n: t.partitions[0] for n, t in image.topics.items()}, allowed
    )
    records = elections.elect_uncleanly(image, context(image))

    assert [(record.topic_id, record.leader) for record in records] == [
        (image.topics["t"].topic_id, 2)
    ]
