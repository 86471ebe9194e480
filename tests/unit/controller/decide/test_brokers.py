"""Brokers: registration, unfencing, controlled shutdown, fencing, unregistration."""

from typing import Any
from uuid import UUID

import pytest
from kio.schema.broker_registration.v4.request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from kio.schema.controller_registration.v0.request import ControllerRegistrationRequest
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from tests.unit.controller.support import (
    CLUSTER_ID,
    after,
    ask,
    broker,
    cluster,
    directory,
    min_isr,
    partition,
)

from tidelog.controller.image.image import ClusterImage
from tidelog.controller.liveness import Liveness
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.protocol.metadata.metadata_records import RegisterBrokerRecord

FEATURES = {"metadata.version": (7, 27), "eligible.leader.replicas.version": (0, 1)}


def registration(id_: int = 1, **changes: Any) -> BrokerRegistrationRequest:
    features: dict[str, tuple[int, int]] = changes.pop("features", FEATURES)
    values: dict[str, Any] = {
        "broker_id": id_,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": UUID(int=900 + id_),
        "listeners": (Listener(name="PLAINTEXT", host="h", port=9092, security_protocol=0),),
        "features": tuple(
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in features.items()
        ),
        "rack": None,
        "log_dirs": (directory(id_),),
    }
    return BrokerRegistrationRequest(**{**values, **changes})


def heartbeat(id_: int = 1, **changes: Any) -> BrokerHeartbeatRequest:
    values: dict[str, Any] = {
        "broker_id": id_,
        "broker_epoch": 100 + id_,
        "current_metadata_offset": 5000,
        "want_fence": False,
        "want_shut_down": False,
    }
    return BrokerHeartbeatRequest(**{**values, **changes})


def state(response: Any) -> tuple[bool, bool, bool]:
    return response.is_caught_up, response.is_fenced, response.should_shut_down


# -- Registration of brokers -----------------------------------------------------------------------


def test_a_broker_registers_fenced_with_the_offset_as_its_epoch() -> None:
    image = cluster(0)
    decision = ask(image, registration(4, rack="r"))
    image = after(image, decision)

    assert decision.response.error_code is ErrorCode.none
    assert decision.response.broker_epoch == image.brokers[4].epoch == 1000
    assert (image.brokers[4].fenced, image.brokers[4].rack) == (True, "r")
    assert image.brokers[4].endpoints["PLAINTEXT"].port == 9092
    assert image.brokers[4].directories == (directory(4),)


def test_the_same_process_may_ask_again_and_stays_what_it_is() -> None:
    image = cluster([broker(1, incarnation=UUID(int=901))])
    decision = ask(image, registration(1, rack="new"))
    image = after(image, decision)

    assert decision.response.broker_epoch == 101
    assert (image.brokers[1].epoch, image.brokers[1].fenced) == (101, False)
    assert image.brokers[1].rack == "new"


def test_another_process_may_not_take_the_place_of_one_that_lives() -> None:
    sessions = Liveness(9000)
    sessions.record_heartbeat(1, 5000)

    def registered(now: int) -> ErrorCode:
        elsewhere = registration(log_dirs=(directory(7),))
        error = ask(cluster(3), elsewhere, now=now, sessions=sessions).response.error_code
        assert isinstance(error, ErrorCode)
        return error

    assert registered(13_999) is ErrorCode.duplicate_broker_registration
    assert registered(14_000) is ErrorCode.none
    sessions.lost(1, 6000)
    assert registered(6000) is ErrorCode.none, "a process known to be gone"


