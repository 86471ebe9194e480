"""Opens a partition's directory: which segments there are, where the log ends, what state follows.

After a clean shutdown no batch is looked at but the last few. Otherwise the tail from the
recovery point on is scanned, and fsynced before anyone may read it: the page cache that survived
the process does not survive the machine, and a record once read must not vanish (F11).
"""

from collections.abc import Callable
from typing import NamedTuple

from tidelog.log import leftovers, names, replay
from tidelog.log.config import LogConfig
from tidelog.log.epochs import LeaderEpochs
from tidelog.log.producer_snapshots import SnapshotFiles
from tidelog.log.producers import ProducerStates
from tidelog.log.recovery import SegmentRecovery
from tidelog.log.results import Damage, Recovery
from tidelog.log.scan import BrokenChainError
from tidelog.log.segment import Segment
from tidelog.log.segment_list import SegmentList
from tidelog.model.disk import Disk
from tidelog.model.ids import Millis, Offset


class LoadedLog(NamedTuple):
    segments: SegmentList
    epochs: LeaderEpochs
    producers: ProducerStates
    snapshots: SnapshotFiles
    log_start_offset: Offset
    log_end_offset: Offset
    recovery: Recovery
    is_modified: bool
    """The files are not as a clean shutdown would leave them."""
    before_change: Callable[[], None]
    """To be called before they become so."""


