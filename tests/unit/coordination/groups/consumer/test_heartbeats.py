"""Heartbeats that are not valid, and details that no scenario shows."""

import re
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.coordination.groups.consumer.consumer_group_shard import (
    GROUP,
    ConsumerGroupShard,
    FakeMember,
    heartbeat_of,
    reported,
)

from tidelog.config.group_settings import ConsumerGroupSettings, MigrationPolicy
from tidelog.coordination.groups.consumer.expressions import InvalidExpression, compiled, matches
from tidelog.coordination.records import decode_key
from tidelog.model.errors import ErrorCode

JOIN: dict[str, Any] = {
    "rebalance_timeout": timedelta(minutes=1),
    "subscribed_topic_names": ("t",),
    "topic_partitions": (),
}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({**JOIN, "group_id": " "}, "GroupId can't be empty."),
        ({**JOIN, "member_id": ""}, "MemberId can't be empty."),
        ({**JOIN, "instance_id": ""}, "InstanceId can't be empty."),
        ({**JOIN, "rack_id": ""}, "RackId can't be empty."),
        (
            {**JOIN, "rebalance_timeout": timedelta(milliseconds=-1)},
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        ({**JOIN, "topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {**JOIN, "subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_invalid_heartbeat(fields: dict[str, Any], message: str) -> None:
    response = ConsumerGroupShard().ask(heartbeat_of(FakeMember("A"), **fields))

    assert (response.error_code, response.error_message) == (ErrorCode.invalid_request, message)


def test_member_of_version_0_gets_an_id_from_the_coordinator() -> None:
    shard = ConsumerGroupShard()
    shard.put_topic("t", 1)

    response = shard.ask(heartbeat_of(FakeMember(""), **JOIN), version=0)

    assert response.error_code is ErrorCode.none
    assert response.member_id
    assert list(shard.group.members) == [response.member_id]


def test_heartbeat_to_an_unknown_group() -> None:
    response = ConsumerGroupShard().beat(FakeMember("A", epoch=3))

    assert response.error_code is ErrorCode.group_id_not_found
    assert response.error_message == f"Group {GROUP} not found."


def test_full_heartbeat_is_answered_with_the_whole_assignment() -> None:
    shard = ConsumerGroupShard()
    topic_id = shard.put_topic("t", 2)
    member = FakeMember("A")
    shard.join(member, "t")
    member.carry_out()

    plain = shard.beat(member)
    full = shard.ask(heartbeat_of(member, **{**JOIN, "topic_partitions": reported(member.owned)}))

    assert plain.assignment is None
    assert full.assignment.topic_partitions[0].topic_id == topic_id


def test_heartbeat_without_changes_writes_nothing() -> None:
    shard = ConsumerGroupShard()
    shard.put_topic("t", 2)
    member = FakeMember("A")
    shard.join(member, "t")
    shard.settle(member)
    written = len(shard.log.records)

    for _ in range(3):
        shard.wait(5_000)
        shard.beat(member)

    assert len(shard.log.records) == written


def test_members_that_join_together_share_one_assignment() -> None:
    shard = ConsumerGroupShard(ConsumerGroupSettings())
    shard.put_topic("t", 300)
    members = [FakeMember(f"m-{number}") for number in range(100)]
    for member in members:
        shard.join(member, "t")

    targets = [
        key for key, _ in shard.log.records if type(decode_key(key)).__name__.endswith("MemberKey")
    ]
    assert len(targets) == 1  # the first member's; the others wait for the assignment interval


def test_settings_of_a_group_stay_within_the_brokers_limits() -> None:
    settings = ConsumerGroupSettings(limits={"consumer.session.timeout.ms": (45_000, 60_000)})

    assert settings.of_group({}) is settings
    own = settings.of_group(
        {"consumer.session.timeout.ms": "70000", "consumer.heartbeat.interval.ms": "7000"}
    )
    assert (own.session_timeout_ms, own.heartbeat_interval_ms) == (60_000, 7_000)


def test_migration_policies() -> None:
    allowed = {
        policy: (policy.allows_upgrade, policy.allows_downgrade) for policy in MigrationPolicy
    }

    assert allowed == {
        MigrationPolicy.DISABLED: (False, False),
        MigrationPolicy.UPGRADE: (True, False),
        MigrationPolicy.DOWNGRADE: (False, True),
        MigrationPolicy.BIDIRECTIONAL: (True, True),
    }


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("(a", "missing closing )"),
        ("[a", "missing closing ]"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(a)\\1", "invalid escape sequence"),
        ("a\\", "trailing backslash at end of expression"),
    ],
)
def test_invalid_expressions_are_refused_with_kafkas_words(expression: str, reason: str) -> None:
    with pytest.raises(InvalidExpression, match="^" + re.escape(reason)):
        compiled(expression)


def test_an_expression_matches_whole_names_in_linear_time() -> None:
    assert matches("logs-.*", ["logs-a", "my-logs-a", "logs-"]) == {"logs-a", "logs-"}
    assert matches("(a|aa)+$", ["a" * 249 + "!"]) == frozenset()
