"""DescribeConfigs (key 32), versions 1-4.

Describes the configuration of a topic, of this broker, of all brokers (the broker resource with an
empty name), of a group (KIP-848) or of client metrics (KIP-714). For each value, the response
contains its source and the values that it overrides (synonyms, KIP-226). From version 3 on, the
response includes types and, if requested, documentation (KIP-569). If a request's list of keys is
empty or null, all keys are described. An unknown key is omitted.

- An unknown topic gets UNKNOWN_TOPIC_OR_PARTITION. An invalid name gets INVALID_TOPIC_EXCEPTION.
- A broker describes only itself. The id of another broker gets INVALID_REQUEST.
- Broker loggers cannot be changed at run time, so a logger has no configurations.
- If one resource type is unknown, every resource gets INVALID_REQUEST, as in Kafka.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

from tidelog.api.admin.config_resources import RESOURCE_TYPES, is_node_id
from tidelog.api.handler import Disconnect, Handling, Request
from tidelog.api.slicing import PAUSE, Pace
from tidelog.config.key import ConfigKey, ConfigType
from tidelog.config.keys.broker_keys import DYNAMIC_KEYS
from tidelog.config.keys.client_metrics_keys import CLIENT_METRICS_KEYS
from tidelog.config.keys.group_keys import GROUP_KEYS
from tidelog.config.resource_type import ResourceType
from tidelog.controller.configs.effective import (
    ConfigSource,
    EffectiveConfig,
    broker_config,
    cluster_config,
    topic_config,
)
from tidelog.controller.decide.topic_names import name_problem
from tidelog.controller.image.image import CLUSTER_DEFAULT
from tidelog.model.errors import ErrorCode

_SLICE = 500
_MAX_VALUES = 500_000
"""The maximum number of values in a response. Without this limit, a request that names a resource
many times could get a response of any size.
"""
_DYNAMIC_CLIENT_METRICS_CONFIG = 7
_DYNAMIC_GROUP_CONFIG = 8

_MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or "
    "the message was sent to an incompatible broker. See the broker logs for more details."
)

_BROKER_ID = ConfigKey("broker.id", ConfigType.INT, "-1", "The old name of node.id.")


class _Synonym(NamedTuple):
    name: str
    text: str | None
    source: int


class _Config(NamedTuple):
    key: ConfigKey
    text: str | None
    synonyms: tuple[_Synonym, ...]
    """One value per source that sets the key, by precedence; empty if only the default applies."""
    read_only: bool = False


class _Refused(Exception):
    """Raised if a resource cannot be described, with Kafka's error message."""

    def __init__(self, message: str, error: ErrorCode = ErrorCode.invalid_request) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def handle(request: Request) -> Handling:
    """Describes the configuration of topics, brokers, groups and client metrics."""
    resources = request.message.resources
    known = RESOURCE_TYPES.issuperset(resource.resource_type for resource in resources)
    results: list[DescribeConfigsResult] = []
    seen: dict[Any, DescribeConfigsResult] = {}
    pace = Pace(_SLICE)
    values = 0
    for resource in resources:
        looked_at = 0
        if resource not in seen:
            seen[resource], looked_at = (
                _described(resource, request)
                if known
                else (_refused(resource, _Refused(_MALFORMED)), 0)
            )
        results.append(seen[resource])
        values += len(results[-1].configs)
        if values > _MAX_VALUES:
            return Disconnect(f"sent DescribeConfigs for more than {_MAX_VALUES} values")
        # All keys of a resource, up to several hundred, are read even if few are requested.
        if pace.is_due(1 + looked_at):
            yield PAUSE
    return DescribeConfigsResponse(throttle_time=timedelta(0), results=tuple(results))


def _described(resource: Any, request: Request) -> tuple[DescribeConfigsResult, int]:
    """Returns the result and the number of keys that were read for it."""
    try:
        configs = list(_configs(resource, request))
    except _Refused as refusal:
        return _refused(resource, refusal), 0
    wanted = frozenset(resource.configuration_keys or ())
    result = DescribeConfigsResult(
        error_code=ErrorCode.none,
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(
            _result(config, request.message)
            for config in configs
            if not wanted or config.key.name in wanted
        ),
    )
    return result, len(configs)


