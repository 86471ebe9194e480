"""The half of a node that holds partitions: replicas, fetchers, groups, its life and its chores.

Invariant: nothing is led or followed before the image shows this run of the process.
"""

import logging
from collections.abc import Callable

from tidelog.api.groups.internal_topics import CONSUMER_OFFSETS
from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import RECOVERING, ClusterImage
from tidelog.model.dice import Dice
from tidelog.model.ids import NodeId, Offset, TopicId, TopicPartition
from tidelog.model.replication_events import Truncated, UncleanLoss
from tidelog.node.clock import Clock
from tidelog.node.controller.broker_lifecycle import Lifecycle, Submit
from tidelog.node.controller.directory_reports import DirectoryReports
from tidelog.node.controller.recently_fenced import RecentlyFencedBrokers
from tidelog.node.coordinators.coordinators import Coordinators
from tidelog.node.events.replica_states import ReplicaStates
from tidelog.node.events.replication_events import ReplicationEvents
from tidelog.node.followers.fetchers import Fetchers
from tidelog.node.jobs import Jobs
from tidelog.node.partitions.append_checks import AppendChecks, Hold
from tidelog.node.partitions.assignments import Assignments
from tidelog.node.partitions.deletions import Deletions
from tidelog.node.partitions.isr_proposals import IsrProposals
from tidelog.node.partitions.offset_queries import OffsetQueries
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.queries import Queries
from tidelog.node.partitions.read_replicas import ReadReplicas
from tidelog.node.partitions.replica import Replica
from tidelog.node.partitions.throttles import Throttles
from tidelog.node.peers import Peers
from tidelog.node.storage.failed_directories import FailedDirectories
from tidelog.node.storage.housekeeping import Housekeeping
from tidelog.node.storage.opening import home
from tidelog.node.storage.replica_moves import ReplicaMoves
from tidelog.node.storage.storage import Storage
from tidelog.node.storage.topic_history import TopicHistory
from tidelog.node.storage.verification import Verification
from tidelog.node.timers import Timers
from tidelog.replication.isr.leader import ProposeIsr

log = logging.getLogger(__name__)


