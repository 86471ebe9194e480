"""The share coordinators of this node, and the removal of records that they no longer need.

`__share_group_state` is not compacted. A snapshot makes the earlier records of its share partition
superfluous, and the leader removes those that no share partition needs, as Kafka does.
"""

from collections.abc import Callable

from tidelog.coordination.share_state.share_coordinator import ShareCoordinator, SnapshotSettings
from tidelog.model.ids import LeaderEpoch, TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.partitions.replica import Replica


class ShareCoordinators:
    def __init__(
        self,
        settings: SnapshotSettings,
        clock: Clock,
        storage_failed: Callable[[TopicPartition, OSError], None],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._storage_failed = storage_failed

    def new_machine(self, replica: Replica) -> ShareCoordinator:
        """The coordinator of a partition that this node has begun to lead."""
        assert replica.leader is not None
        machine = ShareCoordinator(self._settings)
        self._prune_later(replica, replica.leader.epoch, machine)
        return machine

    def _prune_later(self, replica: Replica, epoch: LeaderEpoch, machine: ShareCoordinator) -> None:
        due = self._clock.now + self._settings.prune_interval_ms
        self._clock.timers.at(due, lambda: self._prune(replica, epoch, machine))

    def _prune(self, replica: Replica, epoch: LeaderEpoch, machine: ShareCoordinator) -> None:
        if replica.leader is None or replica.leader.epoch != epoch:
            return
        before = min(machine.first_needed, replica.high_watermark)
        if before > replica.log.log_start_offset:
            try:
                replica.delete_before(before)
            except OSError as failure:
                self._storage_failed(replica.partition, failure)
        self._prune_later(replica, epoch, machine)
