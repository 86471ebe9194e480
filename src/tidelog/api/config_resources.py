"""The kinds of things that have configurations, and the ids by which nodes are named among them."""

from enum import IntEnum

from tidelog.controller.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)


class ResourceType(IntEnum):
    CLIENT_METRICS = CLIENT_METRICS_RESOURCE
    BROKER = BROKER_RESOURCE
    BROKER_LOGGER = BROKER_LOGGER_RESOURCE
    TOPIC = TOPIC_RESOURCE
    GROUP = GROUP_RESOURCE


RESOURCE_TYPES = frozenset(ResourceType)


def is_node_id(name: str) -> bool:
    return name.isascii() and name.removeprefix("-").isdigit()
