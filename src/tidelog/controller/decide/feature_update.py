"""UpdateFeatures: raise or lower feature levels. A request takes effect as a whole or not at all.

A level is finalised only if every registered broker and controller supports it.
"""

from collections.abc import Mapping

from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.schema.update_features.v2.response import UpdateFeaturesResponse

from tidelog.controller.decide.decision import (
    NO_FAULT,
    NOT_THROTTLED,
    DecideContext,
    Decision,
    Refusal,
)
from tidelog.controller.decide.quorum_topics import COMMIT_RULE, has_quorum_topics
from tidelog.controller.features import (
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    cluster_min_isr,
)
from tidelog.controller.image.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    ClusterImage,
    VersionRange,
)
from tidelog.model.errors import ErrorCode
from tidelog.protocol.metadata.metadata_records import (
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
)

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_LOWEST_KEEPING_METADATA = 23
"""The level of 4.0-IV1. No later level changes the record formats, so a downgrade to this level
loses nothing.
"""


def update_features(
    image: ClusterImage, request: UpdateFeaturesRequest, context: DecideContext
) -> Decision:
    """Set the requested levels, or return the first reason for a refusal."""
    for update in request.feature_updates:
        fault = _check(image, update, context)
        if fault is not None:
            return Decision((), _response(_for_all(fault)))
    records: list[MetadataRecord] = []
    for update in request.feature_updates:
        records += _records(image, update, context)
    if request.validate_only:
        return Decision((), _response(NO_FAULT))
    is_raised = any(
        update.feature == KRAFT_VERSION and update.max_version_level > context.kraft_version
        for update in request.feature_updates
    )
    return Decision(tuple(records), _response(NO_FAULT), makes_voters_dynamic=is_raised)


def _check(image: ClusterImage, update: FeatureUpdateKey, context: DecideContext) -> Refusal | None:
    problem = _problem(image, update, context)
    if problem is not None:
        return Refusal(
            ErrorCode.invalid_update_version,
            f"Invalid update version {update.max_version_level} "
            f"for feature {update.feature}. {problem}",
        )
    lowered = update.max_version_level < image.features.get(update.feature, 0)
    if update.feature == METADATA_VERSION and lowered:
        return _check_metadata_downgrade(update)
    return None


def _problem(image: ClusterImage, update: FeatureUpdateKey, context: DecideContext) -> str | None:
    level, kind = update.max_version_level, update.upgrade_type
    if kind not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    unsupported = _unsupported(image, update.feature, level, context)
    if unsupported is not None:
        return unsupported
    if update.feature == KRAFT_VERSION:
        return _kraft_problem(level, kind, context)
    if update.feature == ELR_VERSION and level == 0 and has_quorum_topics(image):
        return f"Topics with {COMMIT_RULE}=quorum require version 1."
    current = image.features.get(update.feature, 0)
    if level < current and kind == _UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if level > current and kind != _UPGRADE:
        return "Can't downgrade to a newer version."
    return None


def _kraft_problem(level: int, kind: int, context: DecideContext) -> str | None:
    if level < context.kraft_version:
        return "Can't downgrade the version of this feature."
    if level > context.kraft_version:
        if kind != _UPGRADE:
            return "Can't downgrade to a newer version."
        if context.voters_without_directory_id:
            missing = ", ".join(str(voter) for voter in context.voters_without_directory_id)
            return f"Voters that have not fetched from the leader yet: {missing}."
    return None


def _unsupported(
    image: ClusterImage, feature: str, level: int, context: DecideContext
) -> str | None:
    me = context.settings.node_id
    problem = _lacks(f"Local controller {me}", SUPPORTED_FEATURES, feature, level)
    if problem is not None:
        return problem
    for controller in image.controllers.values():
        problem = _lacks(f"Controller {controller.id}", controller.features, feature, level)
        if problem is not None:
            return problem
    for broker in image.brokers.values():
        problem = _lacks(f"Broker {broker.id}", broker.features, feature, level)
        if problem is not None:
            return problem
    return None


def _lacks(who: str, features: Mapping[str, VersionRange], feature: str, level: int) -> str | None:
    supported = features.get(feature)
    if supported is None:
        return None if level == 0 else f"{who} does not support this feature."
    if supported.minimum <= level <= supported.maximum:
        return None
    return f"{who} only supports versions {supported.minimum}-{supported.maximum}"


def _check_metadata_downgrade(update: FeatureUpdateKey) -> Refusal | None:
    level = update.max_version_level
    if update.upgrade_type == _UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    elif level < _LOWEST_KEEPING_METADATA:
        reason = (
            "Refusing to perform the requested downgrade because "
            "it might delete metadata information."
        )
    else:
        return None
    return Refusal(ErrorCode.invalid_update_version, f"Invalid metadata.version {level}. {reason}")


def _records(
    image: ClusterImage, update: FeatureUpdateKey, context: DecideContext
) -> list[MetadataRecord]:
    if update.feature == KRAFT_VERSION:
        return []
    level = FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level)
    if update.feature != ELR_VERSION:
        return [level]
    if update.max_version_level == 0:
        return [level, ClearElrRecord(topic_name="")]
    return [*_one_min_isr(image, context), level]


def _one_min_isr(image: ClusterImage, context: DecideContext) -> list[MetadataRecord]:
    """Replace per-broker min.insync.replicas with one cluster-wide value, as the ELR requires."""
    name = "min.insync.replicas"
    records: list[MetadataRecord] = []
    if name not in image.config(BROKER_RESOURCE, CLUSTER_DEFAULT):
        records.append(cluster_min_isr(context.settings))
    records += [
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=broker, name=name, value=None)
        for (kind, broker), values in image.configs.items()
        if kind == BROKER_RESOURCE and broker != CLUSTER_DEFAULT and name in values
    ]
    return records


def _for_all(fault: Refusal) -> Refusal:
    return Refusal(
        fault.error,
        "The update failed for all features since the following feature had an error: "
        f"{fault.message}",
    )


def _response(fault: Refusal) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(
        throttle_time=NOT_THROTTLED, error_code=fault.error, error_message=fault.message
    )
