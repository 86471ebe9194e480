"""Metadata, CreateTopics and DeleteTopics."""

from typing import Any
from uuid import UUID

from tests.clients.batches import Batch
from tests.clients.parity import case
from tests.clients.talk import Talk

ZERO = UUID(int=0)
NOWHERE = UUID("00000000-0000-0000-0000-0000deadbeef")
BAD_NAMES = ("", ".", "..", "../../etc", "a/b", "a b", "é", "\0", "x" * 250)


# -- Metadata --------------------------------------------------------------------------------------


@case("Metadata")
def one_topic(t: Talk) -> None:
    topic = t.topic(partitions=3)
    t.ask({"topics": [{"name": topic.name, "topicId": ZERO}]})


@case("Metadata")
def all_topics(t: Talk) -> None:
    topic = t.topic()
    everything: list[Any] | None = [] if t.version == 0 else None
    answer = t.ask(
        {"topics": everything},
        only=lambda answer: [found for found in answer["topics"] if found["name"] == topic.name],
    )
    t.note(len(answer["topics"]) > 0)


@case("Metadata", lowest=1)
def no_topics(t: Talk) -> None:
    t.ask({"topics": []})


@case("Metadata")
def same_topic_twice(t: Talk) -> None:
    topic = t.topic()
    t.ask({"topics": [{"name": topic.name, "topicId": ZERO}] * 2})


@case("Metadata", lowest=4)
def unknown_topic(t: Talk) -> None:
    name = t.name()
    for _ in range(2):  # the first request must not create the topic
        t.ask({"topics": [{"name": name, "topicId": ZERO}], "allowAutoTopicCreation": False})


@case("Metadata")
def auto_creation(t: Talk) -> None:
    name = t.name()
    t.ask({"topics": [{"name": name, "topicId": ZERO}], "allowAutoTopicCreation": True})
    t.settled(name)
    t.ask({"topics": [{"name": name, "topicId": ZERO}], "allowAutoTopicCreation": True})


@case("Metadata")
def impossible_names(t: Talk) -> None:
    for name in BAD_NAMES:
        t.ask({"topics": [{"name": name, "topicId": ZERO}], "allowAutoTopicCreation": True})


@case("Metadata", lowest=4)
def impossible_names_without_auto_creation(t: Talk) -> None:
    for name in BAD_NAMES:
        t.ask({"topics": [{"name": name, "topicId": ZERO}], "allowAutoTopicCreation": False})


@case("Metadata", lowest=10)
def by_id(t: Talk) -> None:
    topic = t.topic(partitions=2)
    t.ask({"topics": [{"name": None, "topicId": topic.id}]})
    t.ask({"topics": [{"name": None, "topicId": NOWHERE}]})
    t.ask({"topics": [{"name": None, "topicId": ZERO}]})
    t.ask({"topics": [{"name": topic.name, "topicId": topic.id}]})


@case("Metadata", lowest=10)
def by_id_and_by_name(t: Talk) -> None:
    one, other = t.topic(), t.topic()
    t.ask({"topics": [{"name": None, "topicId": one.id}, {"name": other.name, "topicId": ZERO}]})


@case("Metadata", lowest=8)
def authorized_operations(t: Talk) -> None:
    topic = t.topic()
    t.ask(
        {
            "topics": [{"name": topic.name, "topicId": ZERO}],
            "includeTopicAuthorizedOperations": True,
            "includeClusterAuthorizedOperations": True,
        }
    )


@case("Metadata")
def internal_topic(t: Talk) -> None:
    t.quietly("FindCoordinator", 2, {"key": "anyone", "keyType": 0})
    t.settled("__consumer_offsets", 3)
    t.ask({"topics": [{"name": "__consumer_offsets", "topicId": ZERO}]})


# -- CreateTopics ----------------------------------------------------------------------------------


def create(t: Talk, *topics: dict[str, Any], **fields: Any) -> Any:
    full = [{"numPartitions": 1, "replicationFactor": 1, **topic} for topic in topics]
    return t.ask({"topics": full, "timeoutMs": 30000, **fields})


@case("CreateTopics")
def creates(t: Talk) -> None:
    name = t.name()
    create(t, {"name": name, "numPartitions": 3})
    t.settled(name, 3)
    create(t, {"name": name, "numPartitions": 3})


@case("CreateTopics")
def defaults(t: Talk) -> None:
    create(t, {"name": t.name(), "numPartitions": -1, "replicationFactor": -1})


@case("CreateTopics")
def create_impossible_names(t: Talk) -> None:
    for name in BAD_NAMES:
        create(t, {"name": name})


@case("CreateTopics")
def longest_name(t: Talk) -> None:
    create(t, {"name": f"{t.version}" + "y" * 248})


@case("CreateTopics")
def colliding_name(t: Talk) -> None:
    name = t.name()
    create(t, {"name": name + ".a"})
    create(t, {"name": name + "_a"})
    create(t, {"name": name.replace(".", "_") + ".a"})


@case("CreateTopics")
def internal_names(t: Talk) -> None:
    create(t, {"name": "__cluster_metadata"})


@case("CreateTopics")
def bad_partition_counts(t: Talk) -> None:
    for count in (0, -2, -(2**31)):
        create(t, {"name": t.name(), "numPartitions": count})


@case("CreateTopics")
def bad_replication_factors(t: Talk) -> None:
    for factor in (0, 2, -2, 32767):
        create(t, {"name": t.name(), "replicationFactor": factor})


