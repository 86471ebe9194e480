"""Checks of settings that depend on each other, as in Kafka."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidelog.config.addresses import BadSetting
from tidelog.config.group_checks import check_consumer_groups
from tidelog.config.key import Value
from tidelog.config.sasl_checks import SASL, check_login

if TYPE_CHECKING:
    from tidelog.config.settings import BrokerSettings


def check_together(settings: "BrokerSettings", values: Mapping[str, Value]) -> None:
    """Raise `BadSetting` for the first setting that does not fit the others."""
    names = {listener.name for listener in settings.listeners}
    controllers = settings.controller_listener_names
    if not controllers:
        raise BadSetting("controller.listener.names", "at least one listener name is needed")
    if settings.is_controller and not names.issuperset(controllers):
        raise BadSetting(
            "controller.listener.names", "a controller must list each of these names in listeners"
        )
    if not settings.is_controller and names.intersection(controllers):
        raise BadSetting(
            "controller.listener.names", "a node that is only a broker may not listen on them"
        )
    if values["max.connections.per.ip"] == 0 and not values["max.connections.per.ip.overrides"]:
        raise BadSetting(
            "max.connections.per.ip",
            "it can be 0 only where max.connections.per.ip.overrides names hosts",
        )
    check_consumer_groups(values)
    if settings.is_broker:
        _check_broker(settings, names)
    _check_logins(settings, values)
    voters = settings.controller_quorum_voters
    if settings.is_controller and voters and settings.node_id not in {v.id for v in voters}:
        raise BadSetting(
            "controller.quorum.voters",
            f"the controller {settings.node_id} (node.id) is not among the voters",
        )
    if not voters and not settings.controller_quorum_bootstrap_servers:
        raise BadSetting(
            "controller.quorum.voters",
            "set this key or controller.quorum.bootstrap.servers to the controllers' addresses",
        )


def _check_logins(settings: "BrokerSettings", values: Mapping[str, Value]) -> None:
    """Check how this node authenticates to brokers and to controllers, if they ask for it."""
    for name, kind in (
        (settings.controller_listener_names[0], "controller"),
        (settings.inter_broker_listener_name, "inter.broker"),
    ):
        if settings.security_protocols.get(name) in SASL:
            key = f"sasl.mechanism.{kind}.protocol"
            check_login(key, str(values[key]), name, settings.raw)


def _check_broker(settings: "BrokerSettings", names: set[str]) -> None:
    inter_broker = settings.inter_broker_listener_name
    advertised = {listener.name for listener in settings.advertised_listeners}
    if inter_broker in settings.controller_listener_names:
        raise BadSetting("inter.broker.listener.name", "it may not be a controller listener")
    if inter_broker not in advertised:
        raise BadSetting(
            "inter.broker.listener.name", f"{inter_broker} is not among the advertised listeners"
        )
    if not advertised <= names:
        raise BadSetting("advertised.listeners", "each name must also be in listeners")
    if settings.broker_heartbeat_interval_ms > settings.broker_session_timeout_ms:
        raise BadSetting(
            "broker.heartbeat.interval.ms", "it may not be longer than broker.session.timeout.ms"
        )
