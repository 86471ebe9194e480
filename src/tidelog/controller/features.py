"""Feature levels: the levels that the cluster has finalised, and the levels that Tidelog supports.

Tidelog supports a level only if the level is implemented completely, because clients choose their
protocols by the finalised levels.
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
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
COMMIT_RULES = "tidelog.commit.rule"
"""A feature that nodes register and that is never finalised: whether they know the quorum rule."""

KRAFT_VERSIONS = VersionRange(0, 1)
"""At level 0 the configuration lists the voters, at level 1 the metadata log (KIP-853)."""

SUPPORTED_FEATURES: Mapping[str, VersionRange] = {
    # From 3.3-IV3 to 4.1-IV1: the record formats that Tidelog reads and writes.
    METADATA_VERSION: VersionRange(7, 27),
    ELR_VERSION: VersionRange(0, 1),
    # At level 1 groups can use the consumer protocol (KIP-848).
    GROUP_VERSION: VersionRange(0, 1),
    TRANSACTION_VERSION: VersionRange(0, 2),
    SHARE_VERSION: VersionRange(0, 1),
    KRAFT_VERSION: KRAFT_VERSIONS,
}

REGISTERED_FEATURES: Mapping[str, VersionRange] = {
    **SUPPORTED_FEATURES,
    COMMIT_RULES: VersionRange(0, 1),
}
"""The features that a node names when it registers."""

_BOOTSTRAP_LEVELS = {
    METADATA_VERSION: 27,
    ELR_VERSION: 1,
    GROUP_VERSION: 1,
    TRANSACTION_VERSION: 2,
    SHARE_VERSION: 1,
}


def elr_enabled(image: ClusterImage) -> bool:
    """Whether the controller maintains eligible leader replicas (KIP-966)."""
    return image.features.get(ELR_VERSION, 0) >= 1


def activation_records(image: ClusterImage, settings: BrokerSettings) -> tuple[MetadataRecord, ...]:
    """The records that a controller writes first when it becomes active.

    These records finalise the features of a new cluster, or abort the metadata transaction that the
    previous controller left open when it failed.
    """
    if image.before_transaction is not None:
        aborted = AbortTransactionRecord(reason="the controller that began it has failed")
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
    """The cluster-wide min.insync.replicas that eligible leader replicas require."""
    return ConfigRecord(
        resource_type=BROKER_RESOURCE,
        resource_name=CLUSTER_DEFAULT,
        name="min.insync.replicas",
        value=str(settings.min_insync_replicas),
    )
