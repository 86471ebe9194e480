"""The difference between two images."""

from uuid import UUID

from tests.unit.controller.support import broker, cluster, partition

from tidelog.controller.image.apply import apply, apply_all
from tidelog.controller.image.difference import ImageDifference, diff
from tidelog.model.ids import TopicPartition
from tidelog.protocol.metadata import metadata_records as r

FIRST, SECOND = UUID(int=0xA0), UUID(int=0xA1)


def test_an_image_does_not_differ_from_itself() -> None:
    image = cluster(topics={"a": partition()})

    assert diff(image, image) == ImageDifference()
    assert diff(image, apply(image, r.NoOpRecord())).is_empty


def test_only_the_changed_partition_is_listed() -> None:
    image = cluster(topics={"a": [partition(), partition()], "b": partition()})
    new = apply(image, r.PartitionChangeRecord(partition_id=1, topic_id=FIRST, leader=2))
    (change,) = diff(image, new).partitions

    assert change.partition == TopicPartition("a", 1)
    assert (change.old, change.new) == (
        image.topics["a"].partitions[1],
        new.topics["a"].partitions[1],
    )


def test_a_new_topic_has_new_partitions_and_a_deleted_one_none() -> None:
    image = cluster(topics={"a": partition(), "b": partition()})
    records = (
        r.RemoveTopicRecord(topic_id=FIRST),
        r.TopicRecord(name="c", topic_id=UUID(int=9)),
        r.PartitionRecord(partition_id=0, topic_id=UUID(int=9), replicas=(1,), isr=(1,)),
    )
    found = diff(image, apply_all(image, records, 1002, 3))

    assert [topic.name for topic in found.created] == ["c"]
    assert [topic.name for topic in found.deleted] == ["a"]
    assert [(change.partition, change.old) for change in found.partitions] == [
        (TopicPartition("c", 0), None)
    ]


def test_a_topic_made_again_is_another_topic() -> None:
    image = cluster(topics={"a": partition()})
    same = image.topics["a"].partitions[0]
    records = (
        r.RemoveTopicRecord(topic_id=FIRST),
        r.TopicRecord(name="a", topic_id=UUID(int=9)),
        r.PartitionRecord(
            partition_id=0,
            topic_id=UUID(int=9),
            replicas=same.replicas,
            isr=same.isr,
            leader=same.leader,
            leader_epoch=same.leader_epoch,
            partition_epoch=same.partition_epoch,
            directories=same.directories,
        ),
    )
    found = diff(image, apply_all(image, records, 1002, 3))

    assert [topic.topic_id for topic in found.created] == [UUID(int=9)]
    assert [topic.topic_id for topic in found.deleted] == [FIRST]
    assert [change.old for change in found.partitions] == [None]


def test_configurations_brokers_and_features() -> None:
    image = cluster([broker(1), broker(2)], configs={(2, "a"): {"k": "v"}, (2, "b"): {"k": "v"}})
    new = image
    for record in (
        r.ConfigRecord(resource_type=2, resource_name="a", name="k", value="w"),
        r.ConfigRecord(resource_type=2, resource_name="b", name="k", value=None),
        r.ConfigRecord(resource_type=4, resource_name="", name="k", value="v"),
        r.FenceBrokerRecord(id=2, epoch=102),
        r.UnregisterBrokerRecord(broker_id=1, broker_epoch=101),
        r.FeatureLevelRecord(name="f", feature_level=1),
    ):
        new = apply(new, record)
    found = diff(image, new)

    assert found.configs == ((2, "a"), (4, ""), (2, "b"))
    assert found.brokers == (1, 2)
    assert found.features
    assert not found.is_empty
