"""Applying each kind of record, transactions of the metadata log, and parts that images share."""

from uuid import UUID

import pytest
from tests.unit.controller.support import broker, cluster, directory, partition

from tidelog.controller.image.apply import ImpossibleRecord, apply, apply_all
from tidelog.controller.image.image import MIGRATING_DIRECTORY, TOPIC_RESOURCE, ClusterImage
from tidelog.controller.image.snapshot import records_of
from tidelog.model.ids import TopicPartition
from tidelog.protocol.metadata import metadata_records as r
from tidelog.security.acls import AclEntry

TOPIC_ID = UUID(int=0xA0)


def _after(image: ClusterImage, *records: r.MetadataRecord) -> ClusterImage:
    return apply_all(image, records, image.offset + len(records), image.epoch)


def test_a_topic_comes_with_its_partitions_and_goes_with_its_configuration() -> None:
    made = _after(
        cluster(3),
        r.TopicRecord(name="t", topic_id=TOPIC_ID),
        r.ConfigRecord(
            resource_type=TOPIC_RESOURCE, resource_name="t", name="retention.ms", value="1"
        ),
        r.PartitionRecord(
            partition_id=0,
            topic_id=TOPIC_ID,
            replicas=(1, 2),
            isr=(1,),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=(directory(1), directory(2)),
        ),
    )
    found = made.partition(TopicPartition("t", 0))
    assert found is not None
    assert (found.replicas, found.isr, found.leader) == ((1, 2), (1,), 1)
    assert made.topic(TOPIC_ID) is made.topics["t"]

    gone = _after(made, r.RemoveTopicRecord(topic_id=TOPIC_ID))
    assert (gone.topics, gone.topic_names, gone.configs) == ({}, {}, {})
    assert "t" in made.topics, "the older image is as it was"


def test_a_partition_without_directories_comes_from_before_they_were_known() -> None:
    image = _after(
        cluster(),
        r.TopicRecord(name="t", topic_id=TOPIC_ID),
        r.PartitionRecord(partition_id=0, topic_id=TOPIC_ID, replicas=(1, 2), isr=(1,), leader=1),
    )

    assert image.topics["t"].partitions[0].directories == (MIGRATING_DIRECTORY,) * 2


def test_a_change_moves_the_partition_epoch_and_a_leader_the_leader_epoch() -> None:
    image = cluster(topics={"t": partition()})
    shrunk = apply(image, r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=(1, 2)))
    moved = apply(shrunk, r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=1))

    epochs = [
        (one.topics["t"].partitions[0].leader_epoch, one.topics["t"].partitions[0].partition_epoch)
        for one in (image, shrunk, moved)
    ]
    assert epochs == [(5, 7), (5, 8), (6, 9)]
    assert moved.topics["t"].partitions[0].isr == (1, 2)


def test_clearing_eligible_replicas_touches_only_partitions_that_have_some() -> None:
    waiting = partition(isr=(1,), elr=(2,), last_known_elr=())
    image = cluster(topics={"a": [waiting, partition()], "b": waiting})

    one = apply(image, r.ClearElrRecord(topic_name="a"))
    assert one.topics["a"].partitions[0].elr == ()
    assert one.topics["a"].partitions[0].partition_epoch == 8
    assert one.topics["a"].partitions[1] is image.topics["a"].partitions[1]
    assert one.topics["b"] is image.topics["b"]

    every = apply(image, r.ClearElrRecord(topic_name=""))
    assert every.topics["b"].partitions[0].elr == ()


def test_a_broker_registers_changes_and_goes() -> None:
    image = apply(
        cluster(0),
        r.RegisterBrokerRecord(
            broker_id=4,
            incarnation_id=UUID(int=1),
            broker_epoch=77,
            end_points=(r.EndPoint(name="P", host="h", port=1, security_protocol=0),),
            features=(r.Feature(name="f", min_supported_version=0, max_supported_version=2),),
            rack="r",
            log_dirs=(directory(4),),
        ),
    )
    assert image.brokers[4].fenced
    assert image.brokers[4].features["f"].maximum == 2

    change = r.BrokerRegistrationChangeRecord
    unfenced = apply(image, change(broker_id=4, broker_epoch=77, fenced=-1))
    assert unfenced.is_active(4)
    stopping = apply(unfenced, change(broker_id=4, broker_epoch=77, in_controlled_shutdown=1))
    assert not stopping.is_active(4)
    assert stopping.brokers[4].shutdown_offset == stopping.offset
    lost = apply(stopping, change(broker_id=4, broker_epoch=77, log_dirs=(directory(9),)))
    assert lost.brokers[4].directories == (directory(9),)
    assert apply(lost, r.FenceBrokerRecord(id=4, epoch=77)).brokers[4].fenced
    assert not apply(image, r.UnfenceBrokerRecord(id=4, epoch=77)).brokers[4].fenced
    assert apply(lost, r.UnregisterBrokerRecord(broker_id=4, broker_epoch=77)).brokers == {}


def test_a_configuration_without_values_is_no_configuration() -> None:
    def config(value: str | None) -> r.ConfigRecord:
        return r.ConfigRecord(resource_type=4, resource_name="", name="k", value=value)

    image = apply(cluster(), config("v"))
    assert image.config(4, "") == {"k": "v"}
    assert apply(image, config(None)).configs == {}
    assert apply(cluster(), config(None)).configs == {}


