"""The broker half of a node: replicas, fetchers, coordinators, registration and background work.

Invariant: the broker does not lead or follow any partition until the image contains the
registration of this process.
"""

import logging

from tidelog.api.groups.internal_topics import CONSUMER_OFFSETS
from tidelog.controller.image.image import RECOVERING, ClusterImage
from tidelog.model.ids import NodeId, Offset, TopicId, TopicPartition
from tidelog.model.replication_events import Truncated, UncleanLoss
from tidelog.node.clock import Clock
from tidelog.node.controller.broker_lifecycle import Lifecycle
from tidelog.node.controller.directory_reports import DirectoryReports
from tidelog.node.controller.recently_fenced import RecentlyFencedBrokers
from tidelog.node.coordinators.coordinators import Coordinators
from tidelog.node.events.replica_states import ReplicaStates
from tidelog.node.events.replication_events import ReplicationEvents
from tidelog.node.followers.fetchers import Fetchers
from tidelog.node.jobs import Jobs
from tidelog.node.partitions.assignments import Assignments
from tidelog.node.partitions.deletions import Deletions
from tidelog.node.partitions.isr_proposals import IsrProposals
from tidelog.node.partitions.offset_queries import OffsetQueries
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.queries import Queries
from tidelog.node.partitions.replica import Replica
from tidelog.node.partitions.throttles import Throttles
from tidelog.node.storage.failed_directories import FailedDirectories
from tidelog.node.storage.housekeeping import Housekeeping
from tidelog.node.storage.storage import Storage
from tidelog.node.storage.topic_history import TopicHistory
from tidelog.replication.isr.leader import ProposeIsr

log = logging.getLogger(__name__)


class Broker:
    """Connects the parts of the broker, which `assembly.build_broker` adds."""

    throttles: Throttles
    partitions: Partitions
    coordinators: Coordinators
    lifecycle: Lifecycle
    isr_proposals: IsrProposals
    recently_fenced: RecentlyFencedBrokers
    fetchers: Fetchers
    directory_reports: DirectoryReports
    assignments: Assignments
    failed_directories: FailedDirectories
    housekeeping: Housekeeping
    queries: Queries
    offset_queries: OffsetQueries
    deletions: Deletions
    replica_states: ReplicaStates

    def __init__(
        self, clock: Clock, storage: Storage, jobs: Jobs, events: ReplicationEvents
    ) -> None:
        self._clock = clock
        self._storage = storage
        self._jobs = jobs
        self._events = events
        self._has_begun = False
        self.past = TopicHistory()
        self.image = ClusterImage()

    def start(self) -> None:
        self.housekeeping.start()
        self.lifecycle.register()
        if self._events.is_on:
            self.replica_states.start()

    def image_changed(self, old: ClusterImage, new: ClusterImage, *, by_records: bool) -> None:
        self.image = new
        if old.configs is not new.configs:
            self.throttles.configure(new)
        if not self._has_begun and not by_records and old.offset >= 0:
            self.past.snapshot_loaded(old, new)
        if self._has_begun:
            self.assignments.apply(old, new, by_records=by_records)
        elif self.lifecycle.is_registered_in(new):
            # Begin only with this image. Earlier images assign leaderships to an earlier run of
            # this broker. The logs may have lost their last records since that run. If this run led
            # in the same leader epoch, two different records could get the same offset.
            self._has_begun = True
            self.lifecycle.may_be_unfenced = False
            self.assignments.sort_out_strays(new, self.past)
            self.assignments.apply(ClusterImage(), new, by_records=by_records)
        if old.brokers is not new.brokers:
            for replica in self.partitions:
                replica.settle_deletions()
        self.lifecycle.image_changed(new)
        self.recently_fenced.image_changed(old, new)
        self.isr_proposals.image_changed(new)

    def topic_removed(self, topic_id: TopicId, name: str) -> None:
        """Remember that the topic was deleted, so that its data on disk may be deleted."""
        if not self._has_begun:
            self.past.removed[topic_id] = name

    def close(self) -> None:
        """Shut down cleanly: end the work of all coordinators and close every log."""
        self.coordinators.resign_all()
        self._storage.close(self.partitions, self.lifecycle.epoch_in(self.image))

    # -- called by replicas ------------------------------------------------------------------------

    def start_flush(self, replica: Replica) -> None:
        files, up_to = replica.log.begin_flush(self._clock.now)
        replica.flushing, replica.flushing_since = True, self._clock.now

        def done() -> None:
            replica.flushed(up_to)
            self.fetchers.flushed(replica)

        def failed(reason: str) -> None:
            # If the replica was deleted meanwhile, its files are missing, which is not an error.
            if self.partitions.get(replica.partition) is replica:
                self.storage_failed(replica.partition, OSError(reason))

        self._jobs.sync(files, done, failed)

    def propose_isr(self, replica: Replica, proposal: ProposeIsr) -> None:
        self.isr_proposals.broker_epoch = self.lifecycle.epoch
        self.isr_proposals.propose(replica, proposal)

    def is_alive(self, broker: NodeId) -> bool:
        return self.image.is_active(broker)

    def truncated(self, replica: Replica, end: Offset, high_watermark: Offset) -> None:
        topic, placed = (
            self.image.topics.get(replica.partition.topic),
            self.image.partition(replica.partition),
        )
        if topic is None or placed is None or topic.topic_id != replica.topic_id:
            return  # the topic is deleted, and the replica is about to be closed
        self._events.record(
            Truncated(
                partition=replica.partition,
                leader=placed.leader,
                leader_epoch=placed.leader_epoch,
                from_offset=end,
                to_offset=replica.log.log_end_offset,
                high_watermark=high_watermark,
            )
        )
        self._report_loss(replica, high_watermark)

    # -- called by the parts -----------------------------------------------------------------------

    def caught_up(self) -> None:
        self._storage.opened_all()
        self.lifecycle.ask_to_be_unfenced()

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

    def led(self, replica: Replica) -> None:
        placed = self.image.partition(replica.partition)
        if placed is not None and placed.leader_recovery_state == RECOVERING:
            self._report_loss(replica, replica.highest_watermark)
        if replica.partition.topic == CONSUMER_OFFSETS:
            self.coordinators.lead(replica)

    def resigned(self, replica: Replica) -> None:
        if replica.partition.topic == CONSUMER_OFFSETS:
            self.coordinators.resign(replica.partition.partition)

    def offsets_partitions(self) -> int:
        topic = self.image.topics.get(CONSUMER_OFFSETS)
        return len(topic.partitions) if topic is not None else 0

    def storage_failed(self, partition: TopicPartition, failure: OSError) -> None:
        self.failed_directories.partition_failed(partition, failure)
