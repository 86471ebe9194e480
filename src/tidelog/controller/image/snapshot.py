"""The records of a metadata snapshot.

When these records are applied in order to an empty image, the result equals the image of the log up
to the snapshot.
"""

from collections.abc import Iterator, Mapping
from uuid import UUID

from tidelog.controller.features import METADATA_VERSION
from tidelog.controller.image.image import ClusterImage, Endpoint, TopicImage, VersionRange
from tidelog.protocol.metadata.metadata_records import (
    AccessControlEntryRecord,
    ConfigRecord,
    EndPoint,
    Feature,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)
from tidelog.security.acls import AclEntry


def records_of(image: ClusterImage) -> Iterator[MetadataRecord]:
    """Yield the snapshot's records; features come first, because they define the record formats."""
    assert image.before_transaction is None, "a snapshot cannot contain an open transaction"
    for name in sorted(image.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
    yield from _nodes(image)
    for topic in image.topics.values():
        yield from _topic(topic)
    for (kind, resource), values in image.configs.items():
        for name, value in values.items():
            yield ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)
    if image.next_producer_id > 0:
        yield ProducerIdsRecord(broker_id=-1, next_producer_id=image.next_producer_id)
    for id_, entry in image.acls.items():
        yield _acl(id_, entry)
    yield from image.scram.values()
    yield from image.carried.values()


def _acl(id_: UUID, entry: AclEntry) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=id_,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def _nodes(image: ClusterImage) -> Iterator[MetadataRecord]:
    for broker in image.brokers.values():
        yield RegisterBrokerRecord(
            broker_id=broker.id,
            incarnation_id=broker.incarnation,
            broker_epoch=broker.epoch,
            end_points=_end_points(broker.endpoints),
            features=_features(broker.features),
            rack=broker.rack,
            fenced=broker.fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
            log_dirs=broker.directories,
            cordoned_log_dirs=broker.cordoned or None,
        )
    for controller in image.controllers.values():
        yield RegisterControllerRecord(
            controller_id=controller.id,
            incarnation_id=controller.incarnation,
            zk_migration_ready=False,
            end_points=_end_points(controller.endpoints),
            features=_features(controller.features),
        )


def _topic(topic: TopicImage) -> Iterator[MetadataRecord]:
    yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
    for index, partition in topic.partitions.items():
        yield PartitionRecord(
            partition_id=index,
            topic_id=topic.topic_id,
            replicas=partition.replicas,
            isr=partition.isr,
            removing_replicas=partition.removing,
            adding_replicas=partition.adding,
            leader=partition.leader,
            leader_recovery_state=partition.leader_recovery_state,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            directories=partition.directories,
            eligible_leader_replicas=partition.elr or None,
            last_known_elr=partition.last_known_elr or None,
        )


def _end_points(endpoints: Mapping[str, Endpoint]) -> tuple[EndPoint, ...]:
    return tuple(
        EndPoint(
            name=name,
            host=endpoint.host,
            port=endpoint.port,
            security_protocol=endpoint.security_protocol,
        )
        for name, endpoint in endpoints.items()
    )


def _features(features: Mapping[str, VersionRange]) -> tuple[Feature, ...]:
    return tuple(
        Feature(
            name=name,
            min_supported_version=supported.minimum,
            max_supported_version=supported.maximum,
        )
        for name, supported in features.items()
    )
