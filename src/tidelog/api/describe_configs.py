"""DescribeConfigs (key 32), versions 1-4; ListConfigResources (74), versions 0-1.

What is configured on a topic, on this broker, or for all brokers (the broker resource with an empty
name), where each value comes from and what it overrides (synonyms, KIP-226). Types and, if asked
for, documentation from version 3 on (KIP-569). No keys, or null, ask for all of them; a key that
does not exist is left out.

- An unknown topic is UNKNOWN_TOPIC_OR_PARTITION, a malformed one INVALID_TOPIC_EXCEPTION.
- A broker answers for itself only: another id, or none, is INVALID_REQUEST.
- Broker loggers: none can be changed while the broker runs, so the list is empty.
- Groups and client metrics have nothing to configure here; they, and resource types that do not
  exist, are INVALID_REQUEST, the latter for the whole request, as in Kafka.

ListConfigResources names the resources that have configurations (KIP-1142); version 0 asks for
client metrics only (KIP-1000), of which there are none.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kio.schema.list_config_resources.v1.response import (
    ConfigResource,
    ListConfigResourcesResponse,
)

from tidelog.api.config_resources import RESOURCE_TYPES, ResourceType, is_node_id
from tidelog.api.handler import Request
from tidelog.api.topic_names import fault_in
from tidelog.controller.broker_keys import DYNAMIC_KEYS
from tidelog.controller.config_key import ConfigKey, ConfigType
from tidelog.controller.effective import (
    ConfigSource,
    ConfigSynonym,
    EffectiveConfig,
    broker_config,
    cluster_config,
    topic_config,
)
from tidelog.controller.image import CLUSTER_DEFAULT
from tidelog.model.errors import ErrorCode

_MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or "
    "the message was sent to an incompatible broker. See the broker logs for more details."
)

_BROKER_ID = ConfigKey("broker.id", ConfigType.INT, "-1", "The old name of node.id.")


class _Refused(Exception):
    """The resource cannot be described; the message is Kafka's."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def describe_configs(request: Request) -> DescribeConfigsResponse:
    """The configuration of topics and of this broker, and where it comes from."""
    resources = request.message.resources
    if all(resource.resource_type in RESOURCE_TYPES for resource in resources):
        results = tuple(_described(resource, request) for resource in resources)
    else:
        malformed = _Refused(ErrorCode.invalid_request, _MALFORMED)
        results = tuple(_refused(resource, malformed) for resource in resources)
    return DescribeConfigsResponse(throttle_time=timedelta(0), results=results)


def _described(resource: Any, request: Request) -> DescribeConfigsResult:
    try:
        configs = _configs(resource, request)
    except _Refused as refusal:
        return _refused(resource, refusal)
    wanted = resource.configuration_keys or configs
    is_topic = resource.resource_type == ResourceType.TOPIC
    return DescribeConfigsResult(
        error_code=ErrorCode.none,
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(
            _config(config, not is_topic and name not in DYNAMIC_KEYS, request.message)
            for name, config in configs.items()
            if name in wanted
        ),
    )


def _refused(resource: Any, refusal: _Refused) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=refusal.error,
        error_message=refusal.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=(),
    )


def _configs(resource: Any, request: Request) -> Mapping[str, EffectiveConfig]:
    name = resource.resource_name
    match resource.resource_type:
        case ResourceType.TOPIC:
            return _topic_configs(name, request)
        case ResourceType.BROKER if name == CLUSTER_DEFAULT:
            return cluster_config(request.image)
        case ResourceType.BROKER:
            _check_broker_id(name, request, "or empty string, ")
            return _broker_configs(request)
        case ResourceType.BROKER_LOGGER if not name:
            raise _Refused(ErrorCode.invalid_request, "Broker id must not be empty")
        case ResourceType.BROKER_LOGGER:
            _check_broker_id(name, request, "")
            return {}
        case other:
            kind = ResourceType(other).name
            raise _Refused(ErrorCode.invalid_request, f"Unsupported resource type: {kind}")


def _topic_configs(name: str, request: Request) -> Mapping[str, EffectiveConfig]:
    fault = fault_in(name)
    if fault is not None:
        raise _Refused(ErrorCode.invalid_topic_exception, f"Topic name is invalid: {fault}")
    if name not in request.image.topics:
        raise _Refused(ErrorCode.unknown_topic_or_partition, "")
    return topic_config(request.image, request.settings, name)


def _check_broker_id(name: str, request: Request, or_else: str) -> None:
    if not is_node_id(name):
        raise _Refused(
            ErrorCode.invalid_request, f"Broker id must be an integer, but it is: {name}"
        )
    if int(name) != request.node_id:
        expected = f"expected {request.node_id} {or_else}but received {name}"
        raise _Refused(ErrorCode.invalid_request, f"Unexpected broker id, {expected}")


def _broker_configs(request: Request) -> Mapping[str, EffectiveConfig]:
    """With broker.id, by which tools still know a broker."""
    source = ConfigSource.STATIC_BROKER_CONFIG
    id_ = request.node_id
    synonyms = (
        ConfigSynonym("broker.id", str(id_), source),
        ConfigSynonym("broker.id", "-1", ConfigSource.DEFAULT_CONFIG),
    )
    configs = broker_config(request.image, request.settings)
    return {"broker.id": EffectiveConfig(_BROKER_ID, id_, source, synonyms), **configs}


def _config(config: EffectiveConfig, read_only: bool, asked: Any) -> DescribeConfigsResourceResult:
    key, synonyms = config.key, config.synonyms
    # The source is that of the most telling synonym, also where Kafka's list leaves one out.
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return DescribeConfigsResourceResult(
        name=key.name,
        value=config.text,
        read_only=read_only,
        config_source=source,
        is_sensitive=key.is_sensitive,
        synonyms=tuple(_synonyms(key, synonyms)) if asked.include_synonyms else (),
        config_type=key.type,
        documentation=key.documentation if asked.include_documentation else None,
    )


def _synonyms(
    key: ConfigKey, synonyms: Iterable[ConfigSynonym]
) -> Iterator[DescribeConfigsSynonym]:
    for synonym in synonyms:
        yield DescribeConfigsSynonym(
            name=synonym.name,
            value=None if key.is_sensitive else synonym.text,
            source=synonym.source,
        )


def list_config_resources(request: Request) -> ListConfigResourcesResponse:
    """The resources that have configurations."""
    if request.version == 0:
        wanted = [ResourceType.CLIENT_METRICS]
    else:
        wanted = list(request.message.resource_types or ResourceType)
    known = all(type_ in RESOURCE_TYPES for type_ in wanted)
    return ListConfigResourcesResponse(
        throttle_time=timedelta(0),
        error_code=ErrorCode.none if known else ErrorCode.unsupported_version,
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=type_)
            for type_ in dict.fromkeys(wanted if known else ())
            for name in _names(type_, request)
        ),
    )


def _names(resource_type: int, request: Request) -> list[str]:
    image = request.image
    match resource_type:
        case ResourceType.TOPIC:
            return sorted(image.topics)
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return [str(id_) for id_ in sorted(image.brokers)]
        case _:
            return sorted(name for type_, name in image.configs if type_ == resource_type)
