"""The times, durations and files of `groups --reset-offsets`."""

from pathlib import Path

import click
import pytest

from tidelog.cli.kafka_tools.group_reset import (
    GroupCommandFailed,
    named_partitions,
    parse_datetime,
    parse_duration,
    read_plans,
)
from tidelog.client.client import Client
from tidelog.model.ids import TopicPartition

NOWHERE = Client("127.0.0.1:1")


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:01.500", 1500),
        ("1970-01-01T00:00:01.500Z", 1500),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-02T00:00:00", 86_400_000),
    ],
)
def test_a_time_without_a_zone_is_utc(text: str, milliseconds: int) -> None:
    assert parse_datetime(text) == milliseconds


@pytest.mark.parametrize("text", ["1970-01-01", "T", "yesterday", "1970-13-01T00:00:00.000"])
def test_a_bad_time_is_refused(text: str) -> None:
    with pytest.raises(GroupCommandFailed):
        parse_datetime(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1S", 1000),
        ("PT0.25S", 250),
        ("pt1h2m3s", 3_723_000),
        ("P2D", 172_800_000),
        ("-P1D", -86_400_000),
        ("P-1D", -86_400_000),
    ],
)
def test_durations_are_those_of_java(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1h", "P1W", "PT1H2"])
def test_a_bad_duration_is_refused(text: str) -> None:
    with pytest.raises(GroupCommandFailed, match="Text cannot be parsed to a Duration"):
        parse_duration(text)


def test_partitions_are_named_after_a_colon() -> None:
    assert named_partitions(NOWHERE, ["t:0,2", "u:1"]) == [
        TopicPartition("t", 0),
        TopicPartition("t", 2),
        TopicPartition("u", 1),
    ]
    for bad in ("t:", ":1", "t:1:2", "t:a", "t:-1"):
        with pytest.raises(click.UsageError, match="Invalid"):
            named_partitions(NOWHERE, [bad])


def test_a_plan_may_name_its_group(tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text("t,0,5\n\n")
    assert read_plans(str(plan), ["g"]) == {"g": {TopicPartition("t", 0): 5}}
    plan.write_text("g,t,0,5\nh,t,1,6\n")
    assert read_plans(str(plan), ["g", "h"]) == {
        "g": {TopicPartition("t", 0): 5},
        "h": {TopicPartition("t", 1): 6},
    }


@pytest.mark.parametrize("text", ["t,0", "t,x,5", "t,0,y", "g,t,0,5,6"])
def test_a_bad_plan_is_refused(tmp_path: Path, text: str) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text(text)
    with pytest.raises(GroupCommandFailed, match="line 1"):
        read_plans(str(plan), ["g"])
    with pytest.raises(GroupCommandFailed, match="Unable to read file"):
        read_plans(str(tmp_path), ["g"])
