"""The periodic work of a broker: retention, checkpoints, flushes, removal of old files."""

import logging
from collections.abc import Callable
from functools import partial

from tidelog.config.settings import BrokerSettings
from tidelog.model.ids import Millis, TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.controller.broker_lifecycle import Lifecycle
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.storage.storage import Storage
from tidelog.replication.isr.leader import LagChecked

PURGE_INTERVAL_MS = 1_000
CHORES_MS = 200
MENDED_AT_ONCE = 4_000
"""How many batch headers one turn reads to rebuild or confirm indexes, which takes about 10 ms."""

log = logging.getLogger(__name__)


class Housekeeping:
    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        storage: Storage,
        partitions: Partitions,
        storage_failed: Callable[[TopicPartition, OSError], None],
        lifecycle: Lifecycle,
        damaged: Callable[[Replica], None],
        verify: Callable[[Replica], None],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._timers = clock.timers
        self._storage = storage
        self._partitions = partitions
        self._storage_failed = storage_failed
        self._lifecycle = lifecycle
        self._damaged = damaged
        self._verify = verify

    def start(self) -> None:
        settings = self._settings
        checkpoint_ms = min(
            settings.replica_high_watermark_checkpoint_interval_ms,
            settings.log_flush_offset_checkpoint_interval_ms,
            settings.log_flush_start_offset_checkpoint_interval_ms,
        )
        self._every(settings.log_retention_check_interval_ms, self._apply_retention)
        self._every(checkpoint_ms, self._write_checkpoints)
        self._every(PURGE_INTERVAL_MS, self._purge)
        self._every(CHORES_MS, self._do_chores)
        self._every(CHORES_MS, self._look_after_writers)
        # Check twice per lag time, so that a slow replica leaves the in-sync set within 1.5 lag
        # times.
        self._every(max(1, settings.replica_lag_time_max_ms // 2), self._check_lag)

    def _every(self, interval: Millis, chore: Callable[[], None]) -> None:
        self._timers.at(self._clock.now + interval, partial(self._run, interval, chore))

    def _run(self, interval: Millis, chore: Callable[[], None]) -> None:
        chore()
        self._every(interval, chore)

    def _apply_retention(self) -> None:
        for replica in self._partitions:
            try:
                self._retain(replica)
            except OSError as failure:
                self._storage_failed(replica.partition, failure)

    def _retain(self, replica: Replica) -> None:
        deleted = replica.log.apply_retention(
            self._clock.now, replica.high_watermark, self._clock.settled_ms
        )
        if deleted:
            replica.has_chores = True
            replica.moved()
            log.info("%s: retention deleted %d segments", replica.partition, len(deleted))

    def _write_checkpoints(self) -> None:
        self._storage.write_checkpoints(self._partitions)

    def _purge(self) -> None:
        self._storage.purge(self._clock.now)

    def _check_lag(self) -> None:
        max_lag = self._settings.replica_lag_time_max_ms
        for replica in list(self._partitions):
            if replica.leader is None:
                continue
            replica.step(LagChecked(max_lag))
            # If a leader's flush takes longer than the lag limit of followers, it counts as a
            # failure (F33).
            if replica.is_flush_due and self._clock.now - replica.flushing_since > max_lag:
                late = OSError("an fsync has not ended within replica.lag.time.max.ms")
                self._storage_failed(replica.partition, late)

    def _look_after_writers(self) -> None:
        session_ms = self._settings.broker_session_timeout_ms
        self._partitions.fail_blocked_writes(session_ms if self._lifecycle.is_cut_off else None)

    def _do_chores(self) -> None:
        budget = MENDED_AT_ONCE
        for replica in self._partitions:
            if replica.has_chores or replica.log.is_upkeep_due:
                try:
                    if replica.log.is_upkeep_due and budget:
                        budget = self._repair(replica, budget)
                    replica.do_chores(self._clock.now)
                except OSError as failure:
                    self._storage_failed(replica.partition, failure)

    def _repair(self, replica: Replica, budget: int) -> int:
        """Repair a log's indexes and log warnings about them; returns the rest of `budget`."""
        self._verify(replica)
        left = replica.log.repair_indexes(budget)
        for note in replica.log.take_notes():
            log.warning("%s", note)
        if replica.log.retention_waits and not replica.log.is_upkeep_due:
            self._retain(replica)
        if replica.damaged_from is not None:
            self._damaged(replica)
        return left