def test_features_producer_ids_and_controllers() -> None:
    image = _after(
        ClusterImage(),
        r.FeatureLevelRecord(name="f", feature_level=3),
        r.ProducerIdsRecord(broker_id=1, next_producer_id=1000),
        r.RegisterControllerRecord(
            controller_id=1,
            incarnation_id=UUID(int=1),
            zk_migration_ready=False,
            end_points=(),
            features=(),
        ),
        r.NoOpRecord(),
        r.ZkMigrationStateRecord(zk_migration_state=0),
    )
    assert image.features == {"f": 3}
    assert image.next_producer_id == 1000
    assert list(image.controllers) == [1]
    assert image.offset == 4
    assert apply(image, r.FeatureLevelRecord(name="f", feature_level=0)).features == {}


def test_credentials_tokens_and_acls_are_carried_until_removed() -> None:
    token = r.DelegationTokenRecord(
        owner="o",
        requester="o",
        renewers=(),
        issue_timestamp=0,
        max_timestamp=0,
        expiration_timestamp=0,
        token_id="t",
    )
    entry = r.AccessControlEntryRecord(
        id=UUID(int=1),
        resource_type=2,
        resource_name="*",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=2,
        permission_type=3,
    )
    image = _after(cluster(), token, entry)
    assert list(image.carried.values()) == [token]
    assert image.acls == {UUID(int=1): AclEntry(2, "*", 3, "User:a", "*", 2, 3)}
    assert set(records_of(image)) >= {token, entry}

    gone = _after(
        image,
        r.RemoveDelegationTokenRecord(token_id="t"),
        r.RemoveAccessControlEntryRecord(id=UUID(int=1)),
    )
    assert gone.carried == {}
    assert gone.acls == {}


# -- Transactions of the metadata log --------------------------------------------------------------


def test_a_transaction_shows_only_when_it_has_ended() -> None:
    begun = _after(
        cluster(), r.BeginTransactionRecord(name="x"), r.TopicRecord(name="t", topic_id=TOPIC_ID)
    )
    assert "t" in begun.topics
    assert "t" not in begun.visible.topics

    ended = apply(begun, r.EndTransactionRecord())
    assert ended.visible is ended
    assert "t" in ended.topics


def test_an_aborted_transaction_leaves_nothing() -> None:
    before = apply(cluster(), r.TopicRecord(name="kept", topic_id=UUID(int=1)))
    aborted = _after(
        before,
        r.TopicRecord(name="also kept", topic_id=UUID(int=2)),
        r.BeginTransactionRecord(),
        r.TopicRecord(name="gone", topic_id=UUID(int=3)),
        r.RemoveTopicRecord(topic_id=UUID(int=1)),
        r.AbortTransactionRecord(reason="why not"),
    )

    assert list(aborted.topics) == ["kept", "also kept"]
    assert aborted.visible is aborted
    assert aborted.offset == before.offset + 5


def test_what_precedes_a_transaction_in_its_batch_is_visible() -> None:
    image = _after(
        cluster(),
        r.TopicRecord(name="first", topic_id=UUID(int=1)),
        r.BeginTransactionRecord(),
        r.TopicRecord(name="second", topic_id=UUID(int=2)),
    )

    assert list(image.visible.topics) == ["first"]


# -- Parts that images share, and invalid logs -----------------------------------------------------


def test_untouched_maps_are_shared() -> None:
    image = cluster(topics={"a": partition(), "b": partition()})
    changed = apply(image, r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=(1,)))

    assert changed.brokers is image.brokers
    assert changed.configs is image.configs
    assert changed.topic_names is image.topic_names
    assert changed.topics["b"] is image.topics["b"]
    assert changed.topics["a"] is not image.topics["a"]


@pytest.mark.parametrize(
    "record",
    [
        r.RemoveTopicRecord(topic_id=UUID(int=5)),
        r.PartitionChangeRecord(partition_id=0, topic_id=UUID(int=5)),
        r.PartitionChangeRecord(partition_id=9, topic_id=TOPIC_ID),
        r.PartitionRecord(partition_id=0, topic_id=UUID(int=5), replicas=(), isr=()),
        r.FenceBrokerRecord(id=9, epoch=1),
        r.ClearElrRecord(topic_name="nope"),
    ],
)
def test_a_record_about_nothing_is_impossible(record: r.MetadataRecord) -> None:
    with pytest.raises(ImpossibleRecord):
        apply(cluster(topics={"t": partition()}), record)


def test_brokers_that_clients_see_are_in_order() -> None:
    image = cluster([broker(3), broker(1), broker(2, fenced=True)])

    assert [one.id for one in image.unfenced_brokers()] == [1, 3]


def test_a_snapshot_amid_a_controlled_shutdown_still_waits_for_who_does_not_know_of_it() -> None:
    """Simulation found this fault: after a restart from a snapshot, the broker stopped at once."""
    change = r.BrokerRegistrationChangeRecord(
        broker_id=4, broker_epoch=77, in_controlled_shutdown=1
    )
    stopping = apply(cluster([broker(4, epoch=77)]), change)

    restored = apply_all(ClusterImage(), records_of(stopping), stopping.offset, 0)

    assert restored.brokers == stopping.brokers
    assert restored.brokers[4].shutdown_offset >= stopping.brokers[4].shutdown_offset
