from uuid import UUID

import click
import pytest

from tidelog.cli.kafka_tools.topics import parse_assignment, parse_topic_id, topic_pattern
from tidelog.cli.output.topic_report import Filter, topic_id_text
from tidelog.client.admin import PartitionDescription
from tidelog.model.user_error import UserError


def partition(isr: int, leader: int = 1) -> PartitionDescription:
    return PartitionDescription(0, leader, (1, 2, 3), tuple(range(1, isr + 1)), (), ())


@pytest.mark.parametrize(
    ("only", "shown"),
    [
        (Filter(), [0, 1, 2, 3]),
        (Filter(under_replicated=True), [0, 1, 2]),
        (Filter(at_min_isr=True), [2]),
        (Filter(under_min_isr=True), [0, 1]),
        (Filter(under_min_isr=True, at_min_isr=True), [0, 1, 2]),
        (Filter(unavailable=True), []),
    ],
)
def test_filters_choose_by_the_size_of_the_isr(only: Filter, shown: list[int]) -> None:
    sizes = [isr for isr in range(4) if only.wants(partition(isr), 3, 2)]
    assert sizes == shown


def test_a_partition_without_a_leader_is_unavailable_and_under_min_isr() -> None:
    leaderless = partition(3, leader=-1)
    assert Filter(unavailable=True).wants(leaderless, 3, 2)
    assert Filter(under_min_isr=True).wants(leaderless, 3, 2)
    assert not Filter(under_replicated=True).wants(leaderless, 3, 2)


def test_assignments() -> None:
    assert parse_assignment(None) == []
    assert parse_assignment("1:2, 2:3") == [[1, 2], [2, 3]]
    with pytest.raises(UserError, match="same broker twice"):
        parse_assignment("1:1")
    with pytest.raises(UserError, match="different replication factor"):
        parse_assignment("1:2,3")
    with pytest.raises(click.UsageError, match="is not like"):
        parse_assignment("a")


def test_topic_ids_go_both_ways() -> None:
    topic_id = UUID(int=12345)
    assert parse_topic_id(topic_id_text(topic_id)) == topic_id
    for text in ("x", "not base64 at all!", "AAAA"):
        with pytest.raises(UserError, match="is not a topic id"):
            parse_topic_id(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("a.*", ["a", "ab", "a.b"]),
        (r"a\.b", ["a.b"]),
        ("a, c", ["a", "c"]),
        ('"ab"', ["ab"]),
        ("nope", []),
    ],
)
def test_topic_is_a_pattern_over_the_whole_name(text: str, names: list[str]) -> None:
    pattern = topic_pattern(text)
    assert [name for name in ("a", "ab", "a.b", "c") if pattern.fullmatch(name)] == names


def test_a_broken_pattern_is_told() -> None:
    with pytest.raises(click.UsageError, match="is no regular expression"):
        topic_pattern("a[")
