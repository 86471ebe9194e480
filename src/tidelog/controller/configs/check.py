"""Checks a resource's configuration: its keys, its values and their combinations.

Error codes and messages are the same as in Kafka, because tools and users look for them.
"""

import re
from collections.abc import Callable, Mapping

from tidelog.config.key import BadValue, ConfigKey
from tidelog.config.keys.broker_keys import BROKER_KEYS, DYNAMIC_KEYS
from tidelog.config.keys.client_metrics_keys import CLIENT_METRICS_KEYS
from tidelog.config.keys.group_keys import GROUP_KEYS
from tidelog.config.keys.ignored_keys import IGNORED_KEYS
from tidelog.config.keys.topic_keys import TOPIC_KEYS
from tidelog.config.settings import BrokerSettings
from tidelog.controller.decide.decision import Refusal
from tidelog.controller.decide.topic_names import name_problem
from tidelog.controller.image.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    CLUSTER_DEFAULT,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ClusterImage,
)
from tidelog.model.errors import ErrorCode

_MATCHED_ATTRIBUTES = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def keys_of(resource_type: int) -> Mapping[str, ConfigKey] | None:
    """The keys of a resource type; None if the type is unknown."""
    return _KEYS.get(resource_type)


_KEYS: Mapping[int, Mapping[str, ConfigKey]] = {
    TOPIC_RESOURCE: TOPIC_KEYS,
    BROKER_RESOURCE: BROKER_KEYS,
    CLIENT_METRICS_RESOURCE: CLIENT_METRICS_KEYS,
    GROUP_RESOURCE: GROUP_KEYS,
}


# -- Checks of a resource --------------------------------------------------------------------------


def check_resource(resource_type: int, name: str) -> Refusal | None:
    """The error if this is not a valid name for a resource of this type."""
    match resource_type:
        case 2:
            return _check_topic(name)
        case 4:
            return _check_broker(name)
        case 16 if not name:
            return Refusal(ErrorCode.invalid_request, "Subscription name can't be empty")
        case 32 if not name:
            return Refusal(ErrorCode.invalid_request, "Default group resources are not allowed.")
        case 16 | 32:
            return None
        case _:
            return Refusal(ErrorCode.invalid_request, f"Unknown resource type {resource_type}")


def check_existence(image: ClusterImage, resource_type: int, name: str) -> Refusal | None:
    """The error if the resource does not exist. Kafka checks this last."""
    if resource_type == TOPIC_RESOURCE and name not in image.topics:
        return Refusal(ErrorCode.unknown_topic_or_partition, f"The topic '{name}' does not exist.")
    if resource_type != BROKER_RESOURCE or name == CLUSTER_DEFAULT:
        return None
    if int(name) in image.brokers or int(name) in image.controllers:
        return None
    return Refusal(ErrorCode.broker_id_not_registered, f"No broker with id {int(name)} found.")


def _check_topic(name: str) -> Refusal | None:
    if not name:
        return Refusal(ErrorCode.invalid_request, "Default topic resources are not allowed.")
    problem = name_problem(name)
    if problem is not None:
        return Refusal(ErrorCode.invalid_topic_exception, problem)
    return None


def _check_broker(name: str) -> Refusal | None:
    if name == CLUSTER_DEFAULT:
        return None
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", name):
        return Refusal(ErrorCode.invalid_request, f"Node id must be an integer, but it is: {name}")
    return None


# -- Checks of a configuration ---------------------------------------------------------------------


def check_config(
    settings: BrokerSettings, resource_type: int, configs: Mapping[str, str]
) -> Refusal | None:
    """The error if a resource's configuration as a whole is invalid."""
    return _CHECKS[resource_type](settings, configs)


