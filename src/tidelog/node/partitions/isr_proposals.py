"""Sends changes of in-sync sets to the controller: AlterPartition, one request at a time.

If it is certain that the controller has not made a change, the partition's leader gets IsrRefused.
After any other failure, the leader gets IsrUnanswered, because the outcome is unknown. For example,
the controller may have made the change, but its response was lost. In that case, a repeated request
fails, because the partition epoch has advanced.

For each change that was made, one replication event is recorded when the response confirms the
change. If the response was lost, the event is recorded when the image shows the change. No event is
recorded if the controller may have made the change by itself.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

from kio.schema.alter_partition.v3.request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kio.schema.alter_partition.v3.response import PartitionData as Answer

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicId, TopicPartition
from tidelog.model.replication_events import IsrExpanded, IsrShrunk, ReplicationEvent
from tidelog.node.controller.broker_lifecycle import Submit
from tidelog.node.events.counters import Counters
from tidelog.node.metadata.current_image import ImageChange
from tidelog.node.partitions.replica import Replica
from tidelog.replication.isr.leader import (
    IsrAgreed,
    IsrRefused,
    IsrUnanswered,
    PartitionLeader,
    ProposeIsr,
)

PARTITION_BYTES = 512
"""The maximum size of one partition in a request; each member of its in-sync set takes 13 bytes."""

_NOT_MADE = (ErrorCode.ineligible_replica, ErrorCode.operation_not_attempted)


class IsrProposals:
    def __init__(
        self,
        me: NodeId,
        submit: Submit,
        record: Callable[[ReplicationEvent], None],
        counters: Counters,
        request_bytes: int,
    ) -> None:
        self._me = me
        self._at_most = max(1, request_bytes // PARTITION_BYTES)
        """The maximum number of partitions in a request; a controller refuses longer requests."""
        self._submit = submit
        self._record = record
        self._counters = counters
        self._unrecorded: dict[TopicPartition, IsrShrunk | IsrExpanded] = {}
        """For each requested change, the event to record if the controller makes the change."""
        self._waiting: dict[Replica, tuple[LeaderEpoch, ProposeIsr]] = {}
        self._is_under_way = False
        self.broker_epoch: BrokerEpoch = -1

    def propose(self, replica: Replica, proposal: ProposeIsr) -> None:
        assert replica.leader is not None
        self._waiting[replica] = (replica.leader.epoch, proposal)
        self._unrecorded[replica.partition] = _change(replica.partition, replica.leader, proposal)
        self._send()

    def image_changed(self, change: ImageChange) -> None:
        """Record the changes that the image shows but that no response has confirmed yet."""
        image = change.new
        for partition, proposed in list(self._unrecorded.items()):
            placed = image.partition(partition)
            if placed is None or placed.leader_epoch > proposed.leader_epoch:
                continue  # only the response shows the outcome
            if placed.partition_epoch >= proposed.partition_epoch and set(placed.isr) == set(
                proposed.isr
            ):
                gone = set(proposed.isr_before) - set(proposed.isr)
                # If a removed replica is out of service, the controller itself may have removed it.
                if all(image.is_active(broker) for broker in gone):
                    self._made(partition)

    def _made(self, partition: TopicPartition, answer: Answer | None = None) -> None:
        change = self._unrecorded.pop(partition, None)
        if change is not None and answer is not None:
            change = _as_made(change, answer)
        if isinstance(change, IsrShrunk):
            self._counters.isr_shrinks += 1
            self._record(change)
        elif change is not None:
            self._counters.isr_expands += 1
            self._record(change)

    def _send(self) -> None:
        if self._is_under_way or not self._waiting:
            return
        self._is_under_way = True
        asked = dict(islice(self._waiting.items(), self._at_most))
        for replica in asked:
            del self._waiting[replica]
        topics: dict[TopicId, list[PartitionData]] = {}
        for replica, (epoch, proposal) in asked.items():
            topics.setdefault(replica.topic_id, []).append(self._data(replica, epoch, proposal))
        request = AlterPartitionRequest(
            broker_id=self._me,
            broker_epoch=self.broker_epoch,
            topics=tuple(
                TopicData(topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in topics.items()
            ),
        )
        self._submit(request, lambda response: self._answered(asked, response))

    def _data(self, replica: Replica, epoch: LeaderEpoch, proposal: ProposeIsr) -> PartitionData:
        return PartitionData(
            partition_index=replica.partition.partition,
            leader_epoch=epoch,
            new_isr_with_epochs=tuple(
                BrokerState(
                    broker_id=member.replica,
                    broker_epoch=self.broker_epoch
                    if member.replica == self._me
                    else member.broker_epoch,
                )
                for member in proposal.isr
            ),
            leader_recovery_state=0,
            partition_epoch=proposal.partition_epoch,
        )

    def _answered(
        self, asked: dict[Replica, tuple[LeaderEpoch, ProposeIsr]], response: Any
    ) -> None:
        self._is_under_way = False
        answers = {
            (topic.topic_id, partition.partition_index): partition
            for topic in response.topics
            for partition in topic.partitions
        }
        for replica, (epoch, proposal) in asked.items():
            answer = answers.get((replica.topic_id, replica.partition.partition))
            self._note(replica.partition, answer, proposal)
            if replica.leader is None or replica.leader.epoch != epoch:
                continue
            if response.error_code is ErrorCode.none and answer is not None:
                replica.step(_outcome(answer, proposal, replica.leader))
            else:
                replica.step(IsrUnanswered(proposal.partition_epoch))
        self._send()

    def _note(self, partition: TopicPartition, answer: Answer | None, asked: ProposeIsr) -> None:
        if answer is not None and answer.error_code is ErrorCode.new_leader_elected:
            # The change was made. It completed a reassignment that moves the leadership to another
            # broker.
            self._unrecorded.pop(partition, None)
            self._counters.isr_expands += 1
        elif answer is None or answer.error_code is not ErrorCode.none:
            self._counters.failed_isr_updates += 1
            if answer is not None and answer.error_code in _NOT_MADE:
                self._unrecorded.pop(partition, None)
        elif answer.partition_epoch > asked.partition_epoch:
            self._made(partition, answer)


def _change(
    partition: TopicPartition, leader: PartitionLeader, asked: ProposeIsr
) -> IsrShrunk | IsrExpanded:
    before = tuple(sorted(leader.isr))
    isr = tuple(member.replica for member in asked.isr)
    replicas = tuple(sorted(leader.replicas))
    if asked.left:
        return IsrShrunk(
            partition=partition,
            leader=leader.me,
            leader_epoch=leader.epoch,
            partition_epoch=asked.partition_epoch + 1,
            isr_before=before,
            isr=isr,
            left=asked.left,
            leader_end_offset=leader.end,
            high_watermark=leader.high_watermark,
            replicas=replicas,
            min_isr=leader.minimum,
        )
    return IsrExpanded(
        partition=partition,
        leader=leader.me,
        leader_epoch=leader.epoch,
        partition_epoch=asked.partition_epoch + 1,
        isr_before=before,
        isr=isr,
        joined=tuple(replica for replica in isr if replica not in before),
        replicas=replicas,
        min_isr=leader.minimum,
    )


def _as_made(change: IsrShrunk | IsrExpanded, answer: Answer) -> IsrShrunk | IsrExpanded:
    """The event of a change that was made.

    If the change completes a reassignment, drop the replicas that the reassignment removes.
    """
    removed = set(change.isr) - set(answer.isr)
    return replace(
        change,
        isr=tuple(broker for broker in change.isr if broker not in removed),
        replicas=tuple(broker for broker in change.replicas if broker not in removed),
        leader_epoch=answer.leader_epoch,
        partition_epoch=answer.partition_epoch,
    )


def _outcome(
    answer: Answer, proposal: ProposeIsr, leader: PartitionLeader
) -> IsrAgreed | IsrRefused | IsrUnanswered:
    if answer.error_code in _NOT_MADE:
        return IsrRefused(proposal.partition_epoch)
    if answer.error_code is not ErrorCode.none:
        return IsrUnanswered(proposal.partition_epoch)
    return IsrAgreed(frozenset(answer.isr), leader.replicas, answer.partition_epoch, leader.minimum)
