"""Opens a partition's directory: finds its segments, its log end offset and its derived state.

Invariant: a record that power loss could still remove cannot be read (F11). After a clean shutdown
only the last batches of each segment are read. The segments must be contiguous, and the log must
end at the recovery point (F54). If the shutdown was not clean, the log is scanned and fsynced from
the recovery point on. The bytes after this point may be only in the page cache, which a power loss
would remove. If a check fails, the scan begins at the first segment that may be wrong. `LastStop`
shows whether power may have been lost.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from tidelog.log import names
from tidelog.log.checkpoints.epochs import LeaderEpochs
from tidelog.log.checkpoints.last_stop import LastStop
from tidelog.log.config import UNLIMITED, LogConfig
from tidelog.log.producers.producer_snapshots import SnapshotFiles
from tidelog.log.producers.producers import ProducerStates
from tidelog.log.recovery import continuity, damage_file, epoch_checks, leftovers, replay
from tidelog.log.recovery.continuity import ContinuityVerdict
from tidelog.log.recovery.recovery import SegmentRecovery
from tidelog.log.recovery.steps import OpeningSteps
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
    """Whether compaction may have removed records."""
    is_modified: bool
    """Whether the files have changed since a clean shutdown."""
    before_change: Callable[[], None]
    """The function to call before the files first change."""


class LogLoader:
    """Loads one log; each loader is used only once."""

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
        """`recovery_point` is None if the recovery point is unknown."""
        self._disk = disk
        self._before_change = before_change
        self._directory = directory
        self._config = config
        self._now = now
        self._recovery_point = recovery_point
        self._log_start = log_start_offset
        self._notes: list[str] = []
        self._doubts: list[str] = []
        self._suspicions: list[str] = []
        """Reasons to scan the log. If the scan does not find every record, the log may be
        incomplete, and these reasons are added to `_doubts`."""
        self._without_log: list[Offset] = []
        """Base offsets of segments whose log file is missing while other files exist."""
        self._damages: list[Damage] = []
        is_new = disk.make_directory(directory)
        found: list[str] = []
        self._has_gaps = was_cleaned
        """Whether compaction has run in this log. The cleanup policy alone does not allow a gap."""
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
        self._last_stop = LastStop.UNKNOWN
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

    def load(self, last_stop: LastStop) -> OpeningSteps[LoadedLog]:
        self._last_stop = last_stop
        if last_stop is not LastStop.CLEAN:
            self._recovery_point = self._recovery_point or 0
        elif self._recovery_point is None:
            self._doubt("no valid checkpoint contains its recovery point")
        if not self._epochs.was_sound:
            self._note("the leader epochs were torn or corrupt and are rebuilt from the batches")
        elif not self._has_epochs and self._had_epochs():
            self._note("the leader epochs are missing and are rebuilt from the batches")
        self._find_start()
        producers, end = yield from self._load_segments()
        promised = self._recovery_point or 0
        if max(end, self._log_start) < promised and not self._is_reported(end):
            self._damage(
                Damage(max(end, self._log_start), promised, "the end of the log is missing")
            )
        for first, lost_to in self._known or ():
            if first >= end and not self._is_reported(first):
                self._damage(
                    Damage(
                        first, lost_to, "an earlier start found that the end of the log is missing"
                    )
                )
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

    def _load_segments(self) -> OpeningSteps[tuple[ProducerStates, Offset]]:
        """Scan as little as possible; returns the producer state and the log end offset."""
        was_clean = self._last_stop is LastStop.CLEAN
        first = len(self._segments) if was_clean else self._segment_of(self._recovery_point)
        verdict = continuity.check(
            self._segments,
            first,
            has_gaps=self._has_gaps,
            recovery_point=self._recovery_point,
        )
        if verdict.problem is not None:
            self._suspect(verdict.problem)
        first = min(first, verdict.sound, self._first_known_damage())
        if was_clean and first == len(self._segments):
            first = self._check_end(verdict)
        if first < len(verdict.tails):
            tails = verdict.tails[:first]
            verdict = ContinuityVerdict(
                first, self._segments[first].base_offset, tails, verdict.problem
            )
        self._check_epochs(verdict, is_all=first == len(self._segments))
        if first < len(self._segments):
            producers, end = yield from self._recover(first, verdict)
        else:
            end = verdict.end if self._segments else self._log_start
            producers = self._state_before(self._segments, end)
        if not self._is_whole(end):
            self._doubts += self._suspicions
        return producers, end

    def _is_whole(self, end: Offset) -> bool:
        """Whether the log holds every record that it held when it was closed."""
        was_clean = self._last_stop is LastStop.CLEAN
        return was_clean and end == self._recovery_point and not self._damages

    def _check_end(self, verdict: ContinuityVerdict) -> int:
        """The index of the first segment to scan; the number of segments if no scan is needed."""
        point, end = self._recovery_point, verdict.end
        if point is None or end == point or not self._segments:
            return len(self._segments)
        where = "before" if end < point else "past"
        self._suspect(f"the log ends at {end}, {where} its recovery point {point}")
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
        """Set the log start offset from the checkpoint, the epochs and the first segment.

        Retention writes the epochs before it deletes segments. So if the epochs begin before the
        first segment, segments were lost, not deleted.
        """
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
            # There are no valid epochs, which would show where the log began. But an index whose
            # log file does not exist shows that a segment is missing.
            known = min(self._without_log, default=None)
        missing_from = self._log_start if known is None else max(known, self._log_start)
        if known is not None and missing_from < first:
            self._damage(Damage(missing_from, first, "the first segments are missing"))
        self._log_start = max(self._log_start, first)

    # -- leader epochs

    def _had_epochs(self) -> bool:
        """Whether the last process wrote records, and therefore must have written the epochs."""
        has_lost_nothing = self._last_stop is not LastStop.UNKNOWN
        return (self._recovery_point or 0) > self._log_start or (
            has_lost_nothing and any(segment.size for segment in self._segments)
        )

    def _check_epochs(self, verdict: ContinuityVerdict, *, is_all: bool) -> None:
        """Rebuild the epochs if they do not match the last batch of each valid segment."""
        if verdict.sound == 0 or epoch_checks.fit_tails(self._epochs, verdict.tails):
            return
        if is_all and self._has_epochs:
            self._note("the leader epochs do not match the batches and are rebuilt from them")
        epoch_checks.rebuild(self._epochs, self._segments[: verdict.sound], verdict.tails)

    # -- scanning and fsyncing the tail

    def _recover(
        self, first: int, verdict: ContinuityVerdict
    ) -> OpeningSteps[tuple[ProducerStates, Offset]]:
        self._before_change()
        sound, scanned = self._segments[:first], self._segments[first:]
        start = scanned[0].base_offset if not sound else verdict.end
        producers = self._state_before(sound, start)
        recovery = SegmentRecovery(
            self._config,
            self._recovery_point,
            self._recovery_point or 0 if self._last_stop is LastStop.UNKNOWN else UNLIMITED,
            self._epochs,
            producers,
            has_gaps=self._has_gaps,
        )
        last_sound = sound[-1] if sound else None
        kept = yield from recovery.steps(last_sound, start, scanned, self._snapshots)
        self._segments = sound + kept
        self._epochs.write()
        yield from self._sync(kept, recovery)
        self._report(recovery)
        return producers, recovery.end_offset

    def _sync(self, scanned: list[Segment], recovery: SegmentRecovery) -> OpeningSteps[None]:
        self._is_modified = True
        if files := tuple(file for segment in scanned[:-1] for file in segment.files()):
            yield files
        point = self._recovery_point
        if scanned and (recovery.truncated_bytes or point is None or recovery.end_offset > point):
            yield (scanned[-1].file,)
            # The process that created these files may have ended before it synced their names.
            self._disk.sync_directory(self._directory)

    def _report(self, recovery: SegmentRecovery) -> None:
        for note in recovery.notes:
            self._note(note)
        if recovery.truncated_bytes:
            self._note(
                f"truncated {recovery.truncated_bytes} bytes behind offset {recovery.end_offset}"
            )
        for damage in recovery.damages:
            self._damage(damage)
        self._scanned_bytes, self._truncated_bytes = (
            recovery.scanned_bytes,
            recovery.truncated_bytes,
        )

    def _is_reported(self, offset: Offset) -> bool:
        return any(one.first_offset <= offset < one.end_offset for one in self._damages)

    # -- segments and producers on disk

    def _state_before(self, segments: list[Segment], end: Offset) -> ProducerStates:
        """The producer state after the batches of these segments."""
        expired_before = self._now - self._config.producer_id_expiration_ms
        return replay.rebuild_producers(
            segments, self._snapshots, self._log_start, end, expired_before
        )

    def _find_segments(self, found: list[str]) -> list[Segment]:
        """Returns one segment per .log file, in order, and removes indexes without a .log file."""
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
            # Remember that the log file is missing, and remove its indexes, which are useless now.
            self._without_log.append(base)
            for suffix in sorted(suffixes):
                self._disk.remove(segment.path(suffix))
        return segments

    def _start_over(self) -> Offset:
        """Create an empty log at the log start offset, because no record lies at or past it."""
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
            # A new log needs only its directory until it gets its first record.
            fresh.start_without_file()
        self._segments = [fresh]
        return self._log_start

    # -- reporting findings

    def _note(self, sentence: str) -> None:
        self._notes.append(f"{self._directory}: {sentence}")

    def _suspect(self, sentence: str) -> None:
        self._note(sentence)
        self._suspicions.append(sentence)

    def _doubt(self, sentence: str) -> None:
        self._note(sentence)
        self._doubts.append(sentence)

    def _damage(self, damage: Damage) -> None:
        self._damages.append(damage)
        self._note(f"offsets {damage.first_offset} to {damage.end_offset}: {damage.reason}")
