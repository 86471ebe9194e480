"""The topics of the cluster, as a consumer group sees them, and the hash of a group's topics.

A group stores the hash of the topics that it subscribes to. If the hash of the current topics
differs, for example because a topic has more partitions, the group needs a new assignment. The
hash is Kafka's (XXH3), so that a group keeps its epoch when it moves to Apache Kafka.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import xxhash

from tidelog.controller.image.image import ClusterImage, TopicImage
from tidelog.coordination.java_strings import utf16_length
from tidelog.model.ids import TopicId

_NO_TOPICS = 0
_SIGN = 1 << 63
_REMEMBERED = 10_000
"""The number of hashes that are remembered before all of them are forgotten."""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    name: str
    topic_id: TopicId
    partition_count: int
    racks: Mapping[int, tuple[str, ...]]
    """The racks of the brokers that hold each partition; a partition without racks is absent."""


class ClusterTopics:
    """The topics of one cluster image; facts are gathered when they are asked for."""

    def __init__(self, image: ClusterImage, before: "ClusterTopics | None" = None) -> None:
        self.image = image
        self._facts: dict[str, tuple[TopicImage, TopicFacts]] = {}
        self.newest_topic_version = image.offset
        """The offset of the first image that has all the topics of this one."""
        if before is None:
            return
        if image.brokers is before.image.brokers:
            known = before._facts
            # Deleted topics are forgotten, also those that a group still subscribes to.
            self._facts = {name: known[name] for name in known if name in image.topics}
        if image.topic_names.keys() <= before.image.topic_names.keys():
            self.newest_topic_version = before.newest_topic_version

    @property
    def known_count(self) -> int:
        """The number of topics whose facts are kept."""
        return len(self._facts)

    @property
    def version(self) -> int:
        """The offset of the image."""
        return self.image.offset

    def is_of(self, image: ClusterImage) -> bool:
        return self.image is image

    def named(self, name: str) -> TopicFacts | None:
        topic = self.image.topics.get(name)
        if topic is None:
            return None
        known = self._facts.get(name)
        if known is None or known[0] is not topic:
            known = self._facts[name] = (topic, self._facts_of(topic))
        return known[1]

    def name_of(self, topic_id: TopicId) -> str | None:
        return self.image.topic_names.get(topic_id)

    def names(self) -> Iterable[str]:
        return self.image.topics

    def _facts_of(self, topic: TopicImage) -> TopicFacts:
        racks: dict[int, tuple[str, ...]] = {}
        for partition, placed in topic.partitions.items():
            found = (self.image.brokers.get(replica) for replica in placed.replicas)
            names = tuple(b.rack for b in found if b is not None and b.rack is not None)
            if names:
                racks[partition] = names
        return TopicFacts(topic.name, topic.topic_id, len(topic.partitions), racks)


class TopicHashes:
    """Hashes of topics, computed once per value of the topic's facts."""

    def __init__(self) -> None:
        self._hashes: dict[str, tuple[TopicFacts, int]] = {}

    def __len__(self) -> int:
        return len(self._hashes)

    def of_group(self, names: Iterable[str], topics: ClusterTopics) -> int:
        """The hash of the topics that exist."""
        found = [facts for name in names if (facts := topics.named(name)) is not None]
        if not found:
            return _NO_TOPICS
        found.sort(key=lambda facts: facts.name.encode("utf-16-be", "surrogatepass"))
        hashes = [self._of_topic(facts) for facts in found]
        return _signed(xxhash.xxh3_64_intdigest(struct.pack(f"<{len(hashes)}q", *hashes)))

    def _of_topic(self, facts: TopicFacts) -> int:
        known = self._hashes.get(facts.name)
        if known is not None and (known[0] is facts or known[0] == facts):
            return known[1]
        if len(self._hashes) >= _REMEMBERED:
            self._hashes.clear()  # topics come and go
        computed = topic_hash(facts)
        self._hashes[facts.name] = (facts, computed)
        return computed


def topic_hash(facts: TopicFacts) -> int:
    """Kafka's hash of a topic: its id, its name, and the racks of each partition."""
    most, least = facts.topic_id.int >> 64, facts.topic_id.int & (2 * _SIGN - 1)
    parts = [struct.pack("<bQQ", 0, most, least), _chars(facts.name)]
    parts.append(struct.pack("<i", facts.partition_count))
    for partition in range(facts.partition_count):
        parts.append(struct.pack("<i", partition))
        for rack in sorted(facts.racks.get(partition, ())):
            parts += [struct.pack("<i", utf16_length(rack)), _chars(rack)]
    return _signed(xxhash.xxh3_64_intdigest(b"".join(parts)))


def _chars(text: str) -> bytes:
    """A string as Kafka's hash library reads it: UTF-16 code units, then their number."""
    return text.encode("utf-16-le", "surrogatepass") + struct.pack("<i", utf16_length(text))


def _signed(value: int) -> int:
    return value - 2 * _SIGN if value >= _SIGN else value
