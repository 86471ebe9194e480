"""A broker's life as its controller sees it: register, be unfenced, serve, shut down in order.

Invariant: the broker serves once the image says that it is unfenced, in the epoch it registered.
"""

import logging
from collections.abc import Callable
from typing import Any

from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest, Feature, Listener

from tidelog.controller.features import SUPPORTED_FEATURES
from tidelog.controller.image import ClusterImage
from tidelog.controller.settings import BrokerSettings
from tidelog.model.dice import Dice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import BrokerEpoch, TopicId

Submit = Callable[[Any, Callable[[Any], None]], None]

log = logging.getLogger(__name__)


class Lifecycle:
    def __init__(
        self,
        settings: BrokerSettings,
        dice: Dice,
        submit: Submit,
        directories: tuple[TopicId, ...],
        previous_epoch: BrokerEpoch,
        failed: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._submit = submit
        self._directories = directories
        self._previous_epoch = previous_epoch
        self._failed = failed
        self._incarnation = dice.uuid()
        self.epoch: BrokerEpoch = -1
        self.is_unfenced = False

    def register(self, image: ClusterImage) -> None:
        settings = self._settings
        request = BrokerRegistrationRequest(
            broker_id=settings.node_id,
            cluster_id=image.cluster_id,
            incarnation_id=self._incarnation,
            listeners=tuple(
                Listener(
                    name=listener.name,
                    host=listener.host,
                    port=listener.port,
                    security_protocol=listener.security_protocol,
                )
                for listener in settings.advertised_listeners
            ),
            features=tuple(
                Feature(
                    name=name,
                    min_supported_version=supported.minimum,
                    max_supported_version=supported.maximum,
                )
                for name, supported in sorted(SUPPORTED_FEATURES.items())
            ),
            rack=settings.broker_rack,
            log_dirs=self._directories,
            previous_broker_epoch=self._previous_epoch,
        )
        self._submit(request, self._registered)

    def image_changed(self, image: ClusterImage) -> None:
        me = image.brokers.get(self._settings.node_id)
        self.is_unfenced = me is not None and me.epoch == self.epoch and not me.fenced

    def _registered(self, response: Any) -> None:
        if response.error_code is not ErrorCode.none:
            self._failed(f"the controller refused this broker: {response.error_code.name}")
            return
        self.epoch = response.broker_epoch
        log.info("registered as broker %d, epoch %d", self._settings.node_id, self.epoch)
        heartbeat = BrokerHeartbeatRequest(
            broker_id=self._settings.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self.epoch,
            want_fence=False,
            want_shut_down=False,
        )
        self._submit(heartbeat, self._heard)

    def _heard(self, response: Any) -> None:
        if response.error_code is not ErrorCode.none:
            self._failed(f"the controller refused a heartbeat: {response.error_code.name}")
