"""Changes of in-sync sets on their way to the controller: AlterPartition, one request at a time.

What the controller has surely not done is told as a refusal. Any other failure leaves open whether
it was done: an answer may have been lost on its way, and the repeated request then meets a later
partition epoch.
"""

from typing import Any

from kio.schema.alter_partition.v3.request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kio.schema.alter_partition.v3.response import PartitionData as Answer

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicId
from tidelog.node.lifecycle import Submit
from tidelog.node.replica import Replica
from tidelog.replication.isr.leader import (
    IsrAgreed,
    IsrRefused,
    IsrUnanswered,
    PartitionLeader,
    ProposeIsr,
)

_NOT_MADE = (ErrorCode.ineligible_replica, ErrorCode.operation_not_attempted)


class IsrProposals:
    def __init__(self, me: NodeId, submit: Submit) -> None:
        self._me = me
        self._submit = submit
        self._waiting: dict[Replica, tuple[LeaderEpoch, ProposeIsr]] = {}
        self._is_under_way = False
        self.broker_epoch: BrokerEpoch = -1

    def propose(self, replica: Replica, proposal: ProposeIsr) -> None:
        assert replica.leader is not None
        self._waiting[replica] = (replica.leader.epoch, proposal)
        self._send()

    def _send(self) -> None:
        if self._is_under_way or not self._waiting:
            return
        self._is_under_way = True
        asked, self._waiting = self._waiting, {}
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
            if replica.leader is None or replica.leader.epoch != epoch:
                continue
            answer = answers.get((replica.topic_id, replica.partition.partition))
            if response.error_code is ErrorCode.none and answer is not None:
                replica.step(_heard(answer, proposal, replica.leader))
            else:
                replica.step(IsrUnanswered(proposal.partition_epoch))
        self._send()


def _heard(
    answer: Answer, proposal: ProposeIsr, leader: PartitionLeader
) -> IsrAgreed | IsrRefused | IsrUnanswered:
    if answer.error_code in _NOT_MADE:
        return IsrRefused(proposal.partition_epoch)
    if answer.error_code is not ErrorCode.none:
        return IsrUnanswered(proposal.partition_epoch)
    return IsrAgreed(frozenset(answer.isr), leader.replicas, answer.partition_epoch, leader.minimum)
