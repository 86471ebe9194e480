"""IncrementalAlterConfigs (key 44), versions 0-1 (KIP-339); AlterConfigs (33), versions 0-2.

IncrementalAlterConfigs sets, deletes, appends to and subtracts from single keys. AlterConfigs
replaces the whole configuration of a resource. The controller decides on each resource separately.
As in Kafka, the broker checks these cases before it forwards the request:

- A change to another broker's configuration gets INVALID_REQUEST. Clients must send the changes to
  a broker's configuration to that broker.
- An unknown operation gets UNKNOWN_SERVER_ERROR.
- A change to a broker logger gets INVALID_CONFIG, because log levels cannot be changed at run time.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from kio.schema.alter_configs.v2 import response as alter
from kio.schema.incremental_alter_configs.v1 import response as incremental

from tidelog.api.admin.config_resources import is_node_id
from tidelog.api.handler import Handling, Request
from tidelog.api.listeners import ListenerKind, kind_of
from tidelog.config.resource_type import ResourceType
from tidelog.controller.image.image import CLUSTER_DEFAULT
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode

_OPERATIONS = range(4)  # set, delete, append, subtract
_MOST_CONFIGS = 1_000
"""The maximum number of configurations per resource in one request.

The controller checks all configurations of a resource in one step. The limit is higher than the
number of known keys.
"""


class _Outcome(NamedTuple):
    error: ErrorCode
    message: str | None = None


def incremental_alter_configs(request: Request) -> Handling:
    """Changes single configurations of topics, of this broker or of all brokers."""
    outcomes = yield from _alter(request, _check_change)
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
    outcomes = yield from _alter(request, _check_broker)
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


_Check = Callable[[Any, Request], _Outcome | None]
"""Returns the broker's own outcome for a resource, or None if the controller must decide."""


def _alter(request: Request, check: _Check) -> Handling:
    """Returns one outcome per resource, in order, from the broker's own check or the controller."""
    resources: Sequence[Any] = request.message.resources
    own = [_check_length(resource) or check(resource, request) for resource in resources]
    forwarded = tuple(
        resource for resource, outcome in zip(resources, own, strict=True) if outcome is None
    )
    decided: Sequence[Any] = ()
    if forwarded:
        response = yield ChangeMetadata(replace(request.message, resources=forwarded))
        decided = response.responses
    answers = iter(decided)
    return [_decided(next(answers)) if outcome is None else outcome for outcome in own]


def _check_length(resource: Any) -> _Outcome | None:
    if len(resource.configs) <= _MOST_CONFIGS:
        return None
    message = f"A resource may have at most {_MOST_CONFIGS} configurations in one request."
    return _Outcome(ErrorCode.invalid_request, message)


def _decided(answer: Any) -> _Outcome:
    return _Outcome(answer.error_code, answer.error_message)


def _check_change(resource: Any, request: Request) -> _Outcome | None:
    if any(config.config_operation not in _OPERATIONS for config in resource.configs):
        return _Outcome(ErrorCode.unknown_server_error)
    if resource.resource_type == ResourceType.BROKER_LOGGER:
        return _check_loggers(resource, request)
    return _check_broker(resource, request)


def _check_broker(resource: Any, request: Request) -> _Outcome | None:
    is_broker = resource.resource_type == ResourceType.BROKER
    if not is_broker or resource.resource_name == CLUSTER_DEFAULT:
        return None
    if kind_of(request) is ListenerKind.CONTROLLER:
        return None  # the broker that forwarded the request has checked it
    return _check_node(resource.resource_name, request, "broker id, expected")


def _check_loggers(resource: Any, request: Request) -> _Outcome:
    wrong = _check_node(resource.resource_name, request, "node id. Expected")
    if wrong is not None:
        return wrong
    if not resource.configs:
        return _Outcome(ErrorCode.none)
    name = resource.configs[0].name
    return _Outcome(ErrorCode.invalid_config, f"Logger {name} does not exist!")


def _check_node(name: str, request: Request, expected: str) -> _Outcome | None:
    if not is_node_id(name):
        message = f"Node id must be an integer, but it is: {name}"
    elif int(name) != request.node_id:
        message = f"Unexpected {expected} {request.node_id}, but received {name}"
    else:
        return None
    return _Outcome(ErrorCode.invalid_request, message)
