"""AlterPartitionReassignments: beginning, completing and cancelling a reassignment."""

from typing import Any

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.unit.controller.support import (
    TIMEOUT,
    after,
    ask,
    cluster,
    context,
    directory,
    min_isr,
    partition,
)

from tidelog.controller.decide.elections import fence
from tidelog.controller.image.apply import apply_all
from tidelog.controller.image.image import ClusterImage, PartitionImage


def moves(
    *partitions: tuple[int, tuple[int, ...] | None], topic: str = "t", may_resize: bool = True
) -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(
        timeout=TIMEOUT,
        allow_replication_factor_change=may_resize,
        topics=(
            ReassignableTopic(
                name=topic,
                partitions=tuple(
                    ReassignablePartition(partition_index=index, replicas=replicas)
                    for index, replicas in partitions
                ),
            ),
        ),
    )


def faults(image: ClusterImage, request: AlterPartitionReassignmentsRequest) -> list[Any]:
    return [
        (one.error_code.name, one.error_message)
        for topic in ask(image, request).response.responses
        for one in topic.partitions
    ]


def moved(image: ClusterImage, request: AlterPartitionReassignmentsRequest) -> PartitionImage:
    decision = ask(image, request)
    assert decision.response.responses[0].partitions[0].error_code.name == "none"
    return after(image, decision).topics["t"].partitions[0]


def test_it_grows_to_old_and_new() -> None:
    found = moved(cluster(4, {"t": partition((1, 2))}), moves((0, (3, 4))))

    assert (found.replicas, found.isr, found.leader) == ((3, 4, 1, 2), (1, 2), 1)
    assert (found.adding, found.removing) == ((3, 4), (1, 2))
    assert found.directories == tuple(directory(one) for one in (3, 4, 1, 2))
    assert found.leader_epoch == 5, "nothing has been taken away yet"


def test_another_order_needs_no_catching_up() -> None:
    found = moved(cluster(3, {"t": partition((1, 2, 3))}), moves((0, (3, 2, 1))))

    assert found.replicas == (3, 2, 1)
    assert not found.is_reassigning


def test_taking_replicas_away_happens_at_once_in_a_new_leader_epoch() -> None:
    found = moved(cluster(3, {"t": partition((1, 2, 3))}), moves((0, (1, 2))))

    assert (found.replicas, found.isr, found.leader) == ((1, 2), (1, 2), 1)
    assert found.leader_epoch == 6
    assert not found.is_reassigning


def test_cancelling_goes_back() -> None:
    under_way = partition((3, 1, 2), isr=(1, 2, 3), leader=1, adding=(3,), removing=(1,))
    found = moved(cluster(3, {"t": under_way}), moves((0, None)))

    assert (found.replicas, found.isr, found.leader) == ((1, 2), (1, 2), 1)
    assert not found.is_reassigning


def test_cancelling_may_not_lose_records() -> None:
    only_new_in_sync = partition((3, 1), isr=(3,), leader=3, adding=(3,), removing=(1,))
    image = cluster(3, {"t": only_new_in_sync})

    assert faults(image, moves((0, None))) == [
        (
            "invalid_replica_assignment",
            "Unable to revert partition assignment for t:0 because "
            "it would require an unclean leader election.",
        )
    ]
    allowed = {(2, "t"): {"unclean.leader.election.enable": "true"}}
    found = moved(cluster(3, {"t": only_new_in_sync}, allowed), moves((0, None)))
    assert (found.replicas, found.isr, found.leader) == ((1,), (1,), 1)


def test_refusals_are_kafkas() -> None:
    image = cluster(3, {"t": partition((1, 2))})

    assert faults(image, moves((0, None))) == [("no_reassignment_in_progress", None)]
    assert faults(image, moves((9, (1,)))) == [
        ("unknown_topic_or_partition", "Unable to find partition t:9.")
    ]
    assert faults(image, moves((0, (1,)), topic="nope")) == [
        ("unknown_topic_or_partition", "Unable to find a topic named nope.")
    ]
    assert faults(image, moves((0, ()))) == [
        (
            "invalid_replica_assignment",
            "The manual partition assignment includes an empty replica list.",
        )
    ]
    assert faults(image, moves((0, (1, 9)))) == [
        (
            "invalid_replica_assignment",
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        )
    ]
    assert faults(image, moves((0, (1, 2, 3)), may_resize=False)) == [
        ("invalid_replication_factor", "The replication factor is changed from 2 to 3")
    ]
    assert faults(image, moves((0, (1, 3)), may_resize=False)) == [("none", None)]


def test_who_was_reassigned_away_is_never_elected_as_eligible() -> None:
    """The removed replica has deleted its log, so its election would lose committed records."""
    image = cluster(4, {"t": partition((2, 3, 1))}, min_isr("t", 2))
    image = after(image, ask(image, moves((0, (1,)))))
    left = image.topics["t"].partitions[0]
    assert (left.replicas, left.isr, left.elr) == ((1,), (1,), ())

    gone = fence(image, image.brokers[1], context(image))
    image = apply_all(image, gone, image.offset + len(gone), image.epoch)
    found = moved(image, moves((0, (2, 1))))

    assert (found.leader, found.isr, found.elr) == (-1, (), (1,))
