"""Runs the log cleaner: one pass at a time, in jobs, over the log that is dirtiest.

A pass is cancelled if the log is truncated, moved, deleted or no longer on this broker. The result
of a job counts only if the pass is still valid. If a log cannot be cleaned, it is marked, reported
and skipped until it is opened again, so that the cleaner still serves the other logs. A full disk
marks no log, because compaction frees space.

Every log.cleaner.backoff.ms, the cleaner looks at the sizes of the segments of compacted logs, a
few logs at a time. The dirty logs wait in a queue, the dirtiest first. The state of a log is read
again when its turn comes.
"""

import errno
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from tidelog.config.settings import BrokerSettings
from tidelog.controller.configs.effective import broker_value
from tidelog.log.cleaner.cleaning_pass import (
    CleanerLimits,
    CleaningPass,
    SliceDone,
    SyncDirectory,
)
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

LOOKED_AT_ONCE = 200
"""How many logs one event examines, which takes about two milliseconds."""
_FULL = (errno.ENOSPC, errno.EDQUOT)

log = logging.getLogger(__name__)


class _Turn(NamedTuple):
    """The pass that is under way."""

    replica: Replica
    log: PartitionLog
    cleaning: CleaningPass
    began: Millis


class _Uncleanable(NamedTuple):
    log: PartitionLog
    reason: str


