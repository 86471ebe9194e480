"""A regular expression matches only topics that the subscribed client may describe."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from tests.unit.coordination.groups.consumer.consumer_group_shard import (
    ConsumerGroupShard,
    FakeMember,
)

from tidelog.security.acls import AclEntry, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.security.authorizer import AuthorizerSettings
from tidelog.security.principal import ANONYMOUS

REFRESH_MS = 11 * 60_000
"""Longer than the interval at which expressions are matched again."""


def entry(topic: str, permission: AclPermission = AclPermission.ALLOW) -> AclEntry:
    return AclEntry(
        AclResource.TOPIC,
        topic,
        AclPattern.LITERAL,
        str(ANONYMOUS),
        "*",
        AclOperation.DESCRIBE,
        permission,
    )


def with_entries(shard: ConsumerGroupShard, *entries: AclEntry) -> None:
    acls = {UUID(int=number): one for number, one in enumerate(entries)}
    shard.image = replace(shard.image, acls=acls, offset=shard.image.offset + 1)


def subscribed(shard: ConsumerGroupShard, member: FakeMember) -> set[Any]:
    shard.join(member, subscribed_topic_regex="orders-.*")
    shard.settle(member)
    return {shard.image.topic_names[topic_id] for topic_id in member.owned}


def a_shard(**settings: Any) -> ConsumerGroupShard:
    shard = ConsumerGroupShard(authorizer=AuthorizerSettings(**settings))
    for name in ("orders-a", "orders-b", "orders-secret"):
        shard.put_topic(name, 1)
    return shard


def test_f85_topics_that_a_client_may_not_describe_do_not_match() -> None:
    shard = a_shard()
    with_entries(shard, entry("orders-a"), entry("orders-b"))
    assert subscribed(shard, FakeMember("A")) == {"orders-a", "orders-b"}


def test_f85_a_denied_topic_does_not_match_where_everything_else_is_allowed() -> None:
    shard = a_shard(allows_if_no_acl=True)
    with_entries(shard, entry("orders-secret", AclPermission.DENY))
    assert subscribed(shard, FakeMember("A")) == {"orders-a", "orders-b"}


def test_super_users_match_every_topic() -> None:
    shard = a_shard(super_users=frozenset({str(ANONYMOUS)}))
    assert len(subscribed(shard, FakeMember("A"))) == 3


def test_f87_a_permission_that_is_revoked_ends_with_the_next_refresh() -> None:
    shard, member = a_shard(), FakeMember("A")
    with_entries(shard, entry("orders-a"), entry("orders-secret"))
    assert subscribed(shard, member) == {"orders-a", "orders-secret"}
    with_entries(shard, entry("orders-a"))
    for _ in range(REFRESH_MS // 10_000):
        shard.now += 10_000
        shard.beat(member, report=member.carry_out())
    shard.settle(member)
    owned = {shard.image.topic_names[topic_id] for topic_id, ids in member.owned.items() if ids}
    assert owned == {"orders-a"}
