"""Applies a new image to this node's partitions: opens, leads, follows or drops them.

Invariant: after `apply`, the node leads exactly the partitions that the image assigns to it, in the
image's leader epochs.
"""

import logging
from uuid import UUID

from tidelog.config.settings import BrokerSettings
from tidelog.controller.decide.quorum_topics import rule_of
from tidelog.controller.image.difference import diff
from tidelog.controller.image.image import (
    BROKER_RESOURCE,
    LOST_DIRECTORY,
    TOPIC_RESOURCE,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from tidelog.log.partition import PartitionLog
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.followers.fetchers import Fetchers
from tidelog.node.partitions.log_opening import LogOpening
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.quorum_replicas import (
    append_first_record,
    has_sound_peers,
    is_counted_on,
    log_end_report,
)
from tidelog.node.partitions.reconfiguring import Reconfiguring
from tidelog.node.partitions.replica import Replica
from tidelog.node.partitions.replica_host import ReplicaHost
from tidelog.node.partitions.topic_config import TopicConfig, TopicConfigs
from tidelog.node.storage.storage import Storage
from tidelog.node.storage.stray_replicas import StrayReplicas
from tidelog.node.storage.topic_history import TopicHistory
from tidelog.node.timers import Timer
from tidelog.replication.isr.leader import IsrAgreed
from tidelog.replication.rules import QUORUM, CommitRule

PARTITIONS_PER_TURN = 16
"""How many partitions to open, lead or follow before other events are handled."""

log = logging.getLogger(__name__)


class Assignments:
    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        opening: LogOpening,
        storage: Storage,
        partitions: Partitions,
        fetchers: Fetchers,
        host: ReplicaHost,
    ) -> None:
        self._me = settings.node_id
        self._configs = TopicConfigs(settings)
        self._clock = clock
        self._timers = clock.timers
        self._opening = opening
        self._storage = storage
        self._partitions = partitions
        self._fetchers = fetchers
        self._host = host
        self._behind: dict[TopicPartition, bool] = {}
        """Partitions to update. The value is True if committed records changed the partition, and
        False if a snapshot changed it.
        """
        self._reconfiguring = Reconfiguring(clock, partitions, self._configs, self._configure)
        self._lost: dict[TopicPartition, UUID] = {}
        """Replicas that have lost records, each with the directory id that was reported for it."""
        self._has_started = False
        """Whether every partition that the first image assigns to this node has been opened."""
        self._catching_up: Timer | None = None
        self._strays = StrayReplicas(
            self._me, clock, storage, self._configs, partitions.offline, host.located, host.damaged
        )

    def apply(self, old: ClusterImage, new: ClusterImage, *, by_records: bool) -> None:
        changes = diff(old, new)
        for topic in changes.deleted:
            gone = [TopicPartition(topic.name, index) for index in topic.partitions]
            self._behind.update(dict.fromkeys(gone, by_records))
            for partition in gone:
                if (replica := self._partitions.get(partition)) is not None:
                    # Stop the old replica now, because requests for a new topic of the same name
                    # may arrive while the old replica still exists.
                    self._resign(replica)
                    replica.moved()
        for change in changes.partitions:
            self._check_lost(change.partition, change.new)
            if self._me in change.new.replicas or change.partition in self._partitions:
                self._behind[change.partition] = by_records
        if changes.brokers:
            self._fetchers.brokers_changed()
        if self._catching_up is None:
            self._catch_up()
        for kind, name in changes.configs:
            if kind == TOPIC_RESOURCE:
                self._reconfiguring.changed([name])
            elif kind == BROKER_RESOURCE:
                self._reconfiguring.changed(new.topics)

    @property
    def is_behind(self) -> bool:
        """Whether some partitions are not yet in the state that the image requires."""
        return bool(self._behind)

    def _catch_up(self) -> None:
        """Update a few partitions per turn, so that requests are served between turns (F41)."""
        self._catching_up = None
        if self._opening.is_syncing:
            return
        for _ in range(min(len(self._behind), PARTITIONS_PER_TURN)):
            partition = next(iter(self._behind))
            try:
                is_done = self._bring_up(partition, self._behind[partition])
            except OSError as failure:
                is_done = True
                self._host.storage_failed(partition, failure)
            if not is_done:
                break
            del self._behind[partition]
        if self._opening.is_syncing:
            return
        if self._behind:
            self._catching_up = self._timers.at(self._clock.now + 1, self._catch_up)
        elif not self._lost:
            self._has_started = True
            self._host.caught_up()

    def _bring_up(self, partition: TopicPartition, by_records: bool) -> bool:
        """Update a partition to the newest image, even if an earlier image queued the update.

        Returns False if its log must first be opened, which takes more turns.
        """
        self._host.forget_log_end(partition)
        image = self._partitions.current.image
        topic, placed = image.topics.get(partition.topic), image.partition(partition)
        replica = self._partitions.get(partition)
        if replica is not None and (topic is None or topic.topic_id != replica.topic_id):
            self._drop(partition, by_records)
        if topic is None or placed is None or self._me not in placed.replicas:
            self._lost.pop(partition, None)
        self._forget_offline(partition, topic, placed)
        if topic is not None and placed is not None and self._me in placed.replicas:
            return self._place(partition, topic, placed)
        self._drop(partition, by_records)
        return True

    def take_offline(self, partition: TopicPartition) -> None:
        """Stop serving a partition whose log directory has failed."""
        self._host.forget_log_end(partition)
        image, replica = self._partitions.current.image, self._partitions.remove(partition)
        topic, placed = image.topics.get(partition.topic), image.partition(partition)
        if replica is not None:
            self._fetchers.drop(replica)
            replica.resign(ErrorCode.kafka_storage_error)
            self._host.resigned(replica)
        if topic is None or placed is None or self._me not in placed.replicas:
            return
        self._partitions.offline[partition] = topic.topic_id
        if placed.directory_of(self._me) != self._storage.directory_id(partition):
            # The controller does not know that the partition is in the failed directory, and would
            # count the replica as online.
            self._host.located(topic.topic_id, partition.partition, LOST_DIRECTORY)

    def _forget_offline(
        self, partition: TopicPartition, topic: TopicImage | None, placed: PartitionImage | None
    ) -> None:
        lost = self._partitions.offline.get(partition)
        if lost is None:
            return
        is_same_topic = topic is not None and topic.topic_id == lost
        if not is_same_topic or placed is None or self._me not in placed.replicas:
            del self._partitions.offline[partition]
            self._strays.let_go(partition)
            self._storage.forget_offline(partition)

    def sort_out_strays(self, image: ClusterImage, past: TopicHistory) -> None:
        """Handle the directories on disk that do not match the first image of this run."""
        for partition in self._storage.partitions():
            try:
                self._strays.sort_out(partition, image, past)
            except OSError as failure:
                self._host.storage_failed(partition, failure)

    # -- one partition -----------------------------------------------------------------------------

    def _drop(self, partition: TopicPartition, by_records: bool) -> None:
        self._opening.abandon()
        replica = self._partitions.remove(partition)
        if replica is not None:
            self._fetchers.drop(replica)
            replica.resign(ErrorCode.not_leader_or_follower)
            self._host.resigned(replica)
            if by_records:
                delay = replica.log.config.file_delete_delay_ms
                self._storage.delete(partition, self._clock.now, delay)
            else:
                self._strays.set_aside(partition, "is not placed here by the leader's snapshot")

    def _place(self, partition: TopicPartition, topic: TopicImage, placed: PartitionImage) -> bool:
        """Lead or follow the partition. Returns False while its log is being opened."""
        image = self._partitions.current.image
        replica = self._partitions.get(partition)
        assigned = placed.directory_of(self._me)
        if replica is None:
            if self._strays.is_held(partition, topic.topic_id) or self._storage.is_out_of_reach(
                partition, assigned
            ):
                self._opening.abandon()
                self._partitions.offline[partition] = topic.topic_id
                return True
            replica = self._opened(partition, topic, placed)
            if replica is None:
                return False
        if assigned != self._storage.directory_id(partition) and partition not in self._lost:
            directory = self._storage.directory_id(partition)
            self._host.located(topic.topic_id, partition.partition, directory)
        if placed.leader_epoch < replica.log.latest_epoch:
            # A starting node reads old images first. Ignore an image whose leader epoch is older
            # than the latest epoch in the log. Otherwise the replica would overwrite the log's
            # history of epochs.
            self._wait_for_later(replica)
        elif placed.leader == self._me:
            self._lead(replica, placed, self._configs.of(image, topic.name))
        else:
            self._follow(replica, placed, rule_of(image, topic.name))
        return True

    def _opened(
        self, partition: TopicPartition, topic: TopicImage, placed: PartitionImage
    ) -> Replica | None:
        """Take a step to open the log. Returns the replica if its log is open now."""
        config = self._configs.of(self._partitions.current.image, topic.name)
        assigned = placed.directory_of(self._me)
        opened = self._opening.step(
            partition, topic.topic_id, config.log, self._clock.now, assigned, self._catch_up
        )
        if opened is None:
            return None
        for note in opened.log.recovery.notes:
            log.warning("%s", note)
        self._judge(partition, placed, opened.log, opened.was_held)
        replica = Replica(
            partition,
            topic.topic_id,
            opened.log,
            self._storage.high_watermark(partition),
            self._clock,
            self._host,
        )
        replica.throttling = config.throttling(partition.partition, self._me)
        self._partitions.add(replica)
        return replica

    # -- replicas that have lost records -----------------------------------------------------------

    def _judge(
        self,
        partition: TopicPartition,
        placed: PartitionImage,
        opened: PartitionLog,
        was_held: bool,
    ) -> None:
        """Check the opened log, and report to the controller if the log has lost records (F54)."""
        recovery = opened.recovery
        is_counted_on = self._me in placed.isr or self._me in placed.elr
        if not was_held and not self._has_started and is_counted_on:
            log.warning("%s: its directory is missing", partition)
            self._host.damaged()
        elif not recovery.is_proven:
            self._host.damaged()
        is_last_leader = self._me in placed.last_known_elr
        if recovery.damages and len(placed.replicas) > 1 and (is_counted_on or is_last_leader):
            self._report_as_lost(partition)

    def damage_found(self, replica: Replica) -> None:
        """Leave the in-sync set, so that damaged records can be fetched from another replica."""
        image = self._partitions.current.image
        placed, rule = image.partition(replica.partition), rule_of(image, replica.partition.topic)
        if placed is None or replica.partition in self._lost:
            return
        if has_sound_peers(self._me, placed, image, rule):
            log.warning(
                "%s: leaves its in-sync set, to fetch its damaged records again", replica.partition
            )
            # Stop fetching first. Otherwise another fetch from the log end would add the replica to
            # the in-sync set again before its log is truncated.
            self._fetchers.drop(replica)
            self._report_as_lost(replica.partition)

    def _report_as_lost(self, partition: TopicPartition) -> None:
        """Report a log with lost records to the controller, so that this replica is not elected.

        The report assigns the replica to a directory that does not exist. The controller then
        removes the replica from the in-sync set and from the eligible leader replicas, and does not
        elect it as the last known leader. A later report assigns the replica to its real directory.
        """
        topic = self._partitions.current.image.topics[partition.topic]
        self._host.forget_log_end(partition)
        nowhere = UUID(int=self._storage.directory_id(partition).int ^ 1)
        self._lost[partition] = nowhere
        self._host.located(topic.topic_id, partition.partition, nowhere)

    def _check_lost(self, partition: TopicPartition, placed: PartitionImage) -> None:
        if self._lost and self._lost.get(partition) == placed.directory_of(self._me):
            del self._lost[partition]

    def _lead(self, replica: Replica, placed: PartitionImage, config: TopicConfig) -> None:
        assert placed.leader == self._me
        agreed = IsrAgreed(
            frozenset(placed.isr),
            frozenset(placed.replicas),
            placed.partition_epoch,
            config.least_in_sync(placed.replicas),
        )
        if replica.leader is not None and replica.leader.epoch == placed.leader_epoch:
            replica.step(agreed)
        else:
            self._fetchers.drop(replica)
            replica.log.accept_end()
            replica.lead(self._me, placed.leader_epoch, agreed, config.commit)
            self._host.led(replica)
            if config.commit is QUORUM:
                append_first_record(replica, self._clock)
        if replica.damaged_from is not None:
            # Leave the in-sync set, if another in-sync replica has an intact copy of the damaged
            # records.
            self.damage_found(replica)

    def _follow(self, replica: Replica, placed: PartitionImage, rule: CommitRule) -> None:
        self._resign(replica)
        if placed.has_leader:
            is_relied_on = is_counted_on(self._me, placed, rule)
            if replica.damaged_from is not None and not is_relied_on:
                log.warning(
                    "%s: truncated to offset %d, to fetch the records after it again",
                    replica.partition,
                    replica.damaged_from,
                )
                replica.drop_damaged(replica.damaged_from)
            if replica.partition not in self._lost:
                replica.log.accept_end()
            if replica.damaged_from is not None:
                self.damage_found(replica)
            if replica.damaged_from is None or replica.partition not in self._lost:
                self._fetchers.follow(replica, placed.leader, placed.leader_epoch)
        else:
            self._fetchers.drop(replica)
            is_sound = replica.damaged_from is None and replica.partition not in self._lost
            if rule is QUORUM and is_sound:
                report = log_end_report(replica, placed.leader_epoch)
                self._host.report_log_end(replica.partition, report)

    def _wait_for_later(self, replica: Replica) -> None:
        self._resign(replica)
        self._fetchers.drop(replica)

    def _resign(self, replica: Replica) -> None:
        if replica.leader is not None:
            replica.resign(ErrorCode.not_leader_or_follower)
            self._host.resigned(replica)

    def _configure(self, replica: Replica, placed: PartitionImage, config: TopicConfig) -> None:
        replica.log.update_config(config.log)
        replica.throttling = config.throttling(replica.partition.partition, self._me)
        leader = replica.leader
        # If the leader epoch has changed too, `_bring_up` updates the partition instead.
        if leader is not None and leader.epoch == placed.leader_epoch and placed.leader == self._me:
            self._lead(replica, placed, config)