def test_a_process_on_the_same_disks_need_not_wait_for_the_session_of_the_one_before() -> None:
    sessions = Liveness(9000)
    sessions.record_heartbeat(1, 5000)
    decision = ask(cluster(3), registration(), now=5001, sessions=sessions)
    assert decision.response.error_code is ErrorCode.none


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"cluster_id": "other"}, "inconsistent_cluster_id"),
        ({"features": {}}, "invalid_registration"),
        ({"features": {"metadata.version": (1, 7)}}, "unsupported_version"),
        ({"features": {"metadata.version": (7, 27)}}, "unsupported_version"),
        ({"log_dirs": ()}, "invalid_registration"),
        ({"log_dirs": (directory(1), directory(1))}, "invalid_registration"),
        ({"log_dirs": (UUID(int=5),)}, "invalid_registration"),
        ({"log_dirs": (None,)}, "invalid_registration"),
        ({"log_dirs": (directory(2),)}, "invalid_registration"),
        ({"incarnation_id": None}, "invalid_registration"),
        ({"is_migrating_zk_broker": True}, "broker_id_not_registered"),
    ],
)
def test_a_registration_that_cannot_be(changes: dict[str, Any], error: str) -> None:
    decision = ask(cluster(3), registration(1, **changes))

    assert (decision.response.error_code.name, decision.response.broker_epoch) == (error, -1)
    assert decision.records == ()


def test_f17_a_fast_restart_does_not_keep_the_place_of_the_process_before() -> None:
    """The new process may have lost unsynced records, so it is removed from the ISR and the ELR."""
    image = cluster(3, {"t": partition(isr=(1, 2), elr=())}, min_isr("t", 2))
    image = after(image, ask(image, registration(1)))
    found = image.topics["t"].partitions[0]

    assert (found.leader, found.isr, found.elr) == (2, (2,), ())
    assert image.brokers[1].fenced


def test_a_clean_restart_keeps_what_was_eligible() -> None:
    stopped = partition(isr=(2,), leader=2, elr=(1,))
    image = cluster([broker(1, fenced=True), broker(2), broker(3)], {"t": stopped}, min_isr("t", 2))
    clean = after(image, ask(image, registration(1, previous_broker_epoch=101)))
    unclean = after(image, ask(image, registration(1, previous_broker_epoch=100)))

    assert clean.topics["t"].partitions[0].elr == (1,)
    assert unclean.topics["t"].partitions[0].elr == ()


def test_without_eligible_replicas_a_new_process_just_leaves_the_in_sync_sets() -> None:
    image = cluster(3, {"t": partition()}, elr=False)
    image = after(image, ask(image, registration(1)))
    found = image.topics["t"].partitions[0]

    assert (found.leader, found.isr) == (2, (2, 3))


def test_the_registration_comes_first_so_that_its_offset_is_its_epoch() -> None:
    image = cluster(3, {"t": partition()})
    decision = ask(image, registration(1))

    assert isinstance(decision.records[0], RegisterBrokerRecord)
    assert decision.records[0].broker_epoch == image.offset + 1
    assert len(decision.records) == 2


# -- Heartbeats of brokers -------------------------------------------------------------------------


def test_a_broker_is_unfenced_when_it_has_read_its_own_registration() -> None:
    image = cluster([broker(1, fenced=True)], {"t": partition((1,), isr=(), leader=-1, elr=(1,))})
    behind = ask(image, heartbeat(current_metadata_offset=100))
    assert (state(behind.response), behind.records) == ((False, True, False), ())

    caught_up = ask(image, heartbeat(current_metadata_offset=101))
    assert state(caught_up.response) == (True, False, False)
    image = after(image, caught_up)
    found = image.topics["t"].partitions[0]
    assert image.is_active(1)
    assert (found.leader, found.isr, found.elr) == (1, (1,), ())


def test_a_broker_that_wants_to_be_fenced_stays_so() -> None:
    image = cluster([broker(1, fenced=True)])
    decision = ask(image, heartbeat(want_fence=True))

    assert (state(decision.response), decision.records) == ((True, True, False), ())


def test_a_broker_may_ask_to_be_fenced() -> None:
    image = cluster(3, {"t": partition()})
    decision = ask(image, heartbeat(want_fence=True))
    image = after(image, decision)

    assert state(decision.response) == (True, True, False)
    assert image.brokers[1].fenced
    assert image.topics["t"].partitions[0].isr == (2, 3)


def test_a_heartbeat_that_wants_nothing_changes_nothing() -> None:
    decision = ask(cluster(3, {"t": partition()}), heartbeat())

    assert (state(decision.response), decision.records) == ((True, False, False), ())


@pytest.mark.parametrize("asked", [heartbeat(1, broker_epoch=5), heartbeat(9)])
def test_a_heartbeat_of_another_run_is_stale(asked: BrokerHeartbeatRequest) -> None:
    decision = ask(cluster(3), asked)

    assert decision.response.error_code is ErrorCode.stale_broker_epoch
    assert state(decision.response) == (False, True, False)


