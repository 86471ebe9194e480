"""Reads and changes the configurations of topics and brokers."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeVar

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from tidelog.client.admin import RequestRefused
from tidelog.client.client import Client
from tidelog.config.resource_type import ResourceType
from tidelog.model.errors import ErrorCode

R = TypeVar("R", bound=ResponsePayload)


class Source(IntEnum):
    """The source of a value, with Kafka's names and numbers."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8

    @classmethod
    def _missing_(cls, value: object) -> "Source":
        return cls.UNKNOWN


class ReportedSynonym(NamedTuple):
    source: Source
    name: str
    value: str | None


class Config(NamedTuple):
    name: str
    value: str | None
    source: Source
    is_sensitive: bool
    synonyms: tuple[ReportedSynonym, ...]

    @property
    def is_default(self) -> bool:
        return self.source is Source.DEFAULT_CONFIG


def describe_configs(
    client: Client, kind: ResourceType, names: Sequence[str], *, synonyms: bool = False
) -> dict[str, list[Config]]:
    """Describe each resource's configuration, in the order of the response.

    A broker describes only itself, so a request names topics or one broker.
    """
    request = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            for name in names
        ),
        include_synonyms=synonyms,
    )
    described = {}
    for result in _ask(client, kind, names, request, DescribeConfigsResponse).results:
        if result.error_code is not ErrorCode.none:
            raise RequestRefused(result.error_code, result.error_message)
        described[result.resource_name] = [
            Config(
                config.name,
                config.value,
                Source(config.config_source),
                config.is_sensitive,
                tuple(ReportedSynonym(Source(s.source), s.name, s.value) for s in config.synonyms),
            )
            for config in result.configs
        ]
    return described


class Operation(IntEnum):
    SET = 0
    DELETE = 1


def alter_configs(
    client: Client,
    kind: ResourceType,
    name: str,
    *,
    set_to: Mapping[str, str],
    delete: Sequence[str],
) -> None:
    """Set and delete single values; other values are unchanged."""
    changes = [
        AlterableConfig(name=key, config_operation=Operation.SET, value=value)
        for key, value in set_to.items()
    ]
    changes += [
        AlterableConfig(name=key, config_operation=Operation.DELETE, value=None) for key in delete
    ]
    request = IncrementalAlterConfigsRequest(
        resources=(
            AlterConfigsResource(resource_type=kind, resource_name=name, configs=tuple(changes)),
        ),
        validate_only=False,
    )
    for result in _ask(client, kind, [name], request, IncrementalAlterConfigsResponse).responses:
        if result.error_code is not ErrorCode.none:
            raise RequestRefused(result.error_code, result.error_message)


def _ask(
    client: Client,
    kind: ResourceType,
    names: Sequence[str],
    request: RequestPayload,
    response: type[R],
) -> R:
    if kind is ResourceType.BROKER and any(names):
        (broker,) = names
        return client.ask_node(int(broker), request, response)
    return client.ask(request, response)
