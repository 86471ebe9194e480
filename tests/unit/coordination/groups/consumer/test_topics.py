"""The hash of a group's topics is Kafka's (the expected values come from Kafka's library)."""

from dataclasses import replace
from uuid import UUID

import pytest

from tidelog.controller.image.image import (
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from tidelog.coordination.groups.consumer.topics import (
    ClusterTopics,
    TopicFacts,
    TopicHashes,
    topic_hash,
)

TOPIC_ID = UUID(int=(5 << 64) | ((1 << 64) - 7))


def image(*, offset: int = 1, partitions: int = 2, names: tuple[str, ...] = ("t",)) -> ClusterImage:
    placed = {index: PartitionImage((1, 2), (1, 2), 1, 0, 0) for index in range(partitions)}
    topics = {name: TopicImage(name, UUID(int=9 + ord(name)), placed) for name in names}
    return ClusterImage(
        topics=topics,
        topic_names={topic.topic_id: name for name, topic in topics.items()},
        brokers={
            1: BrokerImage(1, 0, UUID(int=1), {}, rack="b"),
            2: BrokerImage(2, 0, UUID(int=2), {}),
        },
        offset=offset,
    )


def test_topic_hash_is_kafkas() -> None:
    facts = TopicFacts("foo", TOPIC_ID, 2, {0: ("r-1",)})

    assert topic_hash(facts) == -2954345698531152704


def test_racks_come_from_the_replicas() -> None:
    facts = ClusterTopics(image()).named("t")

    assert facts is not None
    assert facts.racks == {0: ("b",), 1: ("b",)}


def test_group_hash_ignores_unknown_topics_and_changes_with_partitions() -> None:
    hashes = TopicHashes()
    before, after = ClusterTopics(image()), ClusterTopics(image(partitions=3))

    assert hashes.of_group(("x",), before) == 0
    assert hashes.of_group(("t", "x"), before) == hashes.of_group(("t",), before)
    assert hashes.of_group(("t",), before) != hashes.of_group(("t",), after)


def test_version_of_the_newest_topic() -> None:
    first = ClusterTopics(image(offset=1))
    grown = ClusterTopics(image(offset=2, partitions=3), first)
    created = ClusterTopics(image(offset=3, names=("t", "u")), grown)

    assert (first.newest_topic_version, grown.newest_topic_version) == (1, 1)
    assert created.newest_topic_version == 3


def test_deleted_topics_are_forgotten() -> None:
    first = ClusterTopics(image(names=("t", "u")))
    assert first.named("t") is not None
    assert first.named("u") is not None

    left = ClusterTopics(replace(first.image, topics={}, topic_names={}), first)

    assert left.known_count == 0


def test_the_number_of_remembered_hashes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.coordination.groups.consumer.topics._REMEMBERED", 10)
    hashes = TopicHashes()
    for number in range(100):
        name = chr(ord("a") + number)
        hashes.of_group((name,), ClusterTopics(image(names=(name,))))

    assert len(hashes) <= 10
