"""A broker's registration, unfencing, heartbeats and controlled shutdown.

Invariant: the broker is ready while the image shows it as unfenced with the broker epoch of its
current registration. If the controller no longer knows the broker, the broker registers again.
"""

import logging
from collections.abc import Callable
from typing import Any, Protocol
from uuid import UUID

from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest, Feature, Listener

from tidelog.config.settings import BrokerSettings
from tidelog.controller.features import REGISTERED_FEATURES
from tidelog.controller.image.image import ClusterImage
from tidelog.model.dice import Dice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import BrokerEpoch, Millis, TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.metadata.current_image import ImageChange
from tidelog.node.storage.storage import Storage
from tidelog.node.timers import Timer
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, LogEndReport

_TRY_AGAIN = (
    ErrorCode.request_timed_out,
    ErrorCode.duplicate_broker_registration,
    ErrorCode.not_controller,
)
REGISTRATION_RETRY_MS: Millis = 100

log = logging.getLogger(__name__)


class Submit(Protocol):
    """A function that sends a request to the active controller."""

    def __call__(
        self, message: Any, resume: Callable[[Any], None], patience_ms: Millis | None = None
    ) -> None: ...


class Lifecycle:
    def __init__(
        self,
        settings: BrokerSettings,
        dice: Dice,
        clock: Clock,
        submit: Submit,
        cluster_id: str,
        storage: Storage,
        failed: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._timers = clock.timers
        self._submit = submit
        self._cluster_id = cluster_id
        self._storage = storage
        self._failed = failed
        self._dice = dice
        self._incarnation = dice.uuid()
        self._previous_epoch = storage.previous_broker_epoch
        self._interrupted: UUID | None = None
        if self._previous_epoch >= 0:
            self._interrupted = storage.interrupted_incarnation
        self._metadata_offset = -1
        self._known_directories: frozenset[UUID] = frozenset()
        self._may_stop: Callable[[], None] | None = None
        self._timer: Timer | None = None
        self._log_ends: dict[TopicPartition, LogEndReport] = {}
        """The log ends of partitions without a leader, which every heartbeat repeats (ADR 27)."""
        self._is_report_due = False
        self._answered_at: Millis = clock.now
        self.epoch: BrokerEpoch = -1
        self.is_unfenced = False
        self.may_be_unfenced = True
        """Whether the broker is ready to be unfenced, because it has opened all its logs (F41)."""

    # -- registering -------------------------------------------------------------------------------

    def register(self) -> None:
        """Register this run; if the last start was interrupted, register that run first.

        The controller may have registered the interrupted run with a broker epoch that this run
        does not know. If this node registers the interrupted run again, the controller returns that
        epoch. This run then sends that epoch as its previous broker epoch, which proves a clean
        shutdown. The proof is valid, because the interrupted run did not change any log.
        """
        if self._interrupted is not None:
            self._send_registration(self._interrupted, self._settled)
        else:
            if self._previous_epoch >= 0:
                self._storage.note_registration(self._previous_epoch, self._incarnation)
            self._send_registration(self._incarnation, self._registered)

    def _settled(self, incarnation: UUID, response: Any) -> None:
        if incarnation == self._interrupted and self._is_accepted(response):
            self._previous_epoch = response.broker_epoch
            self._interrupted = None
            self.register()

    def _send_registration(self, incarnation: UUID, answered: Callable[[UUID, Any], None]) -> None:
        settings = self._settings
        request = BrokerRegistrationRequest(
            broker_id=settings.node_id,
            cluster_id=self._cluster_id,
            incarnation_id=incarnation,
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
                for name, supported in sorted(REGISTERED_FEATURES.items())
            ),
            rack=settings.broker_rack,
            log_dirs=self._storage.online_ids,
            previous_broker_epoch=self._previous_epoch,
        )
        self._submit(
            request,
            lambda response: answered(incarnation, response),
            settings.initial_broker_registration_timeout_ms,
        )

    def _registered(self, incarnation: UUID, response: Any) -> None:
        if incarnation != self._incarnation:
            return  # this broker has registered again in the meantime
        if self._is_accepted(response):
            self.epoch = response.broker_epoch
            self._answered_at = self._clock.now
            log.info("registered as broker %d, epoch %d", self._settings.node_id, self.epoch)
            self._heartbeat()

    def _is_accepted(self, response: Any) -> bool:
        error = response.error_code
        if error in _TRY_AGAIN:
            # Another process with this broker id may still have a session. Retry until the session
            # expires.
            self._timers.at(self._clock.now + REGISTRATION_RETRY_MS, self.register)
        elif error is not ErrorCode.none:
            self._failed(f"the controller refused this broker: {error.name}")
        return error is ErrorCode.none

    def is_registered_in(self, image: ClusterImage) -> bool:
        """Whether the broker's registration in the image belongs to this run."""
        me = image.brokers.get(self._settings.node_id)
        return me is not None and me.incarnation == self._incarnation

    def epoch_in(self, image: ClusterImage) -> BrokerEpoch:
        """The broker epoch of this run, taken from the image, even if no response has arrived yet.

        With this epoch, a leader distinguishes the log of this run from the log of an earlier run
        (F15).
        """
        if self.epoch < 0 and self.is_registered_in(image):
            return image.brokers[self._settings.node_id].epoch
        return self.epoch

    # -- heartbeats and shutdown -------------------------------------------------------------------

    def image_changed(self, change: ImageChange) -> None:
        image = change.new
        self._metadata_offset = image.offset
        me = image.brokers.get(self._settings.node_id)
        if me is not None:
            self._known_directories = frozenset(me.directories)
        was_unfenced = self.is_unfenced
        self.is_unfenced = me is not None and me.epoch == self.epoch and not me.fenced
        if was_unfenced and not self.is_unfenced and self._may_stop is None:
            log.warning("broker %d is fenced", self._settings.node_id)
        if me is not None and me.epoch == self.epoch and me.fenced:
            # The image contains this registration, so ask to be unfenced without waiting for the
            # next periodic heartbeat.
            self._beat()

    def ask_to_be_unfenced(self) -> None:
        """Ask at once to be unfenced, because every log is open now."""
        if not self.may_be_unfenced:
            self.may_be_unfenced = True
            if self.epoch >= 0 and not self.is_unfenced:
                self._beat()

    def controller_changed(self) -> None:
        """Send a heartbeat to the new controller at once, before it fences this broker."""
        if self.epoch >= 0:
            self._heartbeat()

    @property
    def is_cut_off(self) -> bool:
        """Whether no controller has answered within the session timeout.

        If so, the controller may have fenced this broker.
        """
        silence = self._clock.now - self._answered_at
        return self.epoch >= 0 and silence >= self._settings.broker_session_timeout_ms

    def directory_failed(self) -> None:
        """Report the failed directory to the controller at once.

        If no report reaches the controller within log.dir.failure.timeout.ms, the node stops.
        """
        patience = self._settings.log_dir_failure_timeout_ms
        self._timers.at(self._clock.now + patience, self._check_that_failures_are_known)
        if self.epoch >= 0:
            self._beat()

    def _check_that_failures_are_known(self) -> None:
        if not self._known_directories.isdisjoint(self._storage.offline_ids):
            self._failed("the failure of a log directory could not be reported to the controller")

    def reregister_as_unclean(self) -> None:
        """Register again, as after an unclean shutdown, because a log has lost durable records.

        As a result, the controller does not rely on the replicas of this broker.
        """
        self._storage.distrust()
        if self._previous_epoch >= 0 and not self.is_unfenced:
            log.warning(
                "broker %d has found damage: it registers as after an unclean shutdown",
                self._settings.node_id,
            )
            self._previous_epoch = -1
            self._interrupted = None
            self._incarnation = self._dice.uuid()
            self._register_again()

    def _register_again(self) -> None:
        self.epoch = -1
        if self._timer is not None:
            self._timer.cancel()
        self.register()

    def report_log_end(self, partition: TopicPartition, report: LogEndReport) -> None:
        """Send this report at once, together with the others of the current event."""
        self._log_ends[partition] = report
        if not self._is_report_due:
            self._is_report_due = True
            self._timers.at(self._clock.now, self._send_reports)

    def forget_log_end(self, partition: TopicPartition) -> None:
        """Send no report for this partition any more, because its state has changed."""
        self._log_ends.pop(partition, None)

    def _send_reports(self) -> None:
        self._is_report_due = False
        if self.epoch >= 0 and self._log_ends:
            self._beat()

    def shut_down(self, may_stop: Callable[[], None]) -> None:
        """Ask the controller to move the leaderships away; call `may_stop` once it has done so."""
        self._may_stop = may_stop
        if self.epoch < 0:
            may_stop()
            return
        self._beat()

    def _heartbeat(self) -> None:
        self._beat()
        if self._timer is not None:
            self._timer.cancel()
        interval = self._settings.broker_heartbeat_interval_ms
        self._timer = self._timers.at(self._clock.now + interval, self._heartbeat)

    def _beat(self) -> None:
        epoch = self.epoch
        request = BrokerHeartbeatRequest(
            broker_id=self._settings.node_id,
            broker_epoch=epoch,
            current_metadata_offset=self._metadata_offset,
            want_fence=not self.may_be_unfenced,
            want_shut_down=self._may_stop is not None,
            offline_log_dirs=self._storage.offline_ids,
            log_ends=tuple(self._log_ends.values()),
        )
        patience = self._settings.broker_session_timeout_ms
        self._submit(request, lambda response: self._heartbeat_answered(epoch, response), patience)

    def _heartbeat_answered(self, epoch: BrokerEpoch, response: Any) -> None:
        if epoch != self.epoch:
            return
        error = response.error_code
        if error is not ErrorCode.request_timed_out:
            self._answered_at = self._clock.now
        if error in (ErrorCode.broker_id_not_registered, ErrorCode.stale_broker_epoch):
            log.warning(
                "the controller does not know broker %d any more: %s",
                self._settings.node_id,
                error.name,
            )
            self._register_again()
        elif error is ErrorCode.none and response.should_shut_down and self._may_stop is not None:
            may_stop, self._may_stop = self._may_stop, None
            may_stop()
