"""How many connections this node takes, from its file and from what was set while it ran.

Kafka's keys: max.connections and max.connections.per.ip with its overrides for a node,
listener.name.NAME.max.connections for one of its listeners.
"""

from collections.abc import Mapping

from tidelog.config.key import BadValue, at_least, int32, parse_host_counts
from tidelog.config.settings import BrokerSettings
from tidelog.controller.configs.effective import broker_value
from tidelog.controller.image.image import BROKER_RESOURCE, CLUSTER_DEFAULT, ClusterImage
from tidelog.model.outbound import LimitConnections


def connection_limits(image: ClusterImage, settings: BrokerSettings) -> LimitConnections:
    """As the configuration of this broker, of all brokers, or of its file says now."""
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
    """None where nobody has set it, or not to a number."""
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
