"""CreateTopics and DeleteTopics: the results, and the errors of Apache Kafka."""

from typing import Any
from uuid import UUID

import pytest
from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.create_topics.v7.response import CreatableTopicResult
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from tests.unit.controller.support import (
    TIMEOUT,
    after,
    ask,
    broker,
    cluster,
    directory,
    partition,
    settings,
)

from tidelog.controller.image.image import ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.metadata.metadata_records import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


def topic(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    configs: dict[str, str | None] | None = None,
    assignments: list[tuple[int, list[int]]] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(brokers))
            for index, brokers in assignments or []
        ),
        configs=tuple(
            CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ),
    )


def creation(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=topics, timeout=TIMEOUT, validate_only=validate_only)


def answer(
    image: ClusterImage, *topics: CreatableTopic, **changes: Any
) -> list[tuple[str, str, str | None]]:
    response = ask(image, creation(*topics), **changes).response
    return [(one.name, one.error_code.name, one.error_message) for one in response.topics]


def only(image: ClusterImage, asked: CreatableTopic, **changes: Any) -> CreatableTopicResult:
    (result,) = ask(image, creation(asked), **changes).response.topics
    assert isinstance(result, CreatableTopicResult)
    return result


# -- Accepted creations ----------------------------------------------------------------------------


def test_a_topic_is_its_records() -> None:
    image = cluster(3)
    decision = ask(image, creation(topic("t", 2, 3, {"retention.ms": "1000"})))
    made, config, first, second = decision.records

    assert isinstance(made, TopicRecord)
    assert made.name == "t"
    assert config == ConfigRecord(
        resource_type=2, resource_name="t", name="retention.ms", value="1000"
    )
    for index, record in enumerate((first, second)):
        assert isinstance(record, PartitionRecord)
        assert (record.partition_id, record.topic_id) == (index, made.topic_id)
        assert sorted(record.replicas) == [1, 2, 3]
        assert record.isr == record.replicas
        assert record.leader == record.replicas[0]
        assert (record.leader_epoch, record.partition_epoch) == (0, 0)
        assert record.directories == tuple(directory(one) for one in record.replicas)
    assert isinstance(first, PartitionRecord)
    assert isinstance(second, PartitionRecord)
    assert first.leader != second.leader


def test_the_answer_says_what_was_made() -> None:
    result = only(cluster(3), topic("t", 2, 3, {"retention.ms": " 5 "}))

    assert (result.error_code, result.error_message) == (ErrorCode.none, None)
    assert (result.num_partitions, result.replication_factor) == (2, 3)
    assert result.topic_id is not None
    assert result.configs is not None
    assert [config.name for config in result.configs] == sorted(c.name for c in result.configs)
    assert len(result.configs) == 33
    described = {config.name: config for config in result.configs}
    assert (described["retention.ms"].value, described["retention.ms"].config_source) == (" 5 ", 1)
    assert (described["segment.bytes"].value, described["segment.bytes"].config_source) == (
        "1073741824",
        5,
    )
    assert not any(config.read_only or config.is_sensitive for config in result.configs)


def test_the_defaults_come_from_the_settings() -> None:
    using = settings({"num.partitions": "4", "default.replication.factor": "2"})
    result = only(cluster(3), topic("t", -1, -1), using=using)

    assert (result.num_partitions, result.replication_factor) == (4, 2)


def test_a_chosen_assignment_is_kept() -> None:
    decision = ask(cluster(3), creation(topic("t", -1, -1, assignments=[(1, [3, 1]), (0, [2, 3])])))
    records = [record for record in decision.records if isinstance(record, PartitionRecord)]

    assert [(record.partition_id, record.replicas) for record in records] == [
        (0, (2, 3)),
        (1, (3, 1)),
    ]
    assert [record.leader for record in records] == [2, 3]


