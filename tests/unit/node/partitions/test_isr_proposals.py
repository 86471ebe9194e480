"""AlterPartition: after which errors the high watermark does not wait for a proposed replica."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.alter_partition.v3.request import AlterPartitionRequest
from kio.schema.alter_partition.v3.response import (
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)
from tests.unit.controller.support import broker, cluster, partition
from tests.unit.log.support import NOW, append, batch, new_log
from tests.unit.node.following import TOPIC_ID, Owner

from tidelog.controller.decide.refusals import refusal
from tidelog.controller.image.image import ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.model.replication_events import IsrExpanded, IsrShrunk, ReplicationEvent
from tidelog.node.clock import Clock
from tidelog.node.events.counters import Counters
from tidelog.node.metadata.current_image import ImageChange
from tidelog.node.partitions.isr_proposals import IsrProposals
from tidelog.node.partitions.replica import Replica
from tidelog.replication.isr.leader import FollowerFetched, IsrAgreed, LagChecked, ProposeIsr
from tidelog.replication.rules import ISR

ME, SECOND, THIRD = 1, 2, 3


def change_to(new: ClusterImage) -> ImageChange:
    return ImageChange(ClusterImage(), new, True)


class ProposingLeader(Owner):
    """A leader of three replicas; the third has caught up, so the leader proposes to add it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[AlterPartitionRequest, Callable[[Any], None]]] = []
        self.clock = Clock(NOW)
        self.reported: list[ReplicationEvent] = []
        self.counters = Counters()
        self.outgoing = IsrProposals(
            ME, self._submit, self.reported.append, self.counters, 100 << 20
        )
        partition = TopicPartition("orders", 0)
        self.replica = Replica(partition, TOPIC_ID, new_log(), 0, self.clock, self)
        agreed = IsrAgreed(frozenset({ME, SECOND}), frozenset({ME, SECOND, THIRD}), 4, 2)
        self.replica.lead(ME, 7, agreed, ISR)
        self.hear(THIRD, 0)

    def propose_isr(self, replica: Replica, proposal: ProposeIsr) -> None:
        self.outgoing.propose(replica, proposal)

    def _submit(self, message: Any, resume: Callable[[Any], None], _: Any = None) -> None:
        self.asked.append((message, resume))

    def hear(self, replica: int, offset: int) -> None:
        self.replica.follower_fetched(FollowerFetched(replica, offset, 10 + replica, True))

    def write(self) -> None:
        append(self.replica.log, batch(), epoch=7)
        self.replica.appended()
        self.hear(SECOND, 1)

    def answer(
        self,
        error: ErrorCode,
        isr: tuple[int, ...] = (),
        epoch: int = -1,
        leader_epoch: int = 7,
    ) -> None:
        partition = PartitionData(
            partition_index=0,
            error_code=error,
            leader_id=ME,
            leader_epoch=leader_epoch,
            isr=isr,
            partition_epoch=epoch,
        )
        topic = TopicData(topic_id=TOPIC_ID, partitions=(partition,))
        _, resume = self.asked.pop(0)
        resume(
            AlterPartitionResponse(
                throttle_time=timedelta(), error_code=ErrorCode.none, topics=(topic,)
            )
        )


def test_the_request_names_epochs_of_leader_partition_and_brokers() -> None:
    [(request, _)] = ProposingLeader().asked

    [partition] = request.topics[0].partitions
    assert (partition.leader_epoch, partition.partition_epoch) == (7, 4)
    members = [(one.broker_id, one.broker_epoch) for one in partition.new_isr_with_epochs]
    assert members == [(ME, -1), (SECOND, -1), (THIRD, 13)]


def test_what_is_agreed_counts_at_once() -> None:
    owner = ProposingLeader()

    owner.answer(ErrorCode.none, (ME, SECOND, THIRD), 5)

    assert owner.replica.leader.isr == {ME, SECOND, THIRD}


def test_a_replica_that_was_surely_not_added_is_not_waited_for() -> None:
    owner = ProposingLeader()
    owner.answer(ErrorCode.ineligible_replica)

    owner.write()

    assert owner.replica.high_watermark == 1


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.invalid_update_version,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_topic_id,
        ErrorCode.not_controller,
    ],
)
def test_f12_a_replica_that_may_have_been_added_is_waited_for(error: ErrorCode) -> None:
    """After these errors the replica may already be in the ISR.

    For example, the first request succeeded, but its answer was lost. The retry then fails, because
    its partition epoch is old.
    """
    owner = ProposingLeader()
    owner.answer(error)

    owner.write()

    assert owner.replica.high_watermark == 0