def _sessions(**offsets: int) -> Liveness:
    sessions = Liveness(9000)
    for name, offset in offsets.items():
        sessions.record_heartbeat(int(name[1:]), 5000, offset)
    return sessions


def test_a_controlled_shutdown_hands_over_waits_and_ends() -> None:
    image = cluster(3, {"t": partition()}, min_isr("t", 1))
    stop = heartbeat(want_shut_down=True)

    begun = ask(image, stop)
    assert state(begun.response) == (True, False, False)
    image = after(image, begun)
    found = image.topics["t"].partitions[0]
    assert (found.leader, found.isr) == (2, (2, 3))
    assert image.brokers[1].in_controlled_shutdown

    waiting = ask(image, stop, sessions=_sessions(b2=5000, b3=0))
    assert (state(waiting.response), waiting.records) == ((True, False, False), ())

    ended = ask(image, stop, sessions=_sessions(b2=5000, b3=5000))
    assert state(ended.response) == (True, True, True)
    assert after(image, ended).brokers[1].fenced


def test_a_broker_that_leads_nothing_stops_at_once() -> None:
    image = cluster(3, {"t": partition((2, 1))})
    decision = ask(image, heartbeat(want_shut_down=True))

    assert state(decision.response) == (True, True, True)
    assert after(image, decision).topics["t"].partitions[0].isr == (2,)


def test_the_last_broker_stops_with_what_it_leads() -> None:
    image = cluster(1, {"t": partition((1,))})
    stop = heartbeat(want_shut_down=True)
    image = after(image, ask(image, stop))
    found = image.topics["t"].partitions[0]
    assert (found.leader, found.isr, found.elr, found.last_known_elr) == (-1, (), (1,), (1,))

    ended = ask(image, stop)
    assert state(ended.response) == (True, True, True)


def test_a_fenced_broker_may_stop() -> None:
    decision = ask(cluster([broker(1, fenced=True)]), heartbeat(want_shut_down=True))

    assert state(decision.response) == (True, True, True)


def test_a_failed_log_directory_takes_its_replicas_out() -> None:
    two = broker(1, directories=(directory(1), directory(8)))
    elsewhere = partition(directories=(directory(8), directory(2), directory(3)))
    image = cluster([two, broker(2), broker(3)], {"t": [partition(), elsewhere]})
    image = after(image, ask(image, heartbeat(offline_log_dirs=(directory(1),))))

    assert image.brokers[1].directories == (directory(8),)
    assert image.topics["t"].partitions[0].isr == (2, 3)
    assert image.topics["t"].partitions[0].leader == 2
    assert image.topics["t"].partitions[1].leader == 1
    assert ask(image, heartbeat(offline_log_dirs=(directory(1),))).records == ()


# -- Unregistered brokers, and registration of controllers -----------------------------------------


def test_an_unregistered_broker_is_counted_on_nowhere() -> None:
    image = cluster(3, {"t": partition(isr=(1, 2), elr=(3,))}, min_isr("t", 3))
    for id_ in (1, 3):
        decision = ask(image, UnregisterBrokerRequest(broker_id=id_))
        assert decision.response.error_code is ErrorCode.none
        image = after(image, decision)
    found = image.topics["t"].partitions[0]

    assert list(image.brokers) == [2]
    assert (found.leader, found.isr, found.elr) == (2, (2,), ())


def test_an_unknown_broker_cannot_be_unregistered() -> None:
    response = ask(cluster(), UnregisterBrokerRequest(broker_id=9)).response

    assert response.error_code is ErrorCode.broker_id_not_registered
    assert response.error_message == "Broker ID 9 is not currently registered"


def test_a_controller_registers() -> None:
    image: ClusterImage = cluster(0)
    request = ControllerRegistrationRequest(
        controller_id=7,
        incarnation_id=UUID(int=3),
        zk_migration_ready=False,
        listeners=(),
        features=(),
    )
    image = after(image, ask(image, request))

    assert image.controllers[7].incarnation == UUID(int=3)
