"""Runs the log cleaner: one pass at a time, in jobs, over the log that is dirtiest.

A pass is cancelled if the log is truncated, moved, deleted or no longer on this broker. If a log
cannot be cleaned, it is marked, reported and skipped until the next start, so that the cleaner
still serves the other logs. While no log needs compaction, the cleaner only looks at the sizes of
the segments of compacted logs, every log.cleaner.backoff.ms.
"""

import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tidelog.config.settings import BrokerSettings
from tidelog.controller.configs.effective import broker_value
from tidelog.log.cleaner.cleaning_pass import CleanerLimits, CleaningPass, SliceDone
from tidelog.log.cleaner.selection import Cleanable
from tidelog.log.partition import PartitionLog
from tidelog.model.ids import Millis, TopicPartition
from tidelog.model.metrics import Metric
from tidelog.node.clock import Clock
from tidelog.node.events.cleaner_metrics import CleanerCounters, of_cleaner
from tidelog.node.jobs import Jobs
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.storage.storage import Storage

log = logging.getLogger(__name__)


class _Turn(NamedTuple):
    """The pass that is under way."""

    replica: Replica
    log: PartitionLog
    cleaning: CleaningPass
    began: Millis


class LogCleaner:
    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        jobs: Jobs,
        storage: Storage,
        partitions: Partitions,
        current: CurrentImage,
        storage_failed: Callable[[TopicPartition, OSError], None],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._jobs = jobs
        self._storage = storage
        self._partitions = partitions
        self._current = current
        self._storage_failed = storage_failed
        self._turn: _Turn | None = None
        self._job = 0
        self._is_closed = False
        self.uncleanable: dict[TopicPartition, str] = {}
        """The logs that cannot be cleaned, with the reason."""
        self.counters = CleanerCounters()

    def start(self) -> None:
        if self._settings.log_cleaner_enable:
            self._look_later()

    def close(self) -> None:
        """Cancel the pass that is under way, so that the next start finds no unfinished files."""
        self._is_closed = True
        self._give_up()

    def metrics(self) -> Iterator[Metric]:
        uncleanable = dict.fromkeys(self._settings.log_dirs, 0)
        for partition in self.uncleanable:
            if self._storage.holds(partition):
                place = self._storage.place_of(partition)
                uncleanable[self._settings.log_dirs[place]] += 1
        return of_cleaner(self.counters, uncleanable, self._clock.now)

    # -- choosing a log

    def _look_later(self) -> None:
        backoff_ms = self._number("log.cleaner.backoff.ms")
        self._clock.timers.at(self._clock.now + max(1, backoff_ms), self._look)

    def _look(self) -> None:
        """Begin a pass over the dirtiest log; if no log needs one, look again later."""
        if self._is_closed:
            return
        self.counters.looked_at = self._clock.now
        chosen = self._dirtiest()
        if chosen is None:
            self._look_later()
            return
        replica, cleanable = chosen
        try:
            cleaning = replica.log.begin_cleaning(cleanable, self._limits(), self._wall)
        except OSError as failure:
            self._storage_failed(replica.partition, failure)
            self._look_later()
            return
        self._turn = _Turn(replica, replica.log, cleaning, self._clock.now)
        self._go_on()

    def _dirtiest(self) -> tuple[Replica, Cleanable] | None:
        best: tuple[Replica, Cleanable] | None = None
        dirtiest, longest = 0, 0
        for replica in self._partitions:
            if not replica.log.config.is_compacted or replica.partition in self.uncleanable:
                continue
            cleaned_to = self._storage.cleaned_to(replica.partition)
            found = replica.log.find_cleanable(cleaned_to, replica.high_watermark, self._wall)
            dirtiest = max(dirtiest, found.dirty_millionths)
            longest = max(longest, found.overdue_ms)
            if found.is_due(replica.log.config) and (
                best is None or found.dirty_millionths > best[1].dirty_millionths
            ):
                best = replica, found
        self.counters.max_dirty_percent = dirtiest // 10_000
        self.counters.max_compaction_delay_ms = longest
        return best

    @property
    def _wall(self) -> Millis:
        """The time that decides about tombstones; a step of the clock counts after an hour."""
        return self._clock.now + self._clock.settled_ms

    def _limits(self) -> CleanerLimits:
        load = broker_value(
            self._current.image, self._settings, "log.cleaner.io.buffer.load.factor"
        )
        assert isinstance(load, float)
        size = self._number("log.cleaner.dedupe.buffer.size")
        return CleanerLimits(size, max(1, min(99, round(load * 100))))

    def _number(self, name: str) -> int:
        value = broker_value(self._current.image, self._settings, name)
        assert isinstance(value, int)
        return value

    # -- running a pass

    def _go_on(self) -> None:
        turn = self._turn
        if turn is None or self._is_closed:
            return
        if not self._is_current(turn):
            turn.cleaning.cancel()
        job = turn.cleaning.next_job()
        if job is not None:
            self._job = self._jobs.start(job, self._ended, self._failed)
            return
        self._turn = None
        if turn.cleaning.is_cancelled:
            log.info("%s: the log changed during its compaction", turn.replica.partition)
            self._look_later()
        else:
            self._complete(turn)
            self._look()

    def _is_current(self, turn: _Turn) -> bool:
        replica = turn.replica
        return self._partitions.get(replica.partition) is replica and replica.log is turn.log

    def _ended(self, result: SliceDone) -> None:
        turn = self._turn
        assert turn is not None
        if result.problem is not None:
            self._mark(turn.replica.partition, result.problem)
            self._give_up()
            self._look_later()
            return
        if self._is_current(turn):
            try:
                turn.cleaning.take(result, self._clock.now)
            except OSError as failure:
                self._turn = None
                self._storage_failed(turn.replica.partition, failure)
                self._look_later()
                return
            turn.replica.has_chores = True
        pause_ms = self._pause_after(result.bytes_read)
        if pause_ms:
            self._clock.timers.at(self._clock.now + pause_ms, self._go_on)
        else:
            self._go_on()

    def _pause_after(self, size: int) -> Millis:
        """How long log.cleaner.io.max.bytes.per.second makes the cleaner wait."""
        name = "log.cleaner.io.max.bytes.per.second"
        rate = broker_value(self._current.image, self._settings, name)
        assert isinstance(rate, float)
        return int(size * 1_000 / rate)

    def _failed(self, error: Exception) -> None:
        """Skip a log whose files cannot be read or written. Reads and appends report the disk."""
        turn = self._turn
        assert turn is not None
        if self._is_current(turn):
            self._mark(turn.replica.partition, str(error))
        self._give_up()
        self._look_later()

    def _mark(self, partition: TopicPartition, reason: str) -> None:
        self.uncleanable[partition] = reason
        log.warning("%s cannot be compacted and is skipped: %s", partition, reason)

    def _give_up(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            self._jobs.cancel(self._job)
            turn.cleaning.cancel()

    def _complete(self, turn: _Turn) -> None:
        cleaning, partition = turn.cleaning, turn.replica.partition
        if cleaning.cleaned_to <= cleaning.cleanable.first_dirty:
            self._mark(partition, "log.cleaner.dedupe.buffer.size cannot hold the keys of a batch")
            return
        self._storage.note_cleaned_to(partition, cleaning.cleaned_to)
        stats, took_ms = cleaning.stats, self._clock.now - turn.began
        self.counters.passed(stats.bytes_read, stats.bytes_written, took_ms)
        log.info(
            "%s: compacted %d bytes to %d in %d ms, up to offset %d",
            partition,
            stats.bytes_read,
            stats.bytes_written,
            took_ms,
            cleaning.cleaned_to,
        )