class LogLoader:
    """Loads one log, once."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        config: LogConfig,
        now: Millis,
        recovery_point: Offset,
        log_start_offset: Offset,
        before_change: Callable[[], None],
    ) -> None:
        self._disk = disk
        self._before_change = before_change
        self._directory = directory
        self._config = config
        self._now = now
        self._recovery_point = recovery_point
        self._log_start = log_start_offset
        self._notes: list[str] = []
        self._without_index: list[Offset] = []
        is_new = disk.make_directory(directory)
        found = [] if is_new else leftovers.clear(disk, directory, before_change)
        self._segments = self._find_segments(found)
        has_epochs = names.LEADER_EPOCH_CHECKPOINT in found
        self._epochs = LeaderEpochs(disk, directory, is_on_disk=has_epochs)
        self._snapshots = SnapshotFiles(disk, directory, found)
        self._recovery = Recovery()
        self._is_modified = False

    def load(self, *, clean_shutdown: bool) -> LoadedLog:
        if self._segments:
            self._log_start = max(self._log_start, self._segments[0].base_offset)
        if not self._epochs.was_sound:
            self._note("the leader epochs were torn or garbage and are read from the batches")
        end = self._clean_end() if clean_shutdown else None
        if end is None:
            producers, end = self._recover()
        else:
            producers = self._state_before(self._segments, end)
        if end < self._log_start or not self._segments:
            end = self._start_over()
            producers = ProducerStates(end)
        self._epochs.truncate_from_end(end)
        self._epochs.truncate_from_start(self._log_start)
        self._snapshots.keep_only(self._log_start, end)
        return LoadedLog(
            SegmentList(self._segments),
            self._epochs,
            producers,
            self._snapshots,
            self._log_start,
            end,
            self._recovery._replace(notes=tuple(self._notes)),
            self._is_modified,
            self._before_change,
        )

    # -- after a clean shutdown

    def _clean_end(self) -> Offset | None:
        """The log end; None when the files are not as a clean shutdown leaves them."""
        if self._without_index:
            self._note(f"segment {self._without_index[0]} lacks an index")
            return None
        if not self._segments:
            return self._log_start
        try:
            end = self._segments[-1].next_offset()
        except BrokenChainError as broken:
            self._note(f"segment {self._segments[-1].base_offset}, {broken}")
            return None
        if end < self._recovery_point:
            self._note(f"the log ends at {end}, before its recovery point {self._recovery_point}")
            return None
        return end

    # -- after an unclean one

    def _recover(self) -> tuple[ProducerStates, Offset]:
        if not self._segments:
            return ProducerStates(self._log_start), self._log_start
        self._before_change()
        first = self._first_to_scan()
        sound, scanned = self._segments[:first], self._segments[first:]
        producers = self._state_before(sound, scanned[0].base_offset)
        replay.learn_epochs(sound, self._epochs)
        recovery = SegmentRecovery(self._config, self._recovery_point, self._epochs, producers)
        kept = recovery.run(scanned, self._snapshots)
        for segment in scanned[kept:]:
            segment.remove_files()
        self._segments = sound + scanned[:kept]
        self._epochs.write()
        self._sync(scanned[:kept], recovery)
        self._report(recovery)
        return producers, recovery.end_offset

    def _sync(self, scanned: list[Segment], recovery: SegmentRecovery) -> None:
        self._is_modified = True
        *sealed, active = scanned
        for segment in sealed:
            for file in segment.files():
                file.sync()
        if recovery.truncated_bytes or recovery.end_offset > self._recovery_point:
            active.file.sync()
            # The process that made these files may have ended before it synced their names.
            self._disk.sync_directory(self._directory)

    def _first_to_scan(self) -> int:
        """The segment with the recovery point, or an earlier one whose indexes do not fit it."""
        for number, segment in enumerate(self._segments[:-1]):
            if self._segments[number + 1].base_offset > self._recovery_point:
                return number
            if not segment.indexes_fit():
                self._note(f"an index of segment {segment.base_offset} is missing or wrong")
                return number
        return len(self._segments) - 1

    def _report(self, recovery: SegmentRecovery) -> None:
        damages = list(recovery.damages)
        end = recovery.end_offset
        if end < self._recovery_point and not any(d.end_offset > end for d in damages):
            damages.append(Damage(end, self._recovery_point, "the file is shorter than it was"))
        if recovery.truncated_bytes:
            self._note(f"cut {recovery.truncated_bytes} bytes behind offset {end}")
        for damage in damages:
            self._note(f"offsets {damage.first_offset} to {damage.end_offset}: {damage.reason}")
        self._recovery = Recovery(
            recovery.scanned_bytes, recovery.truncated_bytes, tuple(damages), ()
        )

    # -- both

    def _state_before(self, segments: list[Segment], end: Offset) -> ProducerStates:
        """Producers and epochs as the batches of these segments leave them."""
        # A file that is not there says nothing of a log that has records (F07).
        if not self._epochs.was_sound or not self._epochs.entries:
            replay.learn_epochs(segments, self._epochs)
            if self._epochs.entries:
                self._epochs.write()
        return replay.rebuild_producers(segments, self._snapshots, self._log_start, end)

    def _find_segments(self, found: list[str]) -> list[Segment]:
        """A segment per .log, in order; an index without one is removed."""
        kinds: dict[Offset, set[str]] = {}
        for name in found:
            parsed = names.segment_file(name)
            if parsed is not None:
                kinds.setdefault(parsed[0], set()).add(parsed[1])
        segments = []
        for base, suffixes in sorted(kinds.items()):
            segment = Segment(self._disk, self._directory, base, self._now)
            if names.LOG not in suffixes:
                segment.remove_files()
                continue
            segment.size = self._disk.size(segment.path(names.LOG))
            segments.append(segment)
            if segment.size and not suffixes >= {names.OFFSET_INDEX, names.TIME_INDEX}:
                self._without_index.append(base)
        return segments

    def _start_over(self) -> Offset:
        """An empty log at the log start: there was none, or all of it lies before that."""
        if self._segments:
            self._before_change()
            self._note(f"every record lies before the log start offset {self._log_start}")
            self._is_modified = True
        for segment in self._segments:
            segment.remove_files()
        self._epochs.clear()
        fresh = Segment(self._disk, self._directory, self._log_start, self._now)
        if self._log_start or self._segments:
            fresh.start()
        else:
            # A new log needs no file before its first record: a directory alone says the same.
            fresh.start_without_file()
        self._segments = [fresh]
        return self._log_start

    def _note(self, sentence: str) -> None:
        self._notes.append(f"{self._directory}: {sentence}")
