"""Applies metadata records to an image; no other code builds an image.

A batch copies each map at most once. The same records in the same order produce equal
images on every node.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from tidelog.controller.image.carried import acl_entry, carried_key
from tidelog.controller.image.image import (
    MIGRATING_DIRECTORY,
    TOPIC_RESOURCE,
    BrokerImage,
    ClusterImage,
    ControllerImage,
    Endpoint,
    PartitionImage,
    TopicImage,
    VersionRange,
)
from tidelog.model.ids import NO_OFFSET, LeaderEpoch, NodeId, Offset, ProducerId, TopicId
from tidelog.protocol.metadata import metadata_records as r
from tidelog.protocol.metadata.metadata_records import MetadataRecord
from tidelog.protocol.slices import RECORDS_PER_SLICE, Steps, finish

K = TypeVar("K")
V = TypeVar("V")


class ImpossibleRecord(ValueError):
    """A record refers to something that does not exist, so the metadata log is corrupt."""


def apply(image: ClusterImage, record: MetadataRecord) -> ClusterImage:
    """The image after one more record of the same epoch."""
    return apply_all(image, (record,), image.offset + 1, image.epoch)


def apply_all(
    image: ClusterImage, records: Iterable[MetadataRecord], offset: Offset, epoch: LeaderEpoch
) -> ClusterImage:
    """The image after a batch whose last record is at `offset`."""
    return finish(apply_steps(image, tuple(records), offset, epoch))


def apply_steps(
    image: ClusterImage, batch: Sequence[MetadataRecord], offset: Offset, epoch: LeaderEpoch
) -> Steps[ClusterImage]:
    """Like `apply_all`, but in slices."""
    draft = _Draft(image)
    draft.last_position = offset
    for position, record in enumerate(batch, offset - len(batch) + 1):
        draft.position = position
        _APPLIERS[type(record)](draft, record)
        draft.offset, draft.epoch = position, epoch
        if (offset - position + 1) % RECORDS_PER_SLICE == 0:
            yield
    return replace(draft.finish(), offset=offset, epoch=epoch)


def merge(partition: PartitionImage, change: r.PartitionChangeRecord) -> PartitionImage:
    """Apply a change. Increment the partition epoch; if a leader is named, the leader epoch too."""
    leads = change.leader != r.NO_CHANGE
    return PartitionImage(
        replicas=_or(change.replicas, partition.replicas),
        isr=_or(change.isr, partition.isr),
        leader=change.leader if leads else partition.leader,
        leader_epoch=partition.leader_epoch + (1 if leads else 0),
        partition_epoch=partition.partition_epoch + 1,
        elr=_or(change.eligible_leader_replicas, partition.elr),
        last_known_elr=_or(change.last_known_elr, partition.last_known_elr),
        adding=_or(change.adding_replicas, partition.adding),
        removing=_or(change.removing_replicas, partition.removing),
        directories=_or(change.directories, partition.directories),
        leader_recovery_state=(
            partition.leader_recovery_state
            if change.leader_recovery_state == -1
            else change.leader_recovery_state
        ),
    )


def _or(changed: V | None, kept: V) -> V:
    return kept if changed is None else changed


class _Lazy(Generic[K, V]):
    """A map that is shared until it is first written to, and then copied once."""

    __slots__ = ("_own", "now")

    def __init__(self, shared: Mapping[K, V]) -> None:
        self.now = shared
        self._own: dict[K, V] | None = None

    def writable(self) -> dict[K, V]:
        if self._own is None:
            self.now = self._own = dict(self.now)
        return self._own


class _Draft:
    """An image while records are applied to it."""

    def __init__(self, image: ClusterImage) -> None:
        self.offset = image.offset
        self.epoch = image.epoch
        self.position = self.last_position = image.offset
        self._start(image)

    def _start(self, image: ClusterImage) -> None:
        self._base = image
        self.topics = _Lazy(image.topics)
        self.topic_names = _Lazy(image.topic_names)
        self.brokers = _Lazy(image.brokers)
        self.controllers = _Lazy(image.controllers)
        self.configs = _Lazy(image.configs)
        self.features = _Lazy(image.features)
        self.acls = _Lazy(image.acls)
        self.scram = _Lazy(image.scram)
        self.carried = _Lazy(image.carried)
        self.next_producer_id: ProducerId = image.next_producer_id
        self.before_transaction = image.before_transaction
        # Partition maps that were copied in this batch, by topic. They may be changed in place.
        self._partitions: dict[TopicId, dict[int, PartitionImage]] = {}

    def finish(self) -> ClusterImage:
        return replace(
            self._base,
            topics=self.topics.now,
            topic_names=self.topic_names.now,
            brokers=self.brokers.now,
            controllers=self.controllers.now,
            configs=self.configs.now,
            features=self.features.now,
            acls=self.acls.now,
            scram=self.scram.now,
            carried=self.carried.now,
            next_producer_id=self.next_producer_id,
            before_transaction=self.before_transaction,
            offset=self.offset,
            epoch=self.epoch,
        )

    def begin_transaction(self) -> None:
        # Later writes must not change the finished image, so start a new draft from it.
        before = self.finish()
        self._start(before)
        self.before_transaction = before

    def abort_transaction(self) -> None:
        if self.before_transaction is not None:
            self._start(self.before_transaction)

    def topic(self, topic_id: TopicId) -> TopicImage:
        name = self.topic_names.now.get(topic_id)
        if name is None:
            raise ImpossibleRecord(f"unknown topic id {topic_id}")
        return self.topics.now[name]

    def partitions(self, topic_id: TopicId) -> dict[int, PartitionImage]:
        """A writable copy of a topic's partitions, which is part of the draft."""
        own = self._partitions.get(topic_id)
        if own is None:
            topic = self.topic(topic_id)
            own = self._partitions[topic_id] = dict(topic.partitions)
            self.topics.writable()[topic.name] = replace(topic, partitions=own)
        return own

    def remove_topic(self, topic_id: TopicId) -> None:
        topic = self.topic(topic_id)
        del self.topics.writable()[topic.name]
        del self.topic_names.writable()[topic_id]
        self._partitions.pop(topic_id, None)
        if (TOPIC_RESOURCE, topic.name) in self.configs.now:
            del self.configs.writable()[TOPIC_RESOURCE, topic.name]

    def change_broker(self, broker: NodeId, **changes: Any) -> None:
        found = self.brokers.now.get(broker)
        if found is None:
            raise ImpossibleRecord(f"unknown broker {broker}")
        self.brokers.writable()[broker] = replace(found, **changes)