def test_a_fenced_replica_is_not_in_sync_and_does_not_lead() -> None:
    image = cluster([broker(1, fenced=True), broker(2), broker(3, in_controlled_shutdown=True)])
    decision = ask(image, creation(topic("t", -1, -1, assignments=[(0, [1, 2, 3])])))
    record = decision.records[-1]

    assert isinstance(record, PartitionRecord)
    assert (record.replicas, record.isr, record.leader) == ((1, 2, 3), (2,), 2)


def test_validation_makes_nothing_and_answers_the_same() -> None:
    decision = ask(cluster(3), creation(topic("t", 2, 3), validate_only=True))

    assert decision.records == ()
    assert decision.response.topics[0].error_code is ErrorCode.none
    assert decision.response.topics[0].num_partitions == 2


def test_one_refused_topic_holds_back_no_other() -> None:
    decision = ask(cluster(3), creation(topic("bad", 0), topic("good")))

    assert [one.error_code.name for one in decision.response.topics] == [
        "invalid_partitions",
        "none",
    ]
    assert [r.name for r in decision.records if isinstance(r, TopicRecord)] == ["good"]


# -- Refused creations -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        (
            topic(""),
            "invalid_topic_exception",
            "Topic name is invalid: the empty string is not allowed",
        ),
        (topic("."), "invalid_topic_exception", "Topic name is invalid: '.' is not allowed"),
        (topic(".."), "invalid_topic_exception", "Topic name is invalid: '..' is not allowed"),
        (
            topic("../../etc"),
            "invalid_topic_exception",
            "Topic name is invalid: '../../etc' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            topic("é"),
            "invalid_topic_exception",
            "Topic name is invalid: 'é' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            topic("x" * 250),
            "invalid_topic_exception",
            f"Topic name is invalid: the length of '{'x' * 250}' is longer than "
            "the max allowed length 249",
        ),
        (topic("there"), "topic_already_exists", "Topic 'there' already exists."),
        (
            topic("a_b"),
            "invalid_topic_exception",
            "Topic 'a_b' collides with existing topic: a.b",
        ),
        (
            topic("__cluster_metadata"),
            "invalid_request",
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (
            topic("t", 0),
            "invalid_partitions",
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            topic("t", 1, 0),
            "invalid_replication_factor",
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            topic("t", 1, 5),
            "invalid_replication_factor",
            "Unable to replicate the partition 5 time(s): The target replication factor of 5 "
            "cannot be reached because only 3 broker(s) are registered "
            "or some brokers have all their log directories cordoned.",
        ),
        (
            topic("t", 10_001),
            "policy_violation",
            "Excessively large number of partitions per request.",
        ),
        (
            topic("t", -1, -1, assignments=[(0, [1, 1])]),
            "invalid_replica_assignment",
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            topic("t", -1, -1, assignments=[(0, [9])]),
            "invalid_replica_assignment",
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            topic("t", -1, -1, assignments=[(0, [])]),
            "invalid_replica_assignment",
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            topic("t", -1, -1, assignments=[(1, [1])]),
            "invalid_replica_assignment",
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            topic("t", -1, -1, assignments=[(0, [1]), (0, [2])]),
            "invalid_replica_assignment",
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            topic("t", -1, -1, assignments=[(0, [1]), (1, [1, 2])]),
            "invalid_replica_assignment",
            "The manual partition assignment includes a partition with 2 replica(s), but this is "
            "not consistent with previous partitions, which have 1 replica(s).",
        ),
        (
            topic("t", 1, -1, assignments=[(0, [1])]),
            "invalid_request",
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            topic("t", 1, 1, assignments=[(0, [1])]),
            "invalid_request",
            "A manual partition assignment was specified, "
            "but replication factor was not set to -1.",
        ),
        (topic("t", configs={"foo": "1"}), "invalid_config", "Unknown topic config name: foo"),
        (
            topic("t", configs={"tidelog.table.enable": "yes"}),
            "invalid_config",
            "Invalid value yes for configuration tidelog.table.enable: "
            "Expected value to be either true or false",
        ),
        (
            topic("t", configs={"retention.ms": "x", "foo": "1"}),
            "invalid_config",
            "Unknown topic config name: foo",
        ),
        (
            topic("t", configs={"retention.ms": None}),
            "invalid_config",
            "Null value not supported for topic configs: retention.ms",
        ),
    ],
)
def test_a_refusal_has_kafkas_error_and_words(
    asked: CreatableTopic, error: str, message: str
) -> None:
    image = cluster(3, {"there": partition(), "a.b": partition()})
    decision = ask(image, creation(asked))
    (result,) = decision.response.topics

    assert (result.error_code.name, result.error_message) == (error, message)
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, ())
    assert decision.records == ()


