"""A broker retries its registration, sends heartbeats, and asks the controller before it stops."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse

from tidelog.controller.image.image import BrokerImage, ClusterImage
from tidelog.log.checkpoints.checkpoints import MetaProperties
from tidelog.log.checkpoints.clean_shutdown import CleanShutdown, CleanShutdownMark
from tidelog.log.directory import LogDirectory
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis
from tidelog.node.clock import Clock
from tidelog.node.controller.broker_lifecycle import REGISTRATION_RETRY_MS, Lifecycle
from tidelog.node.metadata.current_image import ImageChange
from tidelog.node.ready import ReadyQueue
from tidelog.node.storage.opening import OpenedDirectory
from tidelog.node.storage.storage import Storage
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.sim.machines.cluster import CLUSTER_ID, node_settings
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

HEARTBEAT_MS, SESSION_MS = 250, 2_000
DIRECTORY = UUID(int=1_000)
REGISTERED = BrokerRegistrationResponse(
    throttle_time=timedelta(0), error_code=ErrorCode.none, broker_epoch=-1
)
HEARD = BrokerHeartbeatResponse(
    throttle_time=timedelta(0),
    error_code=ErrorCode.none,
    is_caught_up=True,
    is_fenced=False,
    should_shut_down=False,
)


def disk_of_epoch(epoch: int, interrupted: UUID | None = None) -> SimDisk:
    """The disk after a clean shutdown in this epoch and, if given, after an interrupted start."""
    disk = SimDisk()
    mark = CleanShutdownMark(disk)
    mark.set(epoch)
    if interrupted is not None:
        mark.note_registration(epoch, interrupted)
    return disk


class LifecycleHost:
    """Acts as the controller: the test sees each request and decides when to answer it."""

    def __init__(self, interrupted: UUID | None = None) -> None:
        self.clock = Clock(0)
        self.disk = disk_of_epoch(77, interrupted)
        self.asked: list[tuple[Any, Callable[[Any], None], Millis | None]] = []
        self.failures: list[str] = []
        self.image = ClusterImage(cluster_id=CLUSTER_ID)
        directory = LogDirectory(self.disk, SeededDice(1))
        opened = OpenedDirectory(MetaProperties(CLUSTER_ID, 1, DIRECTORY), directory)
        self.life = Lifecycle(
            node_settings(1, 1),
            SeededDice(1),
            self.clock,
            self._submit,
            CLUSTER_ID,
            Storage([opened]),
            self.failures.append,
        )

    def _submit(
        self, message: Any, resume: Callable[[Any], None], patience_ms: Millis | None = None
    ) -> None:
        self.asked.append((message, resume, patience_ms))

    def pass_time(self, duration: Millis) -> None:
        end = self.clock.now + duration
        while (deadline := self.clock.timers.next_deadline()) is not None and deadline <= end:
            self.clock.now = deadline
            self.clock.timers.fire(deadline, ReadyQueue().run)
        self.clock.now = end

    def answer(self, error: ErrorCode = ErrorCode.none, **fields: Any) -> Any:
        """Answer the oldest request, and return the request."""
        message, resume, _ = self.asked.pop(0)
        response = REGISTERED if isinstance(message, BrokerRegistrationRequest) else HEARD
        resume(replace(response, error_code=error, **fields))
        return message

    def publish(self, *, epoch: int, fenced: bool, offset: int) -> None:
        me = BrokerImage(1, epoch, UUID(int=9), {}, fenced=fenced)
        self.image = replace(self.image, brokers={1: me}, offset=offset)
        self.life.image_changed(ImageChange(ClusterImage(), self.image, True))

    def registered(self, epoch: int = 5) -> None:
        self.life.register()
        self.answer(broker_epoch=epoch)

    def unfenced(self, epoch: int = 5) -> None:
        self.registered(epoch)
        self.answer()
        self.publish(epoch=epoch, fenced=False, offset=epoch + 1)


# -- registration at the controller ----------------------------------------------------------------


def test_it_introduces_itself() -> None:
    host = LifecycleHost()
    host.life.register()

    [(request, _, patience_ms)] = host.asked

    assert isinstance(request, BrokerRegistrationRequest)
    assert request.broker_id == 1
    assert request.cluster_id == CLUSTER_ID
    assert request.log_dirs == (DIRECTORY,)
    assert request.previous_broker_epoch == 77
    assert [(one.name, one.host, one.port) for one in request.listeners] == [
        ("PLAINTEXT", "node1", 9092)
    ]
    assert "metadata.version" in {feature.name for feature in request.features}
    assert patience_ms == 60_000


def test_each_process_is_another_incarnation_and_says_so_each_time() -> None:
    host = LifecycleHost()
    host.life.register()
    first = host.answer(ErrorCode.request_timed_out)
    host.pass_time(REGISTRATION_RETRY_MS)
    again = host.answer()
    assert first.incarnation_id == again.incarnation_id


def test_f15_its_epoch_is_known_from_the_image_before_the_answer_to_its_registration() -> None:
    host = LifecycleHost()
    host.life.register()
    [(request, _, _)] = host.asked
    me = BrokerImage(1, 12, request.incarnation_id, {}, fenced=True)
    earlier_run = replace(me, epoch=8, incarnation=UUID(int=9))

    assert host.life.epoch_in(host.image) == -1
    assert host.life.epoch_in(replace(host.image, brokers={1: earlier_run})) == -1
    assert host.life.epoch_in(replace(host.image, brokers={1: me})) == 12
    host.answer(broker_epoch=12)
    assert host.life.epoch_in(host.image) == 12


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.duplicate_broker_registration,
        ErrorCode.request_timed_out,
        ErrorCode.not_controller,
    ],
)
def test_it_tries_again_while_its_earlier_session_lives_or_nobody_decides(
    error: ErrorCode,
) -> None:
    host = LifecycleHost()
    host.life.register()

    for _ in range(5):
        host.answer(error)
        assert host.asked == []
        host.pass_time(REGISTRATION_RETRY_MS)

    assert isinstance(host.answer(broker_epoch=5), BrokerRegistrationRequest)
    assert host.life.epoch == 5
    assert host.failures == []


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.inconsistent_cluster_id,
        ErrorCode.unsupported_version,
        ErrorCode.invalid_registration,
    ],
)
def test_a_refusal_that_will_not_change_ends_the_process(error: ErrorCode) -> None:
    host = LifecycleHost()
    host.life.register()

    host.answer(error)
    host.pass_time(60_000)

    assert host.failures == [f"the controller refused this broker: {error.name}"]
    assert host.asked == []


def test_f17_what_it_proves_is_noted_before_it_registers() -> None:
    host = LifecycleHost()
    host.life.register()
    [(request, _, _)] = host.asked
    again = CleanShutdownMark(host.disk)
    assert again.found == CleanShutdown(True, 77, request.incarnation_id)


@pytest.mark.parametrize("refusals", [0, 3])
def test_f17_the_run_of_an_interrupted_start_is_settled_first(refusals: int) -> None:
    """The controller may have registered the interrupted start, in an epoch that we do not know."""
    host = LifecycleHost(interrupted=UUID(int=4_711))
    host.life.register()
    for _ in range(refusals):
        host.answer(ErrorCode.request_timed_out)
        host.pass_time(REGISTRATION_RETRY_MS)

    earlier = host.answer(broker_epoch=90)
    assert (earlier.incarnation_id, earlier.previous_broker_epoch) == (UUID(int=4_711), 77)
    assert host.life.epoch == -1
    own = host.answer(broker_epoch=91)
    assert own.incarnation_id not in (None, UUID(int=4_711))
    assert own.previous_broker_epoch == 90
    assert CleanShutdownMark(host.disk).found == CleanShutdown(True, 90, own.incarnation_id)
    assert host.life.epoch == 91


def test_f17_a_run_that_has_found_damage_proves_nothing_any_more() -> None:
    host = LifecycleHost()
    host.registered()
    host.asked.clear()
    host.life.reregister_as_unclean()
    [(request, _, _)] = host.asked
    assert request.previous_broker_epoch == -1
    assert CleanShutdownMark(host.disk).found == CleanShutdown(False)


# -- heartbeats to the controller ------------------------------------------------------------------


def test_it_heartbeats_at_its_interval_in_its_epoch() -> None:
    host = LifecycleHost()
    host.registered(epoch=5)
    for _ in range(4):
        request = host.answer()
        assert isinstance(request, BrokerHeartbeatRequest)
        assert request.broker_epoch == 5
        assert not request.want_fence
        assert not request.want_shut_down
        assert host.asked == []
        host.pass_time(HEARTBEAT_MS - 1)
        assert host.asked == []
        host.pass_time(1)
        assert len(host.asked) == 1


def test_a_heartbeat_says_how_far_the_metadata_is_read() -> None:
    host = LifecycleHost()
    host.registered(epoch=5)
    assert host.answer().current_metadata_offset == -1

    host.publish(epoch=5, fenced=True, offset=6)

    assert host.answer().current_metadata_offset == 6, "it does not wait for its next turn"


def test_a_new_controller_is_told_at_once() -> None:
    host = LifecycleHost()
    host.life.controller_changed()
    assert host.asked == [], "it has not registered with any"
    host.unfenced()
    host.pass_time(HEARTBEAT_MS - 1)

    host.life.controller_changed()

    assert isinstance(host.answer(), BrokerHeartbeatRequest)
    host.pass_time(HEARTBEAT_MS - 1)
    assert host.asked == [], "and its turns go on from there"


def test_it_is_cut_off_when_no_controller_has_answered_for_a_session() -> None:
    host = LifecycleHost()
    host.pass_time(SESSION_MS)
    assert not host.life.is_cut_off, "it is not known to any yet"
    host.unfenced()
    host.pass_time(SESSION_MS - 1)
    assert not host.life.is_cut_off
    host.pass_time(1)
    assert host.life.is_cut_off

    host.answer(ErrorCode.request_timed_out)
    assert host.life.is_cut_off, "that is its own clock, not a controller"
    host.answer()
    assert not host.life.is_cut_off


def test_a_heartbeat_that_is_not_answered_does_not_keep_the_next_from_going() -> None:
    host = LifecycleHost()
    host.registered()
    host.pass_time(SESSION_MS)
    assert len(host.asked) == 1 + SESSION_MS // HEARTBEAT_MS


def test_it_serves_while_the_image_says_that_it_is_unfenced_in_this_epoch() -> None:
    host = LifecycleHost()
    host.publish(epoch=4, fenced=False, offset=5)
    assert not host.life.is_unfenced, "that was its earlier run"
    host.registered(epoch=7)
    host.publish(epoch=7, fenced=True, offset=7)
    assert not host.life.is_unfenced
    host.publish(epoch=7, fenced=False, offset=8)
    assert host.life.is_unfenced
    host.publish(epoch=7, fenced=True, offset=9)
    assert not host.life.is_unfenced


@pytest.mark.parametrize(
    "error", [ErrorCode.stale_broker_epoch, ErrorCode.broker_id_not_registered]
)
def test_a_broker_that_is_not_known_any_more_registers_once_again(error: ErrorCode) -> None:
    host = LifecycleHost()
    host.unfenced(epoch=5)
    host.pass_time(HEARTBEAT_MS)

    host.answer(error)
    host.pass_time(10 * HEARTBEAT_MS)

    assert [type(message) for message, _, _ in host.asked] == [BrokerRegistrationRequest]
    host.answer(broker_epoch=9)
    assert host.life.epoch == 9
    assert host.answer().broker_epoch == 9


def test_a_late_answer_to_an_earlier_epoch_changes_nothing() -> None:
    host = LifecycleHost()
    host.unfenced(epoch=5)
    host.pass_time(2 * HEARTBEAT_MS)
    old, newer = host.asked
    host.asked.clear()
    old[1](replace(HEARD, error_code=ErrorCode.stale_broker_epoch))
    host.answer(broker_epoch=9)
    host.asked.clear()

    newer[1](replace(HEARD, error_code=ErrorCode.stale_broker_epoch))

    assert host.life.epoch == 9
    assert host.asked == []


# -- controlled shutdown ---------------------------------------------------------------------------


def test_it_asks_before_it_goes_and_goes_when_it_may() -> None:
    host = LifecycleHost()
    host.unfenced()
    stopped: list[bool] = []

    host.life.shut_down(lambda: stopped.append(True))
    assert host.answer(should_shut_down=False).want_shut_down
    assert stopped == []
    host.pass_time(HEARTBEAT_MS)
    assert host.answer(should_shut_down=True).want_shut_down

    assert stopped == [True]


def test_it_goes_once_however_often_it_is_allowed_to() -> None:
    host = LifecycleHost()
    host.unfenced()
    stopped: list[bool] = []
    host.life.shut_down(lambda: stopped.append(True))
    host.pass_time(HEARTBEAT_MS)

    host.answer(should_shut_down=True)
    host.answer(should_shut_down=True)

    assert stopped == [True]


def test_a_broker_that_nobody_knows_need_not_ask() -> None:
    host = LifecycleHost()
    host.life.register()
    stopped: list[bool] = []
    host.life.shut_down(lambda: stopped.append(True))
    assert stopped == [True]
