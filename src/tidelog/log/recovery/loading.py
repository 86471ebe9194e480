"""Opens a partition's directory: which segments there are, where the log ends, what state follows.

After a clean shutdown only the last batches of each segment are looked at: the segments have to
follow each other and to end where the shutdown said (F54). Otherwise the tail from the recovery
point on is scanned, and fsynced before anyone may read it: the page cache that survived the process
does not survive the machine, and a record once read must not vanish (F11).
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from tidelog.log import names
from tidelog.log.checkpoints.epochs import LeaderEpochs
from tidelog.log.config import UNLIMITED, LogConfig
from tidelog.log.producers.producer_snapshots import SnapshotFiles
from tidelog.log.producers.producers import ProducerStates
from tidelog.log.recovery import continuity, damage_file, epoch_checks, leftovers, replay
from tidelog.log.recovery.continuity import ContinuityVerdict
from tidelog.log.recovery.recovery import SegmentRecovery
from tidelog.log.results import Damage, Recovery
from tidelog.log.segments.segment import Segment
from tidelog.log.segments.segment_list import SegmentList
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
    was_cleaned: bool
    """A cleaner may have taken records out of it."""
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
        recovery_point: Offset | None,
        log_start_offset: Offset,
        before_change: Callable[[], None],
        *,
        was_cleaned: bool,
    ) -> None:
        """Without a recovery point nobody knows how much of the log was durable."""
        self._disk = disk
        self._before_change = before_change
        self._directory = directory
        self._config = config
        self._now = now
        self._recovery_point = recovery_point
        self._log_start = log_start_offset
        self._notes: list[str] = []
        self._doubts: list[str] = []
        self._without_log: list[Offset] = []
        """Base offsets of segments of which everything but the log is there."""
        self._damages: list[Damage] = []
        is_new = disk.make_directory(directory)
        found: list[str] = []
        self._has_gaps = was_cleaned
        """Only a cleaner makes gaps: a policy that allows one is no reason to expect any."""
        if not is_new:
            found = self._clear_leftovers()
        self._segments = self._find_segments(found)
        self._known = (
            damage_file.read(disk, directory) if names.DAMAGE_CHECKPOINT in found else None
        )
        """Ranges that an earlier run found to be unreadable or lost."""
        self._has_epochs = names.LEADER_EPOCH_CHECKPOINT in found
        self._epochs = LeaderEpochs(disk, directory, is_on_disk=self._has_epochs)
        self._snapshots = SnapshotFiles(disk, directory, found)
        self._scanned_bytes = self._truncated_bytes = 0
        self._was_clean = False
        self._is_modified = False

    def _clear_leftovers(self) -> list[str]:
        is_compacted = self._has_gaps or self._config.is_compacted
        cleared = leftovers.clear(
            self._disk, self._directory, self._before_change, is_compacted=is_compacted
        )
        for note in cleared.notes:
            self._note(note)
        self._has_gaps = self._has_gaps or cleared.is_swapped
        return cleared.names

    def load(self, *, clean_shutdown: bool) -> LoadedLog:
        self._was_clean = clean_shutdown
        if clean_shutdown and self._recovery_point is None:
            self._doubt("no sound checkpoint says how far it was durable")
        elif not clean_shutdown:
            self._recovery_point = self._recovery_point or 0
        if not self._epochs.was_sound:
            self._note("the leader epochs were torn or garbage and are read from the batches")
        elif not self._has_epochs and (self._recovery_point or 0) > self._log_start:
            self._note("the leader epochs are missing and are read from the batches")
        self._find_start()
        producers, end = self._load_segments(clean_shutdown)
        promised = self._recovery_point or 0
        if max(end, self._log_start) < promised and not self._is_reported(end):
            self._damage(Damage(max(end, self._log_start), promised, "its end is missing"))
        for first, lost_to in self._known or ():
            if first >= end and not self._is_reported(first):
                self._damage(Damage(first, lost_to, "its end was found to be missing before"))
        if end < self._log_start or not self._segments:
            end = self._start_over()
            producers = ProducerStates(end)
        self._epochs.truncate_from_end(end)
        self._epochs.truncate_from_start(self._log_start)
        self._snapshots.keep_only(self._log_start, end)
        if self._damages or self._known is not None:
            damage_file.write(self._disk, self._directory, self._damages)
        for segment in self._segments:
            if segment.rebuild is not None:
                self._note(f"segment {segment.base_offset}: {segment.rebuild.reason}")
        return LoadedLog(
            SegmentList(self._segments),
            self._epochs,
            producers,
            self._snapshots,
            self._log_start,
            end,
            Recovery(
                self._scanned_bytes,
                self._truncated_bytes,
                tuple(self._damages),
                tuple(self._notes),
                tuple(self._doubts),
            ),
            self._has_gaps,
            self._is_modified,
            self._before_change,
        )

    def _load_segments(self, clean_shutdown: bool) -> tuple[ProducerStates, Offset]:
        """The log end, and the producers' state there, with as much of a scan as is needed."""
        first = len(self._segments) if clean_shutdown else self._segment_of(self._recovery_point)
        verdict = continuity.check(
            self._segments,
            first,
            has_gaps=self._has_gaps,
            recovery_point=self._recovery_point,
        )
        if verdict.problem is not None:
            self._doubt(verdict.problem)
        first = min(first, verdict.sound, self._first_known_damage())
        if clean_shutdown and first == len(self._segments):
            first = self._check_end(verdict)
        if first < len(verdict.tails):
            tails = verdict.tails[:first]
            verdict = ContinuityVerdict(
                first, self._segments[first].base_offset, tails, verdict.problem
            )
        self._check_epochs(verdict, is_all=first == len(self._segments))
        if first < len(self._segments):
            return self._recover(first, verdict)
        end = verdict.end if self._segments else self._log_start
        return self._state_before(self._segments, end), end

    def _check_end(self, verdict: ContinuityVerdict) -> int:
        """After a clean shutdown the log ends at its recovery point; where a scan has to begin."""
        point, end = self._recovery_point, verdict.end
        if point is None or end == point or not self._segments:
            return len(self._segments)
        where = "before" if end < point else "past"
        self._doubt(f"the log ends at {end}, {where} its recovery point {point}")
        return self._segment_of(min(end, point))

    def _segment_of(self, offset: Offset | None) -> int:
        bases = [segment.base_offset for segment in self._segments]
        return max(bisect_right(bases, offset or 0) - 1, 0)

    def _first_known_damage(self) -> int:
        if not self._known or not self._segments:
            return len(self._segments)
        return self._segment_of(min(first for first, _ in self._known))

    # -- where the log begins

    def _find_start(self) -> None:
        """The log start; the epochs know it as well as the checkpoint, and are written first."""
        first = self._segments[0].base_offset if self._segments else None
        entries = self._epochs.entries if self._epochs.was_sound else ()
        known = entries[0].start_offset if entries else None
        if known is not None and self._log_start > max(known, first or 0):
            self._doubt(
                f"its checkpointed log start offset {self._log_start} is past {known}, "
                "where its leader epochs begin, and is not used"
            )
            self._log_start = known
        if first is None:
            return
        if known is None:
            # Without epochs, an index that was left behind shows that there was a segment.
            known = min(self._without_log, default=None)
        missing_from = self._log_start if known is None else max(known, self._log_start)
        if known is not None and missing_from < first:
            self._damage(Damage(missing_from, first, "its first segments are missing"))
        self._log_start = max(self._log_start, first)

    # -- epochs

    def _check_epochs(self, verdict: ContinuityVerdict, *, is_all: bool) -> None:
        """Compare them with the last batch of each sound segment; rebuild them if they differ."""
        if verdict.sound == 0 or epoch_checks.fit_tails(self._epochs, verdict.tails):
            return
        if is_all and self._has_epochs:
            self._note("the leader epochs do not fit the batches and are read from them")
        epoch_checks.rebuild(self._epochs, self._segments[: verdict.sound], verdict.tails)

    # -- the scan

    def _recover(self, first: int, verdict: ContinuityVerdict) -> tuple[ProducerStates, Offset]:
        self._before_change()
        sound, scanned = self._segments[:first], self._segments[first:]
        start = scanned[0].base_offset if not sound else verdict.end
        producers = self._state_before(sound, start)
        recovery = SegmentRecovery(
            self._config,
            self._recovery_point,
            UNLIMITED if self._was_clean else self._recovery_point or 0,
            self._epochs,
            producers,
            has_gaps=self._has_gaps,
        )
        kept = recovery.run(sound[-1] if sound else None, start, scanned, self._snapshots)
        self._segments = sound + kept
        self._epochs.write()
        self._sync(kept, recovery)
        self._report(recovery)
        return producers, recovery.end_offset

    def _sync(self, scanned: list[Segment], recovery: SegmentRecovery) -> None:
        self._is_modified = True
        for segment in scanned[:-1]:
            for file in segment.files():
                file.sync()
        point = self._recovery_point
        if scanned and (recovery.truncated_bytes or point is None or recovery.end_offset > point):
            scanned[-1].file.sync()
            # The process that made these files may have ended before it synced their names.
            self._disk.sync_directory(self._directory)

    def _report(self, recovery: SegmentRecovery) -> None:
        for note in recovery.notes:
            self._note(note)
        if recovery.truncated_bytes:
            self._note(f"cut {recovery.truncated_bytes} bytes behind offset {recovery.end_offset}")
        for damage in recovery.damages:
            self._damage(damage)
        self._scanned_bytes, self._truncated_bytes = (
            recovery.scanned_bytes,
            recovery.truncated_bytes,
        )

    def _is_reported(self, offset: Offset) -> bool:
        return any(one.first_offset <= offset < one.end_offset for one in self._damages)

    # -- both

    def _state_before(self, segments: list[Segment], end: Offset) -> ProducerStates:
        """Producers as the batches of these segments leave them."""
        return replay.rebuild_producers(segments, self._snapshots, self._log_start, end)

    def _find_segments(self, found: list[str]) -> list[Segment]:
        """A segment per .log, in order; an index without one is removed."""
        kinds: dict[Offset, set[str]] = {}
        for name in found:
            parsed = names.segment_file(name)
            if parsed is not None:
                kinds.setdefault(parsed[0], set()).add(parsed[1])
        segments = []
        interval = self._config.index_interval_bytes
        for base, suffixes in sorted(kinds.items()):
            segment = Segment(self._disk, self._directory, base, self._now, interval)
            if names.LOG in suffixes:
                size = self._disk.size(segment.path(names.LOG))
                segment.size = segment.unread_to = size
                segments.append(segment)
                if size and not suffixes >= {names.OFFSET_INDEX, names.TIME_INDEX}:
                    segment.distrust_indexes("an index is missing")
                continue
            # Indexes without a log: what they speak of is missing, and they tell nobody more.
            self._without_log.append(base)
            for suffix in sorted(suffixes):
                self._disk.remove(segment.path(suffix))
        return segments

    def _start_over(self) -> Offset:
        """An empty log at the log start: there was none, or all of it lies before that."""
        had_segments = bool(self._segments)
        if had_segments:
            self._before_change()
            self._note(f"every record lies before the log start offset {self._log_start}")
            self._is_modified = True
        for segment in self._segments:
            if segment.size:
                self._note(f"segment {segment.base_offset} is kept as {segment.set_aside()}")
            else:
                segment.remove_files()
        self._epochs.clear()
        fresh = Segment(
            self._disk,
            self._directory,
            self._log_start,
            self._now,
            self._config.index_interval_bytes,
        )
        if self._log_start or had_segments:
            fresh.start()
        else:
            # A new log needs no file before its first record: a directory alone says the same.
            fresh.start_without_file()
        self._segments = [fresh]
        return self._log_start

    # -- what is told

    def _note(self, sentence: str) -> None:
        self._notes.append(f"{self._directory}: {sentence}")

    def _doubt(self, sentence: str) -> None:
        self._note(sentence)
        self._doubts.append(sentence)

    def _damage(self, damage: Damage) -> None:
        self._damages.append(damage)
        self._note(f"offsets {damage.first_offset} to {damage.end_offset}: {damage.reason}")
