"""Connects replicas and their assignments to the rest of the broker.

For example, it starts an fsync, sends a proposal to the controller, or starts a coordinator.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from tidelog.controller.image.image import RECOVERING
from tidelog.log.results import ProducerSequence
from tidelog.model.ids import NodeId, Offset, TopicId, TopicPartition
from tidelog.model.replication_events import Truncated, UncleanLoss
from tidelog.node.clock import Clock
from tidelog.node.controller.broker_lifecycle import Lifecycle
from tidelog.node.controller.directory_reports import DirectoryReports
from tidelog.node.coordinators.coordinators import Coordinators
from tidelog.node.events.replication_events import ReplicationEvents
from tidelog.node.followers.fetchers import Fetchers
from tidelog.node.jobs import Jobs
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.partitions.isr_proposals import IsrProposals
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.storage.failed_directories import FailedDirectories
from tidelog.node.storage.storage import Storage
from tidelog.protocol.messages.broker_heartbeat import LogEndReport
from tidelog.replication.isr.leader import ProposeIsr

log = logging.getLogger(__name__)


class HostParts(NamedTuple):
    """The parts of the broker that a replica's host calls."""

    partitions: Partitions
    fetchers: Fetchers
    coordinators: Coordinators
    lifecycle: Lifecycle
    isr_proposals: IsrProposals
    directory_reports: DirectoryReports
    failed_directories: FailedDirectories


class ReplicaHost:
    def __init__(
        self,
        clock: Clock,
        jobs: Jobs,
        storage: Storage,
        current: CurrentImage,
        events: ReplicationEvents,
        parts: HostParts,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._storage = storage
        self._current = current
        self._events = events
        self._parts = parts

    # -- called by replicas ------------------------------------------------------------------------

    def start_flush(self, replica: Replica) -> None:
        files, up_to = replica.log.begin_flush(self._clock.now)
        replica.flushing, replica.flushing_since = True, self._clock.now

        def done() -> None:
            replica.flushed(up_to)
            self._parts.fetchers.flushed(replica)

        def failed(reason: str) -> None:
            # If the replica was deleted during the flush, its files are missing, which is not an
            # error.
            if self._parts.partitions.get(replica.partition) is replica:
                self.storage_failed(replica.partition, OSError(reason))

        self._jobs.sync(files, done, failed)

    def propose_isr(self, replica: Replica, proposal: ProposeIsr) -> None:
        proposals = self._parts.isr_proposals
        proposals.broker_epoch = self._parts.lifecycle.epoch
        proposals.propose(replica, proposal)

    def is_alive(self, broker: NodeId) -> bool:
        return self._current.image.is_active(broker)

    def truncated(self, replica: Replica, end: Offset, high_watermark: Offset) -> None:
        image, partition = self._current.image, replica.partition
        topic, placed = image.topics.get(partition.topic), image.partition(partition)
        if topic is None or placed is None or topic.topic_id != replica.topic_id:
            return  # the topic is deleted, and the replica is about to be closed
        self._events.record(
            Truncated(
                partition=partition,
                leader=placed.leader,
                leader_epoch=placed.leader_epoch,
                from_offset=end,
                to_offset=replica.log.log_end_offset,
                high_watermark=high_watermark,
            )
        )
        self._report_loss(replica, high_watermark)

    def removed(self, replica: Replica, batches: Sequence[ProducerSequence]) -> None:
        self._parts.partitions.refused.truncated(replica.partition, batches)

    def _report_loss(self, replica: Replica, committed: Offset) -> None:
        end = replica.log.log_end_offset
        if committed > end:
            log.error(
                "%s: committed records from offset %d to %d are lost",
                replica.partition,
                end,
                committed,
            )
            self._events.record(
                UncleanLoss(partition=replica.partition, from_offset=committed, to_offset=end)
            )

    # -- called when the image assigns partitions --------------------------------------------------

    def led(self, replica: Replica) -> None:
        """The replica has begun to lead."""
        placed = self._current.image.partition(replica.partition)
        if placed is not None and placed.leader_recovery_state == RECOVERING:
            self._report_loss(replica, replica.highest_watermark)
        self._parts.coordinators.lead(replica)

    def resigned(self, replica: Replica) -> None:
        """The replica no longer leads."""
        self._parts.coordinators.resign(replica.partition)

    def caught_up(self) -> None:
        """All partitions are in the state that the image requires."""
        self._storage.opened_all()
        self._parts.lifecycle.ask_to_be_unfenced()

    def damaged(self) -> None:
        """A log has lost records that the controller relies on."""
        self._parts.lifecycle.reregister_as_unclean()

    def located(self, topic_id: TopicId, partition: int, directory: UUID) -> None:
        """The replica is in this directory, but the controller knows a different directory."""
        self._parts.directory_reports.report(topic_id, partition, directory)

    def report_log_end(self, partition: TopicPartition, report: LogEndReport) -> None:
        """The partition has no leader, and its election needs this report (quorum rule)."""
        self._parts.lifecycle.report_log_end(partition, report)

    def forget_log_end(self, partition: TopicPartition) -> None:
        self._parts.lifecycle.forget_log_end(partition)

    def storage_failed(self, partition: TopicPartition, failure: OSError) -> None:
        self._parts.failed_directories.partition_failed(partition, failure)
