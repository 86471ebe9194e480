"""The settings of a topic, each with its source."""

from typing import Any

from tidelog.client.administration.config_admin import Source, describe_configs
from tidelog.client.client import Client
from tidelog.config.resource_type import ResourceType


def config_view(client: Client, topic: str) -> dict[str, Any]:
    found = describe_configs(client, ResourceType.TOPIC, [topic])[topic]
    return {
        "topic": topic,
        "configs": [
            {
                "name": one.name,
                "value": None if one.is_sensitive else one.value,
                "source": one.source.name.lower().replace("_", " "),
                "is_default": one.is_default,
                # Only a value of the topic itself can be reset.
                "is_own": one.source is Source.DYNAMIC_TOPIC_CONFIG,
            }
            for one in sorted(found, key=lambda one: (one.is_default, one.name))
        ],
    }