@case("CreateTopics")
def assignments(t: Talk) -> None:
    def assigned(*partitions: tuple[int, list[int]]) -> None:
        wanted = [{"partitionIndex": index, "brokerIds": brokers} for index, brokers in partitions]
        create(
            t,
            {"name": t.name(), "numPartitions": -1, "replicationFactor": -1, "assignments": wanted},
        )

    assigned((0, [1]))
    assigned((1, [1]), (0, [1]))
    assigned((0, [9]))
    assigned((0, [1, 1]))
    assigned((0, []))
    assigned((1, [1]))
    assigned((0, [1]), (0, [1]))
    assigned((-1, [1]))
    assigned((0, [1]), (1, [1, 2]))


@case("CreateTopics")
def assignments_and_counts(t: Talk) -> None:
    wanted = [{"partitionIndex": 0, "brokerIds": [1]}]
    create(
        t, {"name": t.name(), "numPartitions": 1, "replicationFactor": -1, "assignments": wanted}
    )
    create(
        t, {"name": t.name(), "numPartitions": -1, "replicationFactor": 1, "assignments": wanted}
    )


@case("CreateTopics")
def validate_only(t: Talk) -> None:
    name = t.name()
    create(t, {"name": name, "numPartitions": 2}, validateOnly=True)
    create(t, {"name": name, "replicationFactor": 5}, validateOnly=True)
    t.ask_other("Metadata", None, {"topics": [{"name": name}], "allowAutoTopicCreation": False})


@case("CreateTopics")
def same_name_twice(t: Talk) -> None:
    name, other = t.name(), t.name()
    full = [
        {"name": each, "numPartitions": 1, "replicationFactor": 1} for each in (name, other, name)
    ]
    t.ask(
        {"topics": full, "timeoutMs": 30000},
        only=lambda answer: sorted(answer["topics"], key=lambda found: str(found["name"])),
    )


@case("CreateTopics")
def some_good_some_bad(t: Talk) -> None:
    create(t, {"name": t.name()}, {"name": ".."}, {"name": t.name(), "replicationFactor": 3})


@case("CreateTopics")
def create_nothing(t: Talk) -> None:
    create(t)


def configured(t: Talk, **configs: object) -> None:
    pairs = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    create(t, {"name": t.name(), "configs": pairs})


@case("CreateTopics")
def good_configs(t: Talk) -> None:
    configured(t, retention_ms="-1", cleanup_policy="compact,delete", min_insync_replicas="2")
    configured(
        t, compression_type="zstd", message_timestamp_type="LogAppendTime", segment_bytes="1048576"
    )


@case("CreateTopics")
def bad_configs(t: Talk) -> None:
    configured(t, no_such_thing="1")
    configured(t, retention_ms="soon")
    configured(t, retention_ms="")
    configured(t, retention_ms=None)
    configured(t, retention_ms="-2")
    configured(t, cleanup_policy="shred")
    configured(t, cleanup_policy="")
    configured(t, min_insync_replicas="0")
    configured(t, compression_type="rar")
    configured(t, max_message_bytes="-1")
    configured(t, segment_bytes="13")
    configured(t, message_timestamp_type="Whenever")
    configured(t, min_cleanable_dirty_ratio="1.5")
    configured(t, unclean_leader_election_enable="perhaps")
    configured(t, retention_bytes="99999999999999999999")
    configured(t, flush_messages="0")
    configured(t, preallocate="TRUE")
    configured(t, segment_ms="0")


@case("CreateTopics")
def same_config_twice(t: Talk) -> None:
    pairs = [{"name": "retention.ms", "value": "1000"}, {"name": "retention.ms", "value": "2000"}]
    create(t, {"name": t.name(), "configs": pairs})


# -- DeleteTopics ----------------------------------------------------------------------------------


def deleting(*names: str) -> dict[str, Any]:
    topics = [{"name": name, "topicId": ZERO} for name in names]
    return {"topicNames": list(names), "topics": topics, "timeoutMs": 30000}


@case("DeleteTopics")
def deletes(t: Talk) -> None:
    topic = t.topic(partitions=2)
    t.produce(topic, Batch())
    t.ask(deleting(topic.name))
    gone = {"topics": [{"name": topic.name}], "allowAutoTopicCreation": False}
    t.until(lambda: t.quietly("Metadata", 12, gone)["topics"][0]["errorCode"] == 3, "deletion")
    t.ask(deleting(topic.name))
    again = t.topic(name=topic.name)
    t.note(again.id != topic.id)
    t.produce(again, Batch())
    t.look(again)


@case("DeleteTopics")
def delete_unknown(t: Talk) -> None:
    t.ask(deleting("nowhere"))
    for name in ("", "..", "../../etc", "x" * 250):
        t.ask(deleting(name))


@case("DeleteTopics")
def delete_twice_in_one(t: Talk) -> None:
    topic = t.topic()
    t.ask(deleting(topic.name, topic.name))


@case("DeleteTopics")
def delete_some_good_some_bad(t: Talk) -> None:
    topic = t.topic()
    t.ask(deleting(topic.name, "nowhere"), only=in_order)


def in_order(answer: dict[str, Any]) -> Any:
    """Sort the answers, because Kafka returns them in no fixed order."""
    return sorted(answer["responses"], key=lambda found: str(found["name"]))


@case("DeleteTopics")
def delete_nothing(t: Talk) -> None:
    t.ask(deleting())


@case("DeleteTopics", lowest=6)
def delete_by_id(t: Talk) -> None:
    topic, other = t.topic(), t.topic()
    for wanted in (
        {"name": None, "topicId": NOWHERE},
        {"name": None, "topicId": topic.id},
        {"name": other.name, "topicId": other.id},
        {"name": None, "topicId": ZERO},
    ):
        t.ask({"topics": [wanted], "timeoutMs": 30000})
