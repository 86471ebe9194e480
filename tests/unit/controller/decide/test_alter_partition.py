"""AlterPartition: the controller's decision on an in-sync set."""

from typing import Any
from uuid import UUID

import pytest
from kio.schema.alter_partition.v3.request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from tests.unit.controller.support import after, ask, broker, cluster, min_isr, partition

from tidelog.controller.image.image import RECOVERED, RECOVERING, ClusterImage
from tidelog.model.errors import ErrorCode

TOPIC_ID = UUID(int=0xA0)


def alteration(
    isr: list[int] | list[tuple[int, int]], leader: int = 1, **changes: Any
) -> AlterPartitionRequest:
    members = [one if isinstance(one, tuple) else (one, 100 + one) for one in isr]
    topic_id = changes.pop("topic_id", TOPIC_ID)
    broker_epoch = changes.pop("broker_epoch", 100 + leader)
    values: dict[str, Any] = {
        "partition_index": 0,
        "leader_epoch": 5,
        "partition_epoch": 7,
        "new_isr_with_epochs": tuple(
            BrokerState(broker_id=id_, broker_epoch=epoch) for id_, epoch in members
        ),
        "leader_recovery_state": RECOVERED,
    }
    return AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=broker_epoch,
        topics=(
            TopicData(topic_id=topic_id, partitions=(PartitionData(**{**values, **changes}),)),
        ),
    )


def error_of(image: ClusterImage, request: AlterPartitionRequest) -> str:
    decision = ask(image, request)
    assert decision.records == ()
    name = decision.response.topics[0].partitions[0].error_code.name
    assert isinstance(name, str)
    return name


def test_a_shrink_and_an_expansion_move_the_partition_epoch() -> None:
    image = cluster(3, {"t": partition()})
    shrunk = ask(image, alteration([1, 2]))
    answer = shrunk.response.topics[0].partitions[0]

    assert answer.error_code is ErrorCode.none
    assert (answer.leader_id, answer.isr, answer.leader_epoch, answer.partition_epoch) == (
        1,
        (1, 2),
        5,
        8,
    )
    image = after(image, shrunk)
    grown = ask(image, alteration([1, 2, 3], partition_epoch=8))
    assert after(image, grown).topics["t"].partitions[0].isr == (1, 2, 3)


def test_asking_for_what_is_there_changes_nothing() -> None:
    decision = ask(cluster(3, {"t": partition()}), alteration([1, 2, 3]))

    assert decision.records == ()
    assert decision.response.topics[0].partitions[0].partition_epoch == 7


def test_a_shrink_below_the_minimum_keeps_the_others_eligible_and_growth_clears_them() -> None:
    image = cluster(3, {"t": partition()}, min_isr("t", 2))
    image = after(image, ask(image, alteration([1])))
    assert image.topics["t"].partitions[0].elr == (2, 3)

    image = after(image, ask(image, alteration([1, 3], partition_epoch=8)))
    assert image.topics["t"].partitions[0].elr == ()


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (alteration([1], leader_epoch=4), "fenced_leader_epoch"),
        (alteration([1], leader_epoch=6), "not_controller"),
        (alteration([1], partition_epoch=6), "invalid_update_version"),
        (alteration([1], partition_epoch=8), "not_controller"),
        (alteration([2], leader=2), "invalid_request"),
        (alteration([2, 3]), "invalid_request"),
        (alteration([1, 1]), "invalid_request"),
        (alteration([1, 9]), "invalid_request"),
        (alteration([1], leader_recovery_state=RECOVERING), "invalid_request"),
        (alteration([1], leader_recovery_state=9), "invalid_request"),
        (alteration([1], partition_index=4), "unknown_topic_or_partition"),
        (alteration([1], topic_id=UUID(int=5)), "unknown_topic_id"),
        (alteration([1], topic_id=None), "unknown_topic_id"),
    ],
)
def test_a_leader_that_is_out_of_date_is_refused(
    request_: AlterPartitionRequest, error: str
) -> None:
    assert error_of(cluster(3, {"t": partition()}), request_) == error


def test_a_broker_of_another_epoch_is_refused_altogether() -> None:
    decision = ask(cluster(3, {"t": partition()}), alteration([1], broker_epoch=5))

    assert decision.response.error_code is ErrorCode.stale_broker_epoch
    assert decision.response.topics == ()


def test_f15_a_replica_of_another_run_than_the_leader_saw_is_not_in_sync() -> None:
    image = cluster(3, {"t": partition(isr=(1,))})

    assert error_of(image, alteration([(1, 101), (2, 99)])) == "ineligible_replica"
    known_only_by_id = ask(image, alteration([(1, 101), (2, -1)]))
    assert known_only_by_id.response.topics[0].partitions[0].isr == (1, 2)


@pytest.mark.parametrize("state", [{"fenced": True}, {"in_controlled_shutdown": True}])
def test_f16_a_fenced_or_stopping_replica_does_not_come_into_sync(state: dict[str, bool]) -> None:
    image = cluster([broker(1), broker(2, **state), broker(3)], {"t": partition(isr=(1,))})

    assert error_of(image, alteration([1, 2])) == "ineligible_replica"
    assert error_of(image, alteration([1, 4])) == "invalid_request"


def test_an_unclean_leader_says_when_it_has_recovered() -> None:
    image = cluster(3, {"t": partition(isr=(1,), leader_recovery_state=RECOVERING)})
    assert (
        error_of(image, alteration([1, 2], leader_recovery_state=RECOVERING)) == "invalid_request"
    )

    image = after(image, ask(image, alteration([1, 2])))
    assert image.topics["t"].partitions[0].leader_recovery_state == RECOVERED


def test_the_last_new_replica_in_sync_completes_a_reassignment() -> None:
    moving = partition((2, 3, 1), isr=(1, 2), leader=1, adding=(2, 3), removing=(1,))
    image = cluster(3, {"t": moving})
    decision = ask(image, alteration([1, 2, 3]))

    assert decision.response.topics[0].partitions[0].error_code is ErrorCode.new_leader_elected
    found = after(image, decision).topics["t"].partitions[0]
    assert (found.replicas, found.isr, found.leader) == ((2, 3), (2, 3), 2)
    assert not found.is_reassigning
