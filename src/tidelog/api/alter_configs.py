"""IncrementalAlterConfigs (key 44), versions 0-1 (KIP-339); AlterConfigs (33), versions 0-2.

The first sets, deletes, appends to and subtracts from single keys, the second replaces all that is
set on a resource. The controller decides on topics and brokers. Before it is asked, as in Kafka,
the broker refuses with INVALID_REQUEST:

- a resource or a key that is there twice, a null value where one is needed, an unknown type;
- another broker than itself: what is dynamic on a broker is asked of that broker.

Log levels cannot be changed while the broker runs, so any broker logger is INVALID_CONFIG.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from kio.schema.alter_configs.v2 import response as alter
from kio.schema.incremental_alter_configs.v1 import response as incremental

from tidelog.api.config_resources import RESOURCE_TYPES, ResourceType, is_node_id
from tidelog.api.handler import Handling, Request
from tidelog.controller.image import CLUSTER_DEFAULT
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


class _Outcome(NamedTuple):
    error: ErrorCode
    message: str | None = None


_FINE = _Outcome(ErrorCode.none)


def _invalid(message: str) -> _Outcome:
    return _Outcome(ErrorCode.invalid_request, message)


def incremental_alter_configs(request: Request) -> Handling:
    """Changes single configurations of topics, of this broker or of all brokers."""
    outcomes = yield from _alter(request, _check_operations)
    return incremental.IncrementalAlterConfigsResponse(
        throttle_time=timedelta(0),
        responses=tuple(
            incremental.AlterConfigsResourceResponse(
                error_code=outcome.error,
                error_message=outcome.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, outcome in zip(request.message.resources, outcomes, strict=True)
        ),
    )


def alter_configs(request: Request) -> Handling:
    """Replaces the configurations of topics, of this broker or of all brokers."""
    outcomes = yield from _alter(request, _check_values)
    return alter.AlterConfigsResponse(
        throttle_time=timedelta(0),
        responses=tuple(
            alter.AlterConfigsResourceResponse(
                error_code=outcome.error,
                error_message=outcome.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, outcome in zip(request.message.resources, outcomes, strict=True)
        ),
    )


def _alter(request: Request, check_keys: Callable[[Any], _Outcome]) -> Handling:
    """-> an outcome for each resource: our own, or else the controller's."""
    resources = request.message.resources
    times = Counter(map(_name, resources))
    own = [
        _invalid("Each resource must appear at most once.")
        if times[_name(resource)] > 1
        else _check(resource, request, check_keys)
        for resource in resources
    ]
    forwarded = tuple(
        resource for resource, outcome in zip(resources, own, strict=True) if outcome is _FINE
    )
    decided: dict[tuple[int, str], _Outcome] = {}
    if forwarded:
        response = yield ChangeMetadata(replace(request.message, resources=forwarded))
        decided = {
            _name(answer): _Outcome(answer.error_code, answer.error_message)
            for answer in response.responses
        }
    return [
        decided[_name(resource)] if outcome is _FINE else outcome
        for resource, outcome in zip(resources, own, strict=True)
    ]


def _name(resource: Any) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _check(resource: Any, request: Request, check_keys: Callable[[Any], _Outcome]) -> _Outcome:
    """What the broker itself has against a change; `_FINE` leaves it to the controller."""
    if resource.resource_type not in RESOURCE_TYPES:
        return _invalid(f"Unknown resource type {resource.resource_type}")
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        return _invalid("Error due to duplicate config keys")
    match resource.resource_type:
        case ResourceType.BROKER_LOGGER:
            return _check_loggers(resource, request, names)
        case ResourceType.BROKER if resource.resource_name != CLUSTER_DEFAULT:
            wrong = _check_node(resource.resource_name, request, "broker id, expected")
            return wrong if wrong is not _FINE else check_keys(resource)
        case _:
            return check_keys(resource)


def _check_operations(resource: Any) -> _Outcome:
    if any(not _SET <= config.config_operation <= _SUBTRACT for config in resource.configs):
        return _Outcome(ErrorCode.unknown_server_error)
    return _check_nulls(
        [config for config in resource.configs if config.config_operation != _DELETE]
    )


def _check_values(resource: Any) -> _Outcome:
    return _check_nulls(resource.configs)


def _check_nulls(configs: Sequence[Any]) -> _Outcome:
    nulls = [config.name for config in configs if config.value is None]
    return _invalid(f"Null value not supported for : {', '.join(nulls)}") if nulls else _FINE


def _check_node(name: str, request: Request, expected: str) -> _Outcome:
    if not is_node_id(name):
        return _invalid(f"Node id must be an integer, but it is: {name}")
    if int(name) != request.node_id:
        return _invalid(f"Unexpected {expected} {request.node_id}, but received {name}")
    return _FINE


def _check_loggers(resource: Any, request: Request, names: Sequence[str]) -> _Outcome:
    wrong = _check_node(resource.resource_name, request, "node id. Expected")
    if wrong is not _FINE:
        return wrong
    if not names:
        return _Outcome(ErrorCode.none, None)
    return _Outcome(ErrorCode.invalid_config, f"Logger {names[0]} does not exist!")
