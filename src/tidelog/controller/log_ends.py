"""The log ends that brokers report for partitions without a leader, under the quorum rule (ADR 27).

Reports exist only in the memory of the active controller. Brokers repeat them in every heartbeat,
so a new controller starts without reports and soon has them all. Invariant: a report counts only
for the leader epoch that it names, and only while the process that sent it is the registered one.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from tidelog.controller.image.image import ClusterImage, PartitionImage
from tidelog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicId
from tidelog.protocol.messages.broker_heartbeat import LogEndReport
from tidelog.replication.quorum.state import LogEnd


class LogEnds(Protocol):
    """The view of the reports that a decision may use."""

    def of(
        self, image: ClusterImage, topic_id: TopicId, index: int, partition: PartitionImage
    ) -> dict[NodeId, LogEnd]:
        """The log ends of the partition's replicas, as far as they are known in this image."""


class LogEndReports:
    def __init__(self) -> None:
        self._reports: dict[
            NodeId, tuple[BrokerEpoch, Mapping[tuple[TopicId, int], LogEndReport]]
        ] = {}

    def received(
        self, broker: NodeId, broker_epoch: BrokerEpoch, reports: Iterable[LogEndReport]
    ) -> None:
        """Replace the reports of a broker by those of its newest heartbeat."""
        by_partition = {
            (one.topic_id, one.partition_index): one for one in reports if one.topic_id is not None
        }
        if by_partition:
            self._reports[broker] = (broker_epoch, by_partition)
        else:
            self._reports.pop(broker, None)

    def of(
        self, image: ClusterImage, topic_id: TopicId, index: int, partition: PartitionImage
    ) -> dict[NodeId, LogEnd]:
        if partition.has_leader:
            return {}
        found: dict[NodeId, LogEnd] = {}
        for replica in partition.replicas:
            broker = image.brokers.get(replica)
            epoch, reports = self._reports.get(replica, (-1, {}))
            report = reports.get((topic_id, index))
            if broker is None or broker.epoch != epoch or report is None:
                continue
            if _is_current(report, partition.leader_epoch):
                found[replica] = LogEnd(report.last_epoch, report.log_end_offset)
        return found


def _is_current(report: LogEndReport, leader_epoch: LeaderEpoch) -> bool:
    """Whether the broker had seen this leader epoch when it sent the report (F82).

    A broker that has not seen it may still acknowledge records to the previous leader.
    """
    return report.leader_epoch == leader_epoch


NO_LOG_ENDS: LogEnds = LogEndReports()
"""The reports of a controller that has received none."""