def _refused(resource: Any, refusal: _Refused) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=refusal.error,
        error_message=refusal.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=(),
    )


def _result(config: _Config, asked: Any) -> DescribeConfigsResourceResult:
    key, text, synonyms, read_only = config
    return DescribeConfigsResourceResult(
        name=key.name,
        value=text,
        read_only=read_only,
        config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        is_sensitive=key.is_sensitive,
        synonyms=tuple(map(_synonym, synonyms)) if asked.include_synonyms else (),
        config_type=key.type,
        documentation=key.documentation if asked.include_documentation else None,
    )


def _synonym(synonym: _Synonym) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=synonym.name, value=synonym.text, source=synonym.source)


# -- Each kind of resource -------------------------------------------------------------------------


def _configs(resource: Any, request: Request) -> Iterable[_Config]:
    name = resource.resource_name
    match resource.resource_type:
        case ResourceType.TOPIC:
            return _topic(name, request)
        case ResourceType.BROKER if name == CLUSTER_DEFAULT:
            return map(_effective, cluster_config(request.image).values())
        case ResourceType.BROKER:
            _check_broker_id(name, request, "or empty string, ")
            return _broker(request)
        case ResourceType.BROKER_LOGGER:
            if not name:
                raise _Refused("Broker id must not be empty")
            _check_broker_id(name, request, "")
            return ()
        case ResourceType.GROUP:
            if not name:
                raise _Refused("Group name must not be empty")
            return _group(request.image.config(ResourceType.GROUP, name))
        case _:
            if not name:
                raise _Refused("Client metrics subscription name must not be empty")
            return _client_metrics(request.image.config(ResourceType.CLIENT_METRICS, name))


def _topic(name: str, request: Request) -> Iterator[_Config]:
    problem = name_problem(name)
    if problem is not None:
        raise _Refused(problem, ErrorCode.invalid_topic_exception)
    if name not in request.image.topics:
        raise _Refused("", ErrorCode.unknown_topic_or_partition)
    yield from map(_effective, topic_config(request.image, request.settings, name).values())


def _check_broker_id(name: str, request: Request, or_else: str) -> None:
    if not is_node_id(name):
        raise _Refused(f"Broker id must be an integer, but it is: {name}")
    if int(name) != request.node_id:
        expected = f"expected {request.node_id} {or_else}but received {name}"
        raise _Refused(f"Unexpected broker id, {expected}")


def _broker(request: Request) -> Iterator[_Config]:
    # Admin tools still use broker.id, the old name of node.id.
    set_, default = ConfigSource.STATIC_BROKER_CONFIG, ConfigSource.DEFAULT_CONFIG
    id_ = str(request.node_id)
    synonyms = (_Synonym("broker.id", id_, set_), _Synonym("broker.id", "-1", default))
    yield _Config(_BROKER_ID, id_, synonyms, read_only=True)
    for name, config in broker_config(request.image, request.settings).items():
        yield _effective(config)._replace(read_only=name not in DYNAMIC_KEYS)


def _effective(config: EffectiveConfig) -> _Config:
    is_secret = config.key.is_sensitive
    synonyms = tuple(
        _Synonym(synonym.name, None if is_secret else synonym.text, synonym.source)
        for synonym in config.synonyms
    )
    return _Config(config.key, config.text, synonyms)


def _group(own: Mapping[str, str]) -> Iterator[_Config]:
    for key in GROUP_KEYS.values():
        text, source = key.default, int(ConfigSource.DEFAULT_CONFIG)
        if key.name in own:
            text, source = own[key.name], _DYNAMIC_GROUP_CONFIG
        yield _Config(key, text, (_Synonym(key.name, text, source),))


def _client_metrics(own: Mapping[str, str]) -> Iterator[_Config]:
    for key in CLIENT_METRICS_KEYS.values():
        text = own.get(key.name)
        if text is None:
            yield _Config(key, key.default, ())
        else:
            synonym = _Synonym(key.name, text, _DYNAMIC_CLIENT_METRICS_CONFIG)
            yield _Config(key, text, (synonym,))
