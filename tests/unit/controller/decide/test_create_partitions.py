"""CreatePartitions: adding partitions to topics."""

from typing import Any

from kio.schema.create_partitions.v3.request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tests.unit.controller.support import TIMEOUT, after, ask, broker, cluster, partition

from tidelog.controller.image.image import ClusterImage

ONE = {"t": partition((1, 2))}


def growth(
    *topics: tuple[str, int, list[list[int]] | None], validate_only: bool = False
) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=tuple(
            CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if assignments is None
                else tuple(
                    CreatePartitionsAssignment(broker_ids=tuple(brokers)) for brokers in assignments
                ),
            )
            for name, count, assignments in topics
        ),
        timeout=TIMEOUT,
        validate_only=validate_only,
    )


def answer(image: ClusterImage, *topics: tuple[str, int, list[list[int]] | None]) -> list[Any]:
    response = ask(image, growth(*topics)).response
    return [(one.error_code.name, one.error_message) for one in response.results]


def test_new_partitions_have_as_many_replicas_as_the_first() -> None:
    image = cluster(3, ONE)
    grown = after(image, ask(image, growth(("t", 4, None)))).topics["t"]

    assert list(grown.partitions) == [0, 1, 2, 3]
    assert grown.partitions[0] is image.topics["t"].partitions[0]
    assert [len(grown.partitions[index].replicas) for index in (1, 2, 3)] == [2, 2, 2]
    assert {grown.partitions[index].leader for index in (1, 2, 3)} == {1, 2, 3}


def test_a_chosen_assignment_is_kept() -> None:
    image = cluster(3, ONE)
    grown = after(image, ask(image, growth(("t", 3, [[3, 1], [2, 3]])))).topics["t"]

    assert [grown.partitions[index].replicas for index in (1, 2)] == [(3, 1), (2, 3)]


def test_validation_makes_nothing() -> None:
    decision = ask(cluster(3, ONE), growth(("t", 4, None), validate_only=True))

    assert decision.records == ()
    assert decision.response.results[0].error_code.name == "none"


def test_refusals_are_kafkas() -> None:
    image = cluster(3, ONE)

    assert answer(image, ("nope", 2, None)) == [("unknown_topic_or_partition", None)]
    assert answer(image, ("t", 1, None)) == [
        ("invalid_partitions", "Topic already has 1 partition(s).")
    ]
    assert answer(image, ("t", 0, None)) == [
        (
            "invalid_partitions",
            "The topic t currently has 1 partition(s); 0 would not be an increase.",
        )
    ]
    assert answer(image, ("t", 3, [[1, 2]])) == [
        (
            "invalid_replica_assignment",
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        )
    ]
    assert answer(image, ("t", 2, [[1]])) == [
        (
            "invalid_replica_assignment",
            "The manual partition assignment includes a partition with 1 replica(s), but this is "
            "not consistent with previous partitions, which have 2 replica(s).",
        )
    ]
    assert answer(image, ("t", 2, [[1, 9]])) == [
        (
            "invalid_replica_assignment",
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        )
    ]
    assert answer(image, ("t", 10_002, None)) == [
        ("policy_violation", "Excessively large number of partitions per request.")
    ]
    assert answer(image, ("t", 2, None), ("t", 3, None)) == [
        ("invalid_request", "Duplicate topic name.")
    ]


def test_a_cluster_that_is_fenced_cannot_grow() -> None:
    image = cluster([broker(1, fenced=True), broker(2, fenced=True)], ONE)

    assert answer(image, ("t", 2, None))[0][0] == "invalid_replication_factor"
    assert answer(image, ("t", 2, [[1, 2]]))[0][0] == "invalid_replica_assignment"
