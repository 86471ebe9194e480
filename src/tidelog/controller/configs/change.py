"""IncrementalAlterConfigs and AlterConfigs: change the configurations of resources.

The changes to one resource are applied together or not at all. An error for one resource does not
affect the other resources of the request.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.request import AlterConfigsResource as LegacyResource
from kio.schema.alter_configs.v2.response import (
    AlterConfigsResourceResponse as LegacyResourceResponse,
)
from kio.schema.alter_configs.v2.response import AlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

from tidelog.config.key import ConfigType
from tidelog.controller.configs.check import (
    check_config,
    check_dynamic,
    check_existence,
    check_resource,
    keys_of,
)
from tidelog.controller.decide.decision import (
    NO_FAULT,
    NOT_THROTTLED,
    DecideContext,
    Decision,
    Refusal,
)
from tidelog.controller.decide.quorum_topics import COMMIT_RULE, has_quorum_topics, rule_of
from tidelog.controller.features import elr_enabled
from tidelog.controller.image.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    TOPIC_RESOURCE,
    ClusterImage,
)
from tidelog.model.errors import ErrorCode
from tidelog.protocol.metadata.metadata_records import ClearElrRecord, ConfigRecord, MetadataRecord
from tidelog.replication.rules import ISR

_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3
_OPERATION_NAMES = {_APPEND: "APPEND", _SUBTRACT: "SUBTRACT"}
_LONGEST_VALUE = (1 << 15) - 1
_MIN_ISR = "min.insync.replicas"


class _Change(NamedTuple):
    name: str
    operation: int
    value: str | None


class _Asked(NamedTuple):
    resource_type: int
    resource_name: str
    changes: list[_Change]


def incremental_alter_configs(
    image: ClusterImage, request: IncrementalAlterConfigsRequest, context: DecideContext
) -> Decision:
    """Set, delete, append to or subtract from single keys."""
    asked = [
        _Asked(
            resource.resource_type,
            resource.resource_name,
            [_Change(c.name, c.config_operation, c.value) for c in resource.configs],
        )
        for resource in request.resources
    ]
    records, faults = _alter_all(image, context, asked)
    response = IncrementalAlterConfigsResponse(
        throttle_time=NOT_THROTTLED,
        responses=tuple(
            AlterConfigsResourceResponse(
                error_code=fault.error,
                error_message=fault.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, fault in zip(request.resources, faults, strict=True)
        ),
    )
    return Decision(() if request.validate_only else records, response)


def alter_configs(
    image: ClusterImage, request: AlterConfigsRequest, context: DecideContext
) -> Decision:
    """Replace whole configurations. Keys that the request omits return to their defaults."""
    asked = [
        _Asked(
            resource.resource_type,
            resource.resource_name,
            [_Change(config.name, _SET, config.value) for config in resource.configs]
            + _deletions_of_unnamed(image, resource),
        )
        for resource in request.resources
    ]
    records, faults = _alter_all(image, context, asked)
    response = AlterConfigsResponse(
        throttle_time=NOT_THROTTLED,
        responses=tuple(
            LegacyResourceResponse(
                error_code=fault.error,
                error_message=fault.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, fault in zip(request.resources, faults, strict=True)
        ),
    )
    return Decision(() if request.validate_only else records, response)


def _deletions_of_unnamed(image: ClusterImage, resource: LegacyResource) -> list[_Change]:
    named = {config.name for config in resource.configs}
    current = image.config(resource.resource_type, resource.resource_name)
    return [_Change(name, _DELETE, None) for name in current if name not in named]


def _alter_all(
    image: ClusterImage, context: DecideContext, asked: Sequence[_Asked]
) -> tuple[tuple[MetadataRecord, ...], list[Refusal]]:
    """The records of all valid changes, and a result per resource: an error or `NO_FAULT`."""
    times = Counter((one.resource_type, one.resource_name) for one in asked)
    records: list[MetadataRecord] = []
    faults: list[Refusal] = []
    for one in asked:
        if times[one.resource_type, one.resource_name] > 1:
            faults.append(
                Refusal(ErrorCode.invalid_request, "Each resource must appear at most once.")
            )
            continue
        outcome = _alter(image, context, *one)
        if isinstance(outcome, Refusal):
            faults.append(outcome)
        else:
            records += outcome
            faults.append(NO_FAULT)
    return tuple(records), faults


def _alter(
    image: ClusterImage,
    context: DecideContext,
    resource_type: int,
    resource_name: str,
    changes: Sequence[_Change],
) -> list[MetadataRecord] | Refusal:
    fault = _check_changes(changes) or check_resource(resource_type, resource_name)
    if fault is None and resource_type == BROKER_RESOURCE:
        fault = check_dynamic([change.name for change in changes])
    if fault is not None:
        return fault
    current = image.config(resource_type, resource_name)
    altered = _altered(resource_type, current, changes)
    if isinstance(altered, Refusal):
        return altered
    fault = _check_altered(
        image, context, resource_type, resource_name, current, altered
    ) or check_existence(image, resource_type, resource_name)
    if fault is not None:
        return fault
    return _records(image, resource_type, resource_name, current, altered)


def _check_changes(changes: Sequence[_Change]) -> Refusal | None:
    if len({change.name for change in changes}) != len(changes):
        return Refusal(ErrorCode.invalid_request, "Error due to duplicate config keys")
    empty = [c.name for c in changes if c.value is None and c.operation != _DELETE]
    if empty:
        return Refusal(
            ErrorCode.invalid_request, f"Null value not supported for : {', '.join(empty)}"
        )
    for change in changes:
        if change.operation not in (_SET, _DELETE, _APPEND, _SUBTRACT):
            return Refusal(
                ErrorCode.invalid_request,
                f"Unknown config operation {change.operation} for {change.name}",
            )
    return None


def _altered(
    resource_type: int, current: Mapping[str, str], changes: Sequence[_Change]
) -> dict[str, str | None] | Refusal:
    """The new value of each key in the request; None deletes the key."""
    keys = keys_of(resource_type) or {}
    altered: dict[str, str | None] = {}
    for change in changes:
        key = keys.get(change.name)
        if change.operation not in _OPERATION_NAMES:
            altered[change.name] = None if change.operation == _DELETE else change.value
            continue
        if key is None or key.type is not ConfigType.LIST:
            operation = _OPERATION_NAMES[change.operation]
            return Refusal(
                ErrorCode.invalid_config,
                f"Can't {operation} to key {change.name} because its type is not LIST.",
            )
        before = current.get(change.name, key.default)
        altered[change.name] = _with_items(before or "", change)
    return altered


def _with_items(before: str, change: _Change) -> str:
    items = [item.strip() for item in before.split(",")] if before else []
    named = [part.strip() for part in (change.value or "").split(",")]
    known = set(named if change.operation == _SUBTRACT else items)
    if change.operation == _SUBTRACT:
        return ",".join(item for item in items if item not in known)
    return ",".join(items + [item for item in dict.fromkeys(named) if item not in known])


def _check_altered(
    image: ClusterImage,
    context: DecideContext,
    resource_type: int,
    resource_name: str,
    current: Mapping[str, str],
    altered: Mapping[str, str | None],
) -> Refusal | None:
    if any(value is not None and len(value) > _LONGEST_VALUE for value in altered.values()):
        return Refusal(
            ErrorCode.invalid_config,
            "The configuration value cannot be added because it exceeds the maximum value size "
            f"of {_LONGEST_VALUE} bytes.",
        )
    if elr_enabled(image) and resource_type == BROKER_RESOURCE and _MIN_ISR in altered:
        # The ELR requires one min.insync.replicas for all brokers, so a broker must not have its
        # own value, and the common value must not be removed.
        if resource_name != CLUSTER_DEFAULT:
            return Refusal(
                ErrorCode.invalid_config,
                "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
            )
        if altered[_MIN_ISR] is None:
            return Refusal(
                ErrorCode.invalid_config,
                "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
            )
    if resource_type == TOPIC_RESOURCE and _changes_rule(current, altered):
        return Refusal(
            ErrorCode.invalid_config,
            f"{COMMIT_RULE} cannot be changed after the topic was created.",
        )
    after = {**current, **altered}
    kept = {name: value for name, value in after.items() if value is not None}
    return check_config(context.settings, resource_type, kept)


def _changes_rule(current: Mapping[str, str], altered: Mapping[str, str | None]) -> bool:
    before = current.get(COMMIT_RULE, ISR.name)
    return (altered.get(COMMIT_RULE, before) or ISR.name) != before


def _records(
    image: ClusterImage,
    resource_type: int,
    resource_name: str,
    current: Mapping[str, str],
    altered: Mapping[str, str | None],
) -> list[MetadataRecord]:
    records: list[MetadataRecord] = [
        ConfigRecord(
            resource_type=resource_type, resource_name=resource_name, name=name, value=value
        )
        for name, value in altered.items()
        # Write a broker's value even if it is unchanged, because the broker may have failed to
        # apply it.
        if current.get(name) != value or (resource_type == BROKER_RESOURCE and value is not None)
    ]
    if elr_enabled(image) and current.get(_MIN_ISR) != altered.get(_MIN_ISR, current.get(_MIN_ISR)):
        records += _cleared(image, resource_type, resource_name)
    return records


def _cleared(image: ClusterImage, resource_type: int, resource_name: str) -> list[MetadataRecord]:
    """Clear the eligible leader replicas of the topics that the new min.insync.replicas affects.

    Topics under the quorum rule are not affected: a majority is always their minimum.
    """
    if resource_type == BROKER_RESOURCE:
        if not has_quorum_topics(image):
            return [ClearElrRecord(topic_name="")]
        names = list(image.topics)
    else:
        names = [resource_name] if resource_type == TOPIC_RESOURCE else []
    return [ClearElrRecord(topic_name=name) for name in names if rule_of(image, name) is ISR]
