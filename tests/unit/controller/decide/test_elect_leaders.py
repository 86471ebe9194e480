"""ElectLeaders: preferred and unclean, for some partitions or for all."""

from typing import Any

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from tests.unit.controller.support import TIMEOUT, after, ask, broker, cluster, partition

from tidelog.controller.image.image import RECOVERING, ClusterImage

PREFERRED, UNCLEAN = 0, 1


def election(kind: int, asked: dict[str, tuple[int, ...]] | None) -> ElectLeadersRequest:
    return ElectLeadersRequest(
        election_type=kind,
        topic_partitions=None
        if asked is None
        else tuple(
            TopicPartitions(topic=topic, partitions=partitions)
            for topic, partitions in asked.items()
        ),
        timeout=TIMEOUT,
    )


def results(image: ClusterImage, request: ElectLeadersRequest) -> list[Any]:
    return [
        (found.topic, one.partition_id, one.error_code.name, one.error_message)
        for found in ask(image, request).response.replica_election_results
        for one in found.partition_result
    ]


IMAGE = cluster(
    [broker(1), broker(2), broker(3, fenced=True)],
    {
        "t": [
            partition((1, 2), leader=2),
            partition((1, 2)),
            partition((3, 2), isr=(2,), leader=2),
            partition((3, 2), isr=(3,), leader=-1),
        ]
    },
)


def test_the_preferred_replica_takes_the_lead() -> None:
    decision = ask(IMAGE, election(PREFERRED, {"t": (0,)}))

    assert after(IMAGE, decision).topics["t"].partitions[0].leader == 1


def test_results_are_kafkas() -> None:
    assert results(IMAGE, election(PREFERRED, {"t": (0, 1, 2, 9), "nope": (0,)})) == [
        ("t", 0, "none", None),
        (
            "t",
            1,
            "election_not_needed",
            "Leader election not needed for topic partition.",
        ),
        (
            "t",
            2,
            "preferred_leader_not_available",
            "The preferred leader was not available.",
        ),
        ("t", 9, "unknown_topic_or_partition", "No such partition as t-9"),
        ("nope", 0, "unknown_topic_or_partition", "No such topic as nope"),
    ]


def test_of_all_partitions_those_that_needed_none_are_not_listed() -> None:
    listed = [(index, error) for _, index, error, _ in results(IMAGE, election(PREFERRED, None))]

    assert listed == [
        (0, "none"),
        (2, "preferred_leader_not_available"),
        (3, "preferred_leader_not_available"),
    ]


def test_an_unclean_election_elects_anyone_alive_and_says_so() -> None:
    decision = ask(IMAGE, election(UNCLEAN, {"t": (3,)}))
    found = after(IMAGE, decision).topics["t"].partitions[3]

    assert (found.leader, found.isr, found.leader_recovery_state) == (2, (2,), RECOVERING)
    assert results(IMAGE, election(UNCLEAN, {"t": (2,)}))[0][2] == "election_not_needed"


def test_an_unclean_election_among_the_dead_fails() -> None:
    image = cluster([broker(1, fenced=True)], {"t": partition((1,), isr=(1,), leader=-1)})

    assert results(image, election(UNCLEAN, {"t": (0,)})) == [
        (
            "t",
            0,
            "eligible_leaders_not_available",
            "Eligible topic partition leaders are not available.",
        )
    ]


def test_an_unknown_kind_of_election() -> None:
    decision = ask(IMAGE, election(7, {"t": (0,)}))

    assert decision.response.error_code.name == "invalid_request"
    assert results(IMAGE, election(7, {"t": (0,)})) == [
        ("t", 0, "invalid_request", "Unknown election type 7")
    ]