def test_f28_a_request_that_nobody_answered_is_made_again() -> None:
    owner = ProposingLeader()
    request, resume = owner.asked.pop(0)
    resume(refusal(request, ErrorCode.request_timed_out))
    owner.write()
    assert (owner.asked, owner.replica.high_watermark) == ([], 0)

    owner.clock.now += 200
    owner.hear(SECOND, 1)

    [(again, _)] = owner.asked
    assert again.topics == request.topics


# -- replication events ----------------------------------------------------------------------------


def image_with(isr: tuple[int, ...], epoch: int, *, fenced: int = 0) -> ClusterImage:
    placed = partition((ME, SECOND, THIRD), isr=isr, leader_epoch=7, partition_epoch=epoch)
    brokers = [broker(id_, fenced=id_ == fenced) for id_ in (ME, SECOND, THIRD)]
    return cluster(brokers, {"orders": placed})


def test_an_expansion_is_told_when_it_is_agreed_and_only_then() -> None:
    owner = ProposingLeader()
    owner.outgoing.image_changed(change_to(image_with((ME, SECOND), 4)))
    assert owner.reported == []

    owner.answer(ErrorCode.none, (ME, SECOND, THIRD), 5)
    owner.outgoing.image_changed(change_to(image_with((ME, SECOND, THIRD), 5)))

    [event] = owner.reported
    assert event == IsrExpanded(
        partition=TopicPartition("orders", 0),
        leader=ME,
        leader_epoch=7,
        partition_epoch=5,
        isr_before=(ME, SECOND),
        isr=(ME, SECOND, THIRD),
        joined=(THIRD,),
        replicas=(ME, SECOND, THIRD),
        min_isr=2,
    )
    assert owner.counters.isr_expands == 1


def test_an_expansion_that_ends_a_reassignment_is_told_as_it_was_made() -> None:
    """The controller drops the removed replicas and begins a leader epoch in the same change."""
    owner = ProposingLeader()

    owner.answer(ErrorCode.none, (ME, THIRD), 5, leader_epoch=8)

    assert owner.reported == [
        IsrExpanded(
            partition=TopicPartition("orders", 0),
            leader=ME,
            leader_epoch=8,
            partition_epoch=5,
            isr_before=(ME, SECOND),
            isr=(ME, THIRD),
            joined=(THIRD,),
            replicas=(ME, THIRD),
            min_isr=2,
        )
    ]


def test_an_expansion_that_ends_a_reassignment_away_from_its_leader_has_not_failed() -> None:
    owner = ProposingLeader()

    owner.answer(ErrorCode.new_leader_elected)
    owner.outgoing.image_changed(change_to(image_with((ME, SECOND, THIRD), 5)))

    assert owner.reported == [], "the controller tells of the election"
    assert (owner.counters.isr_expands, owner.counters.failed_isr_updates) == (1, 0)


def test_a_change_whose_answer_is_lost_is_told_once_when_the_image_shows_it() -> None:
    owner = ProposingLeader()
    request, resume = owner.asked.pop(0)
    resume(refusal(request, ErrorCode.request_timed_out))
    owner.outgoing.image_changed(change_to(image_with((ME, SECOND, THIRD), 5)))
    owner.outgoing.image_changed(change_to(image_with((ME, SECOND, THIRD), 6)))

    assert [event.kind for event in owner.reported] == ["isr_expand"]
    assert owner.counters.failed_isr_updates == 1


def test_a_change_that_was_refused_is_never_told() -> None:
    owner = ProposingLeader()
    owner.answer(ErrorCode.ineligible_replica)
    owner.outgoing.image_changed(change_to(image_with((ME, SECOND, THIRD), 9)))

    assert owner.reported == []


def test_one_that_the_controller_may_have_taken_out_itself_is_left_to_it_to_tell() -> None:
    owner = ProposingLeader()
    owner.answer(ErrorCode.none, (ME, SECOND, THIRD), 5)
    owner.write()
    owner.clock.now += 2_000
    owner.replica.step(LagChecked(1_000))
    owner.outgoing.image_changed(change_to(image_with((ME,), 6, fenced=SECOND)))
    assert len(owner.reported) == 1

    owner.answer(ErrorCode.none, (ME,), 6)

    shrunk = owner.reported[1]
    assert isinstance(shrunk, IsrShrunk)
    assert [(one.broker, one.reason) for one in shrunk.left] == [(THIRD, "stuck")]
    assert (shrunk.leader_end_offset, shrunk.high_watermark) == (1, 0)