def test_a_name_given_twice_is_refused_once() -> None:
    assert answer(cluster(), topic("dup"), topic("dup"), topic("ok")) == [
        ("dup", "invalid_request", "Duplicate topic name."),
        ("ok", "none", None),
    ]


def test_without_an_active_broker_nothing_can_be_made() -> None:
    image = cluster([broker(1, fenced=True)])

    assert answer(image, topic("t")) == [
        (
            "t",
            "invalid_replication_factor",
            "Unable to replicate the partition 1 time(s): All brokers are currently fenced.",
        )
    ]
    assert answer(image, topic("t", -1, -1, assignments=[(0, [1])])) == [
        (
            "t",
            "invalid_replica_assignment",
            "All brokers specified in the manual partition assignment for partition 0 are fenced "
            "or in controlled shutdown.",
        )
    ]


def test_a_batch_may_have_ten_thousand_partitions_in_all() -> None:
    topics = [topic(f"t{number}", 1000, 3) for number in range(10)]
    image = after(cluster(3), ask(cluster(3), creation(*topics)))

    assert image.partition_count() == 10_000
    assert {name for _, name, _ in answer(cluster(), *topics, topic("one more"))} == {
        "policy_violation"
    }


# -- Deletions of topics ---------------------------------------------------------------------------


def deletion(*topics: tuple[str | None, UUID | None]) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=tuple(DeleteTopicState(name=name, topic_id=id_) for name, id_ in topics),
        timeout=TIMEOUT,
    )


def deleted(image: ClusterImage, *topics: tuple[str | None, UUID | None]) -> list[Any]:
    response = ask(image, deletion(*topics)).response
    return [(one.name, one.error_code.name, one.error_message) for one in response.responses]


def test_a_topic_is_deleted_by_name_or_by_id() -> None:
    image = cluster(topics={"a": partition(), "b": partition(), "c": partition()})
    decision = ask(image, deletion(("a", None), (None, UUID(int=0xA1))))

    assert decision.records == (
        RemoveTopicRecord(topic_id=UUID(int=0xA0)),
        RemoveTopicRecord(topic_id=UUID(int=0xA1)),
    )
    assert [(one.name, one.topic_id.int) for one in decision.response.responses] == [
        ("a", 0xA0),
        ("b", 0xA1),
    ]
    assert list(after(image, decision).topics) == ["c"]


def test_what_cannot_be_deleted() -> None:
    image = cluster(topics={"a": partition()})
    id_ = UUID(int=0xA0)

    assert deleted(image, ("nope", None)) == [
        (
            "nope",
            "unknown_topic_or_partition",
            "This server does not host this topic-partition.",
        )
    ]
    assert deleted(image, (None, UUID(int=7))) == [
        (None, "unknown_topic_id", "This server does not host this topic ID.")
    ]
    assert deleted(image, ("a", None), ("a", None)) == [
        ("a", "invalid_request", "Duplicate topic name.")
    ]
    assert deleted(image, (None, id_), (None, id_)) == [
        (None, "invalid_request", "Duplicate topic id.")
    ]
    assert deleted(image, ("a", id_)) == [
        ("a", "invalid_request", "You may not specify both topic name and topic id.")
    ]
    assert deleted(image, (None, None)) == [
        (None, "invalid_request", "Neither topic name nor id were specified.")
    ]
    assert deleted(image, (None, id_), ("a", None)) == [
        ("a", "none", None),
        (
            "a",
            "invalid_request",
            "The provided topic name maps to an ID that was already supplied.",
        ),
    ]
