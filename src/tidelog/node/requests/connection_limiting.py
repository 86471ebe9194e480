"""Sends the host new connection limits when the configuration changes them."""

from collections.abc import Callable

from tidelog.config.settings import BrokerSettings
from tidelog.controller.configs.connection_limits import connection_limits
from tidelog.controller.image.image import ClusterImage
from tidelog.model.outbound import LimitConnections
from tidelog.node.metadata.current_image import ImageChange


class ConnectionLimiting:
    """Sends changes only, because the host starts with the limits of the configuration file."""

    def __init__(self, settings: BrokerSettings, emit: Callable[[LimitConnections], None]) -> None:
        self._settings = settings
        self._emit = emit
        self._limits = connection_limits(ClusterImage(), settings)

    def image_changed(self, change: ImageChange) -> None:
        if change.old.configs is change.new.configs:
            return
        limits = connection_limits(change.new, self._settings)
        if limits != self._limits:
            self._limits = limits
            self._emit(limits)