class Broker:
    def __init__(
        self,
        settings: BrokerSettings,
        dice: Dice,
        clock: Clock,
        timers: Timers,
        storage: Storage,
        jobs: Jobs,
        hold: Hold,
        peers: Peers,
        submit: Submit,
        cluster_id: str,
        stop: Callable[[str], None],
        events: ReplicationEvents,
    ) -> None:
        self._clock = clock
        self._storage = storage
        self._jobs = jobs
        self._stop = stop
        self._events = events
        self._has_begun = False
        self.past = TopicHistory()
        self.image = ClusterImage()
        self._throttles = Throttles(settings.node_id, clock)
        read_replicas = ReadReplicas(settings.replica_selector_class, settings.broker_rack)
        self.partitions = Partitions(
            clock,
            timers,
            self._storage_failed,
            events.counters,
            read_replicas,
            self._throttles,
            AppendChecks(jobs, hold),
        )
        self.coordinators = Coordinators(
            settings, dice, clock, timers, self.partitions, self._offsets_partitions, jobs
        )
        self._assemble_replication(settings, timers, peers, submit)
        self.lifecycle = Lifecycle(settings, dice, clock, timers, submit, cluster_id, storage, stop)
        self.failed_directories = FailedDirectories(
            clock,
            timers,
            storage,
            settings.log_dirs,
            home(settings),
            take_offline=self._assignments.take_offline,
            tell=self.lifecycle.directory_failed,
            stop=stop,
        )
        self._assemble_housekeeping(settings, timers)
        self._assemble_queries(settings, timers)

    def _assemble_housekeeping(self, settings: BrokerSettings, timers: Timers) -> None:
        """What is done by the clock and in the background."""
        clock, jobs, storage_failed = self._clock, self._jobs, self._storage_failed
        self._housekeeping = Housekeeping(
            settings,
            clock,
            timers,
            self._storage,
            self.partitions,
            storage_failed,
            self.lifecycle,
            self._assignments.damage_found,
            Verification(clock, timers, jobs, self.partitions, storage_failed).add,
        )

    def _assemble_queries(self, settings: BrokerSettings, timers: Timers) -> None:
        """What answers questions about logs and directories."""
        clock, storage, jobs = self._clock, self._storage, self._jobs
        tell = self._events.tell
        self._replica_states = ReplicaStates(settings, clock, timers, self.partitions, tell)
        moves = ReplicaMoves(
            clock,
            timers,
            storage,
            self.partitions,
            jobs,
            settings.log_dirs,
            self._reports.report,
            self.failed_directories.directory_failed,
        )
        self.queries = Queries(self.partitions, storage, settings.log_dirs, moves)
        self.offset_queries = OffsetQueries(self.partitions, self._storage_failed, jobs)
        self.deletions = Deletions(clock, timers, self.partitions, self._storage_failed)

    def _assemble_replication(
        self, settings: BrokerSettings, timers: Timers, peers: Peers, submit: Submit
    ) -> None:
        """What brings each replica to what the image says of it, and keeps it there."""
        self._isr_proposals = IsrProposals(
            settings.node_id,
            submit,
            self._events.tell,
            self._events.counters,
            settings.socket_request_max_bytes,
        )
        self.departures = RecentlyFencedBrokers(self._clock, timers, lambda: self.image)
        self._fetchers = Fetchers(
            settings,
            self._clock,
            timers,
            peers,
            lambda: self.image,
            lambda: self.lifecycle.epoch_in(self.image),
            self._storage_failed,
            self._throttles,
            self.departures,
        )
        self._reports = DirectoryReports(
            settings.node_id,
            self._clock,
            timers,
            submit,
            lambda: self.lifecycle.epoch,
            settings.socket_request_max_bytes,
        )
        self._assignments = Assignments(
            settings,
            self._clock,
            timers,
            self._storage,
            self.partitions,
            self._fetchers,
            self,
            led=self._led,
            resigned=self._resigned,
            deleted=self.coordinators.partitions_deleted,
            caught_up=self._caught_up,
            damaged=lambda: self.lifecycle.reregister_as_unclean(),
            located=self._reports.report,
            storage_failed=self._storage_failed,
        )

    def start(self) -> None:
        self._housekeeping.start()
        self.lifecycle.register()
        if self._events.is_on:
            self._replica_states.start()

    def image_changed(self, old: ClusterImage, new: ClusterImage, *, by_records: bool) -> None:
        self.image = new
        if old.configs is not new.configs:
            self._throttles.configure(new)
        if not self._has_begun and not by_records and old.offset >= 0:
            self.past.snapshot_loaded(old, new)
        if self._has_begun:
            self._assignments.apply(old, new, by_records=by_records)
        elif self.lifecycle.is_registered_in(new):
            # Earlier images tell what an earlier run led and followed. With a log that may have
            # lost its tail this one would lead in the same epoch again: two values for one offset.
            self._has_begun = True
            self.lifecycle.is_willing = False
            self._assignments.sort_out_strays(new, self.past)
            self._assignments.apply(ClusterImage(), new, by_records=by_records)
        if old.brokers is not new.brokers:
            for replica in self.partitions:
                replica.settle_deletions()
        self.lifecycle.image_changed(new)
        self.departures.image_changed(old, new)
        self._isr_proposals.image_changed(new)

    def topic_removed(self, topic_id: TopicId, name: str) -> None:
        """Its data may be deleted where it is found on disk."""
        if not self._has_begun:
            self.past.removed[topic_id] = name

    def close(self) -> None:
        """Clean shutdown: nobody is coordinated any more, and every log is closed for good."""
        self.coordinators.resign_all()
        self._storage.close(self.partitions, self.lifecycle.epoch_in(self.image))

    # -- what replicas ask of their node -----------------------------------------------------------

    def start_flush(self, replica: Replica) -> None:
        files, up_to = replica.log.begin_flush(self._clock.now)
        replica.flushing, replica.flushing_since = True, self._clock.now

        def done() -> None:
            replica.flushed(up_to)
            self._fetchers.flushed(replica)

        def failed(reason: str) -> None:
            # The files of a replica that was deleted meanwhile may be gone, and nobody minds.
            if self.partitions.get(replica.partition) is replica:
                self._storage_failed(replica.partition, OSError(reason))

        self._jobs.sync(files, done, failed)

    def propose_isr(self, replica: Replica, proposal: ProposeIsr) -> None:
        self._isr_proposals.broker_epoch = self.lifecycle.epoch
        self._isr_proposals.propose(replica, proposal)

    def is_alive(self, broker: NodeId) -> bool:
        return self.image.is_active(broker)

    def truncated(self, replica: Replica, end: Offset, high_watermark: Offset) -> None:
        topic, placed = (
            self.image.topics.get(replica.partition.topic),
            self.image.partition(replica.partition),
        )
        if topic is None or placed is None or topic.topic_id != replica.topic_id:
            return  # deleted, and only its turn to be dropped has not come
        self._events.tell(
            Truncated(
                partition=replica.partition,
                leader=placed.leader,
                leader_epoch=placed.leader_epoch,
                from_offset=end,
                to_offset=replica.log.log_end_offset,
                high_watermark=high_watermark,
            )
        )
        self._tell_loss(replica, high_watermark)

    # -- what the parts ask of each other ----------------------------------------------------------

    def _caught_up(self) -> None:
        self._storage.forget_missing()
        self.lifecycle.ask_to_be_unfenced()

    def _tell_loss(self, replica: Replica, committed: Offset) -> None:
        end = replica.log.log_end_offset
        if committed > end:
            log.error(
                "%s: lost what was committed from %d to %d", replica.partition, end, committed
            )
            self._events.tell(
                UncleanLoss(partition=replica.partition, from_offset=committed, to_offset=end)
            )

    def _led(self, replica: Replica) -> None:
        placed = self.image.partition(replica.partition)
        if placed is not None and placed.leader_recovery_state == RECOVERING:
            self._tell_loss(replica, replica.highest_watermark)
        if replica.partition.topic == CONSUMER_OFFSETS:
            self.coordinators.lead(replica)

    def _resigned(self, replica: Replica) -> None:
        if replica.partition.topic == CONSUMER_OFFSETS:
            self.coordinators.resign(replica.partition.partition)

    def _offsets_partitions(self) -> int:
        topic = self.image.topics.get(CONSUMER_OFFSETS)
        return len(topic.partitions) if topic is not None else 0

    def _storage_failed(self, partition: TopicPartition, failure: OSError) -> None:
        self.failed_directories.partition_failed(partition, failure)
