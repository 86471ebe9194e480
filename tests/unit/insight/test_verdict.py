"""The sentence about a cluster names the most severe state of its partitions."""

import pytest

from tidelog.insight.verdict import PartitionHealth, verdict
from tidelog.model.ids import TopicPartition


def health(
    leader: int = 1, isr: tuple[int, ...] = (1, 2, 3), replicas: int = 3, min_isr: int | None = 2
) -> PartitionHealth:
    held = tuple(range(1, replicas + 1))
    return PartitionHealth(TopicPartition("orders", 0), leader, held, isr, min_isr)


@pytest.mark.parametrize(
    ("partitions", "kind", "text"),
    [
        ([], "empty", "Ready. There are no topics yet."),
        ([health()], "healthy", "Healthy: any one broker can be lost."),
        ([health(isr=(1, 2))], "at-limit", "One more loss stops writes to 1 partition."),
        (
            [health(isr=(1, 2), min_isr=1)],
            "lagging",
            "1 partition has too few replicas in sync; writes go on.",
        ),
        (
            [health(), health(isr=(1,))],
            "below-min",
            "Writes with acks=all to 1 partition are refused: too few replicas are in sync.",
        ),
        (
            [health(isr=(1,)), health(leader=-1, isr=())],
            "leaderless",
            "1 partition has no leader, so nobody can read or write there.",
        ),
        (
            [health(isr=(1,), replicas=1)],
            "single",
            "Healthy, but 1 partition has only one replica.",
        ),
        (
            [health(min_isr=3)],
            "tight",
            "Healthy, but the loss of a broker stops writes to 1 partition.",
        ),
    ],
)
def test_the_most_severe_state_is_named(
    partitions: list[PartitionHealth], kind: str, text: str
) -> None:
    found = verdict(partitions, has_controller=True, voters=3)

    assert (found.kind, found.text) == (kind, text)


def test_more_replicas_allow_more_losses_as_long_as_a_majority_of_voters_remains() -> None:
    wide = [health(isr=(1, 2, 3, 4, 5), replicas=5)]

    assert (
        verdict(wide, has_controller=True, voters=7).text == "Healthy: any 3 brokers can be lost."
    )
    assert verdict(wide, has_controller=True, voters=3).number == 1
    assert verdict(wide, has_controller=True, voters=1).kind == "fragile"


def test_without_a_controller_nothing_else_is_called_healthy() -> None:
    assert verdict([health()], has_controller=False).level == "bad"


def test_an_unknown_minimum_counts_as_one() -> None:
    assert health(isr=(1,), min_isr=None).spare == 0
