"""The kinds of listeners. Broker listeners and controller listeners serve different APIs."""

from enum import Enum

from tidelog.api.handler import Request
from tidelog.config.settings import BrokerSettings


class ListenerKind(Enum):
    BROKER = "broker"
    CONTROLLER = "controller"


def listener_kind(name: str, settings: BrokerSettings) -> ListenerKind:
    if name in settings.controller_listener_names:
        return ListenerKind.CONTROLLER
    return ListenerKind.BROKER


def kind_of(request: Request) -> ListenerKind:
    return listener_kind(request.listener, request.settings)
