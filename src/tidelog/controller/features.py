"""Feature levels: what the cluster has agreed to use, and what this software can use.

A feature is offered once all of it works here. A client chooses its protocols by the finalised
levels, so a level that only half works would break it.
"""

from collections.abc import Mapping

from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    ClusterImage,
    VersionRange,
)
from tidelog.protocol.metadata.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
)

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELR_VERSION = "eligible.leader.replicas.version"

KRAFT_VERSIONS = VersionRange(0, 1)
"""0: voters from the configuration; 1: voters from the metadata log, which can change (KIP-853)."""

SUPPORTED_FEATURES: Mapping[str, VersionRange] = {
    # From 3.3-IV3 to 4.1-IV1: the records that we read and write.
    METADATA_VERSION: VersionRange(7, 27),
    ELR_VERSION: VersionRange(0, 1),
    KRAFT_VERSION: KRAFT_VERSIONS,
}

_BOOTSTRAP_LEVELS = {METADATA_VERSION: 27, ELR_VERSION: 1}


def elr_enabled(image: ClusterImage) -> bool:
    """Whether eligible leader replicas are kept (KIP-966)."""
    return image.features.get(ELR_VERSION, 0) >= 1


def activation_records(image: ClusterImage, settings: BrokerSettings) -> tuple[MetadataRecord, ...]:
    """What a controller writes when it becomes active, before anything else.

    In a new cluster that is its features; after a controller that died in the middle of a metadata
    transaction, the end of that transaction.
    """
    if image.before_transaction is not None:
        aborted = AbortTransactionRecord(reason="the controller that began it is gone")
        return (aborted, *_bootstrap_if_new(image.before_transaction, settings))
    return _bootstrap_if_new(image, settings)


def _bootstrap_if_new(image: ClusterImage, settings: BrokerSettings) -> tuple[MetadataRecord, ...]:
    if METADATA_VERSION in image.features:
        return ()
    return (
        BeginTransactionRecord(name="Bootstrap records"),
        *(
            FeatureLevelRecord(name=name, feature_level=level)
            for name, level in _BOOTSTRAP_LEVELS.items()
        ),
        cluster_min_isr(settings),
        EndTransactionRecord(),
    )


def cluster_min_isr(settings: BrokerSettings) -> ConfigRecord:
    """Eligible leader replicas need one minimum for the whole cluster, not one per file."""
    return ConfigRecord(
        resource_type=BROKER_RESOURCE,
        resource_name=CLUSTER_DEFAULT,
        name="min.insync.replicas",
        value=str(settings.min_insync_replicas),
    )