class _Survey:
    """An examination of all compacted logs."""

    __slots__ = ("dirtiest", "due", "left", "longest_ms")

    def __init__(self, replicas: Iterator[Replica]) -> None:
        self.left = deque(replicas)
        self.due: list[tuple[int, Replica]] = []
        """The logs that need compaction, each with its share of dirty bytes."""
        self.dirtiest = 0
        self.longest_ms: Millis = 0

    def add(self, replica: Replica, found: Cleanable) -> None:
        self.dirtiest = max(self.dirtiest, found.dirty_millionths)
        self.longest_ms = max(self.longest_ms, found.overdue_ms)
        if found.is_due(replica.log.config):
            self.due.append((found.dirty_millionths, replica))

    def by_dirtiness(self) -> deque[Replica]:
        return deque(one for _, one in sorted(self.due, key=lambda due: -due[0]))


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
        self._queue: deque[Replica] = deque()
        """The logs that wait for a pass."""
        self._turn: _Turn | None = None
        self._job = 0
        self._is_syncing = False
        self._is_closed = False
        self._marked: dict[TopicPartition, _Uncleanable] = {}
        self.counters = CleanerCounters()

    def start(self) -> None:
        if self._settings.log_cleaner_enable:
            self._look_later()

    def close(self) -> None:
        """Cancel the pass that is under way, so that the next start finds no unfinished files."""
        self._is_closed = True
        self._give_up()

    @property
    def uncleanable(self) -> dict[TopicPartition, str]:
        """The logs that cannot be cleaned, with the reason."""
        held = self._marked.items()
        return {
            one: mark.reason for one, mark in held if self._is_marked(self._partitions.get(one))
        }

    def _is_marked(self, replica: Replica | None) -> bool:
        mark = None if replica is None else self._marked.get(replica.partition)
        return mark is not None and replica is not None and mark.log is replica.log

    def metrics(self) -> Iterator[Metric]:
        uncleanable = dict.fromkeys(self._settings.log_dirs, 0)
        for partition in self.uncleanable:
            place = self._storage.place_of(partition)
            uncleanable[self._settings.log_dirs[place]] += 1
        return of_cleaner(self.counters, uncleanable, self._clock.now)

    # -- choosing a log

    def _look_later(self) -> None:
        backoff_ms = self._number("log.cleaner.backoff.ms")
        self._clock.timers.at(self._clock.now + max(1, backoff_ms), self._look)

    def _look(self) -> None:
        """Find the logs that need compaction, then begin a pass over the dirtiest."""
        self._marked = {one: self._marked[one] for one in self.uncleanable}
        self._survey(_Survey(iter(self._partitions)))

    def _survey(self, survey: _Survey) -> None:
        if self._is_closed:
            return
        for _ in range(min(LOOKED_AT_ONCE, len(survey.left))):
            replica = survey.left.popleft()
            found = self._examined(replica)
            if found is not None:
                survey.add(replica, found)
        if survey.left:
            self._clock.timers.at(self._clock.now + 1, lambda: self._survey(survey))
            return
        self.counters.looked_at = self._clock.now
        self.counters.max_dirty_percent = survey.dirtiest // 10_000
        self.counters.max_compaction_delay_ms = survey.longest_ms
        self._queue = survey.by_dirtiness()
        self._begin_next()

    def _examined(self, replica: Replica) -> Cleanable | None:
        """What a pass would clean; None if the log is not compacted, marked or gone."""
        log = replica.log
        if not log.config.is_compacted or self._partitions.get(replica.partition) is not replica:
            return None
        if self._is_marked(replica):
            return None
        cleaned_to = self._storage.cleaned_to(replica.partition)
        try:
            return log.find_cleanable(cleaned_to, replica.high_watermark, self._wall)
        except OSError as failure:
            self._storage_failed(replica.partition, failure)
            return None

    def _begin_next(self) -> None:
        """Begin a pass over the next log in the queue; if there is none, look again later."""
        while self._queue:
            replica = self._queue.popleft()
            found = self._examined(replica)
            if found is None or not found.is_due(replica.log.config):
                continue
            try:
                cleaning = replica.log.begin_cleaning(found, self._limits(), self._wall)
            except OSError as failure:
                self._storage_failed(replica.partition, failure)
                continue
            self._turn = _Turn(replica, replica.log, cleaning, self._clock.now)
            self._go_on()
            return
        self._look_later()

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
            turn.cleaning.abandon()
        try:
            job = turn.cleaning.next_job()
        except OSError as failure:
            self._fail_directory(turn, failure)
            return
        if job is not None:
            self._is_syncing = isinstance(job, SyncDirectory)
            self._job = self._jobs.start(job, self._ended, self._failed)
            return
        self._turn = None
        if turn.cleaning.is_cancelled:
            log.info("%s: the log changed during its compaction", turn.replica.partition)
        else:
            self._complete(turn)
            self._queue.append(turn.replica)  # the map may have been too small for all keys
        self._begin_next()

    def _is_current(self, turn: _Turn) -> bool:
        replica = turn.replica
        return self._partitions.get(replica.partition) is replica and replica.log is turn.log

    def _is_valid(self, turn: _Turn) -> bool:
        """Whether the result of a job of this pass may be used."""
        return self._is_current(turn) and not turn.cleaning.is_cancelled

    def _ended(self, result: SliceDone) -> None:
        turn = self._turn
        assert turn is not None
        if self._is_valid(turn):
            if result.problem is not None:
                self._mark(turn, result.problem)
                self._give_up()
                self._begin_next()
                return
            try:
                turn.cleaning.take(result, self._clock.now)
            except OSError as failure:
                self._fail_directory(turn, failure)
                return
            turn.replica.has_chores = True
        pause_ms = self._pause_after(result.bytes_moved)
        if pause_ms:
            self._clock.timers.at(self._clock.now + pause_ms, self._go_on)
        else:
            self._go_on()

    def _fail_directory(self, turn: _Turn, failure: OSError) -> None:
        """End a pass whose files cannot be created, renamed or made durable."""
        self._turn = None
        turn.cleaning.abandon()
        self._storage_failed(turn.replica.partition, failure)
        self._look_later()

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
        if self._is_valid(turn):
            if self._is_syncing and isinstance(error, OSError):
                self._fail_directory(turn, error)
                return
            if isinstance(error, OSError) and error.errno in _FULL:
                log.warning("%s is compacted later: %s", turn.replica.partition, error)
                self._give_up()
                self._look_later()
                return
            self._mark(turn, str(error))
        self._give_up()
        self._begin_next()

    def _mark(self, turn: _Turn, reason: str) -> None:
        partition = turn.replica.partition
        self._marked[partition] = _Uncleanable(turn.log, reason)
        log.warning("%s cannot be compacted and is skipped: %s", partition, reason)

    def _give_up(self) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        self._jobs.cancel(self._job)
        if self._is_current(turn):
            with suppress(OSError):  # the next start removes the files
                turn.cleaning.cancel()
        else:
            turn.cleaning.abandon()

    def _complete(self, turn: _Turn) -> None:
        cleaning, partition = turn.cleaning, turn.replica.partition
        if cleaning.cleaned_to <= cleaning.cleanable.first_dirty:
            self._mark(turn, "log.cleaner.dedupe.buffer.size cannot hold the keys of a batch")
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