# -- One function per record --------------------------------------------------------------------


def _register_broker(draft: _Draft, record: r.RegisterBrokerRecord) -> None:
    draft.brokers.writable()[record.broker_id] = BrokerImage(
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation=record.incarnation_id,
        endpoints=_endpoints(record.end_points),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        features=_features(record.features),
        directories=record.log_dirs,
        cordoned=record.cordoned_log_dirs or (),
        # A snapshot does not record the offset at which a shutdown began, so use this later offset.
        shutdown_offset=draft.last_position if record.in_controlled_shutdown else NO_OFFSET,
    )


def _endpoints(end_points: tuple[r.EndPoint, ...]) -> dict[str, Endpoint]:
    return {end.name: Endpoint(end.host, end.port, end.security_protocol) for end in end_points}


def _features(features: tuple[r.Feature, ...]) -> dict[str, VersionRange]:
    return {
        feature.name: VersionRange(feature.min_supported_version, feature.max_supported_version)
        for feature in features
    }


def _unregister_broker(draft: _Draft, record: r.UnregisterBrokerRecord) -> None:
    draft.brokers.writable().pop(record.broker_id, None)


def _fence_broker(draft: _Draft, record: r.FenceBrokerRecord) -> None:
    draft.change_broker(record.id, fenced=True)


def _unfence_broker(draft: _Draft, record: r.UnfenceBrokerRecord) -> None:
    draft.change_broker(record.id, fenced=False)


def _change_registration(draft: _Draft, record: r.BrokerRegistrationChangeRecord) -> None:
    changes: dict[str, Any] = {}
    if record.fenced:
        changes["fenced"] = record.fenced > 0
    if record.in_controlled_shutdown:
        changes["in_controlled_shutdown"] = True
        changes["shutdown_offset"] = draft.position
    if record.log_dirs:
        changes["directories"] = record.log_dirs
    if record.cordoned_log_dirs is not None:
        changes["cordoned"] = record.cordoned_log_dirs
    draft.change_broker(record.broker_id, **changes)


def _register_controller(draft: _Draft, record: r.RegisterControllerRecord) -> None:
    draft.controllers.writable()[record.controller_id] = ControllerImage(
        id=record.controller_id,
        incarnation=record.incarnation_id,
        endpoints=_endpoints(record.end_points),
        features=_features(record.features),
    )


def _create_topic(draft: _Draft, record: r.TopicRecord) -> None:
    draft.topics.writable()[record.name] = TopicImage(record.name, record.topic_id, {})
    draft.topic_names.writable()[record.topic_id] = record.name


def _remove_topic(draft: _Draft, record: r.RemoveTopicRecord) -> None:
    draft.remove_topic(record.topic_id)


def _set_partition(draft: _Draft, record: r.PartitionRecord) -> None:
    draft.partitions(record.topic_id)[record.partition_id] = PartitionImage(
        replicas=record.replicas,
        isr=record.isr,
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        elr=record.eligible_leader_replicas or (),
        last_known_elr=record.last_known_elr or (),
        adding=record.adding_replicas,
        removing=record.removing_replicas,
        directories=record.directories or (MIGRATING_DIRECTORY,) * len(record.replicas),
        leader_recovery_state=record.leader_recovery_state,
    )


