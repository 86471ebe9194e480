"""The types of resources that have configurations, with Kafka's names and ids."""

from enum import IntEnum


class ResourceType(IntEnum):
    """The types of resources, in the order in which ListConfigResources lists them."""

    CLIENT_METRICS = 16
    BROKER = 4
    BROKER_LOGGER = 8
    TOPIC = 2
    GROUP = 32
