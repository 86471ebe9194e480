"""Registers this controller: its endpoints and its supported features (KIP-919).

A controller registers once per run of its process, as soon as the cluster has a metadata version.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from kio.schema.controller_registration.v0.request import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)

from tidelog.config.settings import BrokerSettings
from tidelog.controller.features import METADATA_VERSION, REGISTERED_FEATURES
from tidelog.model.errors import ErrorCode
from tidelog.node.metadata.current_image import ImageChange
from tidelog.node.requests.parking import Resume
from tidelog.node.storage.opening import controller_endpoints


class ControllerRegistration:
    def __init__(
        self, settings: BrokerSettings, incarnation: UUID, submit: Callable[[Any, Resume], None]
    ) -> None:
        self._settings = settings
        self._incarnation = incarnation
        self._submit = submit
        self._is_needed = settings.is_controller

    def image_changed(self, change: ImageChange) -> None:
        if self._is_needed and METADATA_VERSION in change.new.features:
            self._is_needed = False
            self._submit(self._request(), self._answered)

    def _answered(self, response: Any) -> None:
        """After a refusal, register again at the next change of the image."""
        self._is_needed = response.error_code is not ErrorCode.none

    def _request(self) -> ControllerRegistrationRequest:
        protocols = {one.name: one.security_protocol for one in self._settings.listeners}
        return ControllerRegistrationRequest(
            controller_id=self._settings.node_id,
            incarnation_id=self._incarnation,
            zk_migration_ready=False,
            listeners=tuple(
                Listener(name=name, host=host, port=port, security_protocol=protocols[name])
                for name, host, port in controller_endpoints(self._settings)
            ),
            features=tuple(
                Feature(
                    name=name,
                    min_supported_version=supported.minimum,
                    max_supported_version=supported.maximum,
                )
                for name, supported in sorted(REGISTERED_FEATURES.items())
            ),
        )