def check_topic_config(settings: BrokerSettings, configs: Mapping[str, str]) -> Refusal | None:
    unknown = [name for name in configs if name not in TOPIC_KEYS]
    if unknown:
        return _bad_config(f"Unknown topic config name: {unknown[0]}")
    try:
        values = {name: TOPIC_KEYS[name].parse(text) for name, text in configs.items()}
    except BadValue as refused:
        return _bad_config(str(refused))
    shortest = values.get("min.compaction.lag.ms", 0)
    longest = values.get("max.compaction.lag.ms", (1 << 63) - 1)
    assert isinstance(shortest, int)
    assert isinstance(longest, int)
    if shortest > longest:
        return _bad_config(
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > "
            f"max.compaction.lag.ms ({longest})"
        )
    if values.get("remote.storage.enable"):
        return _bad_config(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    return None


def _check_broker_config(settings: BrokerSettings, configs: Mapping[str, str]) -> Refusal | None:
    try:
        for name, text in configs.items():
            if name in BROKER_KEYS:
                BROKER_KEYS[name].parse(text)
    except BadValue as refused:
        return Refusal(ErrorCode.invalid_request, str(refused))
    return None


def check_dynamic(names: list[str]) -> Refusal | None:
    """The error if any of these broker keys is static. As in Kafka, unknown keys are allowed."""
    fixed = [
        name
        for name in names
        if name not in DYNAMIC_KEYS and (name in BROKER_KEYS or name in IGNORED_KEYS)
    ]
    if not fixed:
        return None
    listed = ", ".join(fixed)
    return Refusal(
        ErrorCode.invalid_request, f"Cannot update these configs dynamically: [{listed}]"
    )


def _check_client_metrics(settings: BrokerSettings, configs: Mapping[str, str]) -> Refusal | None:
    for name, text in configs.items():
        key = CLIENT_METRICS_KEYS.get(name)
        if key is None:
            return Refusal(
                ErrorCode.invalid_request, f"Unknown client metrics configuration: {name}"
            )
        try:
            value = key.parse(text)
        except BadValue as refused:
            return _bad_config(str(refused))
        if isinstance(value, int) and not 100 <= value <= 3600000:
            return Refusal(
                ErrorCode.invalid_request,
                f"Invalid value {text} for {name}, "
                "interval must be between 100 and 3600000 (1 hour)",
            )
        if name == "match" and isinstance(value, tuple):
            for pattern in value:
                if not _is_matching_pattern(pattern):
                    return _bad_config(f"Illegal client matching pattern: {pattern}")
    return None


def _is_matching_pattern(pattern: str) -> bool:
    attribute, equals, expression = pattern.partition("=")
    if not equals or attribute.strip() not in _MATCHED_ATTRIBUTES:
        return False
    try:
        re.compile(expression.strip())
    except re.error:
        return False
    return True


def _share_limits(settings: BrokerSettings) -> dict[str, tuple[int, int]]:
    return {
        "share.assignment.interval.ms": (
            settings.group_share_min_assignment_interval_ms,
            settings.group_share_max_assignment_interval_ms,
        ),
        "share.heartbeat.interval.ms": (
            settings.group_share_min_heartbeat_interval_ms,
            settings.group_share_max_heartbeat_interval_ms,
        ),
        "share.session.timeout.ms": (
            settings.group_share_min_session_timeout_ms,
            settings.group_share_max_session_timeout_ms,
        ),
        "share.record.lock.duration.ms": (
            settings.group_share_min_record_lock_duration_ms,
            settings.group_share_max_record_lock_duration_ms,
        ),
        "share.delivery.count.limit": (
            settings.group_share_min_delivery_count_limit,
            settings.group_share_max_delivery_count_limit,
        ),
        "share.partition.max.record.locks": (
            settings.group_share_min_partition_max_record_locks,
            settings.group_share_max_partition_max_record_locks,
        ),
    }


def _check_group(settings: BrokerSettings, configs: Mapping[str, str]) -> Refusal | None:
    for name in configs:
        if name not in GROUP_KEYS:
            return _bad_config(f"Unknown group config name: {name}")
    try:
        values = {name: GROUP_KEYS[name].parse(text) for name, text in configs.items()}
    except BadValue as refused:
        return _bad_config(str(refused))
    limits = {
        "consumer.heartbeat.interval.ms": (
            settings.group_consumer_min_heartbeat_interval_ms,
            settings.group_consumer_max_heartbeat_interval_ms,
        ),
        "consumer.assignment.interval.ms": (
            settings.group_consumer_min_assignment_interval_ms,
            settings.group_consumer_max_assignment_interval_ms,
        ),
        "consumer.session.timeout.ms": (
            settings.group_consumer_min_session_timeout_ms,
            settings.group_consumer_max_session_timeout_ms,
        ),
        **_share_limits(settings),
    }
    for name, (lowest, highest) in limits.items():
        value = values.get(name)
        family, what = name.split(".", 1)
        if isinstance(value, int) and value < lowest:
            return _bad_config(f"{name} must be greater than or equal to group.{family}.min.{what}")
        if isinstance(value, int) and value > highest:
            return _bad_config(f"{name} must be less than or equal to group.{family}.max.{what}")
    return None


def _bad_config(message: str) -> Refusal:
    return Refusal(ErrorCode.invalid_config, message)


_CHECKS: Mapping[int, Callable[[BrokerSettings, Mapping[str, str]], Refusal | None]] = {
    TOPIC_RESOURCE: check_topic_config,
    BROKER_RESOURCE: _check_broker_config,
    CLIENT_METRICS_RESOURCE: _check_client_metrics,
    GROUP_RESOURCE: _check_group,
}
