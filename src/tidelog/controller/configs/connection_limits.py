"""The limits on a node's connections, from server.properties and from dynamic configurations.

Kafka's keys are max.connections, max.connections.per.ip and max.connections.per.ip.overrides for a
node, and listener.name.NAME.max.connections for one listener.
"""

from collections.abc import Mapping

from tidelog.config.checks import at_least, parse_host_counts
from tidelog.config.key import BadValue, int32
from tidelog.config.settings import BrokerSettings
from tidelog.controller.configs.effective import broker_value
from tidelog.controller.image.image import BROKER_RESOURCE, CLUSTER_DEFAULT, ClusterImage
from tidelog.model.outbound import LimitConnections


def connection_limits(image: ClusterImage, settings: BrokerSettings) -> LimitConnections:
    """The current limits.

    A value for this broker overrides the value for all brokers, which overrides server.properties.
    """
    total = broker_value(image, settings, "max.connections")
    per_ip = broker_value(image, settings, "max.connections.per.ip")
    overrides = broker_value(image, settings, "max.connections.per.ip.overrides")
    assert isinstance(total, int)
    assert isinstance(per_ip, int)
    assert isinstance(overrides, str)
    levels = (
        image.config(BROKER_RESOURCE, str(settings.node_id)),
        image.config(BROKER_RESOURCE, CLUSTER_DEFAULT),
        settings.raw,
    )
    per_listener = {
        listener.name: most
        for listener in settings.listeners
        if (most := _of_listener(listener.name, levels)) is not None
    }
    return LimitConnections(total, per_ip, parse_host_counts(overrides), per_listener)


def _of_listener(name: str, levels: tuple[Mapping[str, str], ...]) -> int | None:
    """The limit of one listener; None if no valid number is set."""
    key = int32(f"listener.name.{name.lower()}.max.connections", None, "", at_least(0))
    for level in levels:
        if key.name in level:
            try:
                most = key.parse(level[key.name])
            except BadValue:
                continue
            assert isinstance(most, int)
            return most
    return None