def _change_partition(draft: _Draft, record: r.PartitionChangeRecord) -> None:
    partitions = draft.partitions(record.topic_id)
    before = partitions.get(record.partition_id)
    if before is None:
        raise ImpossibleRecord(f"topic {record.topic_id} has no partition {record.partition_id}")
    partitions[record.partition_id] = merge(before, record)


def _clear_elr(draft: _Draft, record: r.ClearElrRecord) -> None:
    names = [record.topic_name] if record.topic_name else list(draft.topics.now)
    for name in names:
        topic = draft.topics.now.get(name)
        if topic is None:
            raise ImpossibleRecord(f"unknown topic {name}")
        for index, partition in list(topic.partitions.items()):
            if partition.elr or partition.last_known_elr:
                cleared = r.PartitionChangeRecord(
                    partition_id=index,
                    topic_id=topic.topic_id,
                    eligible_leader_replicas=(),
                    last_known_elr=(),
                )
                draft.partitions(topic.topic_id)[index] = merge(partition, cleared)


def _set_config(draft: _Draft, record: r.ConfigRecord) -> None:
    resource = (record.resource_type, record.resource_name)
    values = dict(draft.configs.now.get(resource, {}))
    if record.value is None:
        values.pop(record.name, None)
    else:
        values[record.name] = record.value
    if values:
        draft.configs.writable()[resource] = values
    elif resource in draft.configs.now:
        del draft.configs.writable()[resource]


def _set_feature(draft: _Draft, record: r.FeatureLevelRecord) -> None:
    if record.feature_level:
        draft.features.writable()[record.name] = record.feature_level
    elif record.name in draft.features.now:
        del draft.features.writable()[record.name]


def _set_producer_ids(draft: _Draft, record: r.ProducerIdsRecord) -> None:
    draft.next_producer_id = record.next_producer_id


def _begin_transaction(draft: _Draft, record: r.BeginTransactionRecord) -> None:
    draft.begin_transaction()


def _end_transaction(draft: _Draft, record: r.EndTransactionRecord) -> None:
    draft.before_transaction = None


def _abort_transaction(draft: _Draft, record: r.AbortTransactionRecord) -> None:
    draft.abort_transaction()


def _pass_over(draft: _Draft, record: r.NoOpRecord | r.ZkMigrationStateRecord) -> None:
    pass


def _carry(draft: _Draft, record: MetadataRecord) -> None:
    """Keep a record that Tidelog does not use yet, or drop the earlier record that it removes."""
    key, dropped = carried_key(record)
    if not dropped:
        draft.carried.writable()[key] = record
    elif key in draft.carried.now:
        del draft.carried.writable()[key]


def _add_acl(draft: _Draft, record: r.AccessControlEntryRecord) -> None:
    draft.acls.writable()[record.id] = acl_entry(record)


def _remove_acl(draft: _Draft, record: r.RemoveAccessControlEntryRecord) -> None:
    draft.acls.writable().pop(record.id, None)


def _set_scram(draft: _Draft, record: r.UserScramCredentialRecord) -> None:
    draft.scram.writable()[record.name, record.mechanism] = record


def _remove_scram(draft: _Draft, record: r.RemoveUserScramCredentialRecord) -> None:
    draft.scram.writable().pop((record.name, record.mechanism), None)


_APPLIERS: dict[type, Callable[[_Draft, Any], None]] = {
    r.RegisterBrokerRecord: _register_broker,
    r.UnregisterBrokerRecord: _unregister_broker,
    r.FenceBrokerRecord: _fence_broker,
    r.UnfenceBrokerRecord: _unfence_broker,
    r.BrokerRegistrationChangeRecord: _change_registration,
    r.RegisterControllerRecord: _register_controller,
    r.TopicRecord: _create_topic,
    r.RemoveTopicRecord: _remove_topic,
    r.PartitionRecord: _set_partition,
    r.PartitionChangeRecord: _change_partition,
    r.ClearElrRecord: _clear_elr,
    r.ConfigRecord: _set_config,
    r.FeatureLevelRecord: _set_feature,
    r.ProducerIdsRecord: _set_producer_ids,
    r.BeginTransactionRecord: _begin_transaction,
    r.EndTransactionRecord: _end_transaction,
    r.AbortTransactionRecord: _abort_transaction,
    r.NoOpRecord: _pass_over,
    r.ZkMigrationStateRecord: _pass_over,
    r.AccessControlEntryRecord: _add_acl,
    r.RemoveAccessControlEntryRecord: _remove_acl,
    r.ClientQuotaRecord: _carry,
    r.UserScramCredentialRecord: _set_scram,
    r.RemoveUserScramCredentialRecord: _remove_scram,
    r.DelegationTokenRecord: _carry,
    r.RemoveDelegationTokenRecord: _carry,
}
