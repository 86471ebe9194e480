"""A response does not reveal whether a topic exists that the client may not describe."""

from datetime import timedelta
from typing import Any

import pytest
from kio.schema.delete_topics.v6.request import DeleteTopicState
from kio.schema.describe_topic_partitions.v0.request import TopicRequest
from kio.schema.metadata.v13.request import MetadataRequestTopic
from tests.unit.api.access.checked_requests import ALICE, authorizer, entry
from tests.unit.api.support import TOPIC_ID, ask, decoded, drive, request

from tidelog.api.access.special_guards import offset_fetch
from tidelog.api.admin import topic_partitions
from tidelog.api.cluster import metadata
from tidelog.api.handler import Request
from tidelog.api.records import fetch
from tidelog.api.registry import REGISTRY
from tidelog.model.effects import FetchBatches, FetchResult
from tidelog.model.errors import ErrorCode
from tidelog.protocol.fetch import FetchPartition, FetchRequest
from tidelog.protocol.messages.canonical import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)
from tidelog.security.acls import AclOperation, AclResource
from tidelog.security.authorizer import AclAuthorizer

DENIED = ErrorCode.topic_authorization_failed
NOTHING = authorizer()


def made(message: Any, version: int, rules: AclAuthorizer) -> Request:
    return request(message, version, principal=ALICE, authorizer=rules)


def topics(rules: AclAuthorizer, *asked: MetadataRequestTopic, version: int = 13) -> Any:
    message = ask(3, topics=asked or None, allow_auto_topic_creation=False)
    answer = drive(metadata.handle(made(message, version, rules)))
    return decoded(answer, 3, version).topics


def named(name: str) -> MetadataRequestTopic:
    return MetadataRequestTopic(name=name, topic_id=None)


def test_a_list_of_all_topics_has_those_that_may_be_described() -> None:
    assert topics(NOTHING) == ()
    describe = entry(AclOperation.DESCRIBE, AclResource.TOPIC, "orders")
    assert [topic.name for topic in topics(authorizer(describe))] == ["orders"]


@pytest.mark.parametrize("name", ["orders", "no-such-topic"])
def test_a_topic_is_denied_whether_or_not_it_exists(name: str) -> None:
    [topic] = topics(NOTHING, named(name))
    assert (topic.error_code, topic.name, topic.partitions) == (DENIED, name, ())
    assert topic.topic_id is None


def test_a_topic_asked_for_by_its_id_keeps_its_name_secret() -> None:
    [topic] = topics(NOTHING, MetadataRequestTopic(name=None, topic_id=TOPIC_ID))
    assert (topic.error_code, topic.name, topic.topic_id) == (DENIED, None, TOPIC_ID)


def test_a_missing_topic_is_created_only_for_those_who_may() -> None:
    describe = entry(AclOperation.DESCRIBE, AclResource.TOPIC, "new")
    message = ask(3, topics=(named("new"),), allow_auto_topic_creation=True)
    answer = drive(metadata.handle(made(message, 13, authorizer(describe))))
    [topic] = decoded(answer, 3, 13).topics
    assert topic.error_code is DENIED

    create = entry(AclOperation.CREATE, AclResource.TOPIC, "new")
    answer = drive(metadata.handle(made(message, 13, authorizer(describe, create))), None)
    [topic] = decoded(answer, 3, 13).topics
    assert topic.error_code is ErrorCode.unknown_topic_or_partition


def test_described_partitions_are_hidden_in_the_same_way() -> None:
    everything = drive(topic_partitions.handle(made(ask(75, topics=(), cursor=None), 0, NOTHING)))
    assert everything.topics == ()
    asked = tuple(TopicRequest(name=name) for name in ("orders", "no-such-topic"))
    message = ask(75, topics=asked, cursor=None)
    answer = drive(topic_partitions.handle(made(message, 0, NOTHING)))
    assert {topic.error_code for topic in answer.topics} == {DENIED}
    assert {topic.partitions for topic in answer.topics} == {()}


def test_deleting_by_id_keeps_the_name_secret() -> None:
    by_id = ask(20, topics=(DeleteTopicState(name=None, topic_id=TOPIC_ID),))
    answer = drive(REGISTRY[20].guarded(made(by_id, 6, NOTHING)))
    [result] = answer.responses
    assert (result.error_code, result.name, result.topic_id) == (DENIED, None, TOPIC_ID)

    describe = authorizer(entry(AclOperation.DESCRIBE, AclResource.TOPIC, "orders"))
    [result] = drive(REGISTRY[20].guarded(made(by_id, 6, describe))).responses
    assert (result.error_code, result.name) == (DENIED, "orders")


def test_all_offsets_of_a_group_are_those_of_topics_that_may_be_described() -> None:
    found = OffsetFetchResponse(
        throttle_time=timedelta(0),
        groups=(
            OffsetFetchResponseGroup(
                group_id="g",
                topics=tuple(
                    OffsetFetchResponseTopics(name=name, topic_id=None, partitions=())
                    for name in ("orders", "payments")
                ),
                error_code=ErrorCode.none,
            ),
        ),
    )
    rules = authorizer(
        entry(AclOperation.DESCRIBE, AclResource.GROUP, "g"),
        entry(AclOperation.READ, AclResource.TOPIC, "orders"),
    )
    message = ask(9, groups=(OffsetFetchRequestGroup(group_id="g", topics=None),))
    answer = drive(offset_fetch(made(message, 9, rules), lambda _: found))
    [group] = answer.groups
    assert [topic.name for topic in group.topics] == ["orders"]


def test_offsets_of_named_topics_get_an_error() -> None:
    rules = authorizer(entry(AclOperation.DESCRIBE, AclResource.GROUP, "g"))
    topic = OffsetFetchRequestTopics(name="orders", topic_id=None, partition_indexes=(0, 1))
    message = ask(9, groups=(OffsetFetchRequestGroup(group_id="g", topics=(topic,)),))
    empty = OffsetFetchResponse(
        throttle_time=timedelta(0),
        groups=(OffsetFetchResponseGroup(group_id="g", topics=(), error_code=ErrorCode.none),),
    )
    answer = drive(offset_fetch(made(message, 9, rules), lambda _: empty))
    [row] = answer.groups[0].topics
    assert [(one.partition_index, one.error_code) for one in row.partitions] == [
        (0, DENIED),
        (1, DENIED),
    ]
    assert {one.committed_offset for one in row.partitions} == {-1}


def test_f87_a_fetch_that_waited_is_checked_again() -> None:
    """A permission that is revoked while a fetch waits does not return the records."""
    partition = FetchPartition(0, -1, 0, -1, -1, 1_000_000)
    message = FetchRequest(500, 1, 1_000_000, topics=[("orders", [partition])], entries=2)
    reader = authorizer(entry(AclOperation.READ, AclResource.TOPIC, "orders"))
    waiting = made(message, 12, reader)
    handling = fetch.handle(waiting)
    effect = handling.send(None)
    assert isinstance(effect, FetchBatches)
    assert effect.reads

    waiting.authorizer = NOTHING
    with pytest.raises(StopIteration) as end:
        handling.send([FetchResult(ErrorCode.none, 10, 10, 0)])
    [(_, [answer])] = end.value.value.topics
    assert (answer.error, answer.high_watermark) == (DENIED, -1)
