"""Reports, records and repairs problems that are found in a log while it is in use.

Indexes are rebuilt from the batches, in steps. Broken batches cannot be repaired here. Their offset
range is not served, and it is written to `damage-checkpoint` for the next start.
"""

from contextlib import suppress

from tidelog.log.checkpoints.epochs import LeaderEpochs
from tidelog.log.indexes.index_repair import StillIndexing
from tidelog.log.recovery import damage_file, next_sound_batch
from tidelog.log.results import Damage
from tidelog.log.segments.segment import Segment
from tidelog.log.segments.segment_list import SegmentList
from tidelog.model.disk import Disk
from tidelog.model.ids import Offset


class Upkeep:
    __slots__ = ("_directory", "_disk", "_lost", "damages", "is_due", "notes")

    def __init__(
        self, disk: Disk, directory: str, damages: tuple[Damage, ...], end: Offset
    ) -> None:
        """`damages` are the ranges that loading found in a log that ends at `end`."""
        self._disk = disk
        self._directory = directory
        self.damages = tuple(one for one in damages if one.first_offset < end)
        """Ranges below the log end offset that cannot be read."""
        self._lost = tuple(one for one in damages if one.first_offset >= end)
        """Lost ranges at or past the log end offset."""
        self.notes: list[str] = []
        """Findings for the broker's own log, one sentence each."""
        self.is_due = True
        """Whether there may be notes to report, or indexes to rebuild or confirm."""

    def mark_due(self) -> None:
        self.is_due = True

    def take_notes(self) -> list[str]:
        taken, self.notes = self.notes, []
        return taken

    def note(self, sentence: str) -> None:
        self.notes.append(f"{self._directory}: {sentence}")
        self.is_due = True

    def broken(
        self,
        segment: Segment,
        offset: Offset,
        end: Offset,
        epochs: LeaderEpochs,
        *,
        has_gaps: bool,
    ) -> None:
        """Record the broken batches near `offset` in a segment that ends at `end`."""
        with suppress(StillIndexing):
            hole = next_sound_batch.find(segment, offset, end, epochs, has_gaps=has_gaps)
            if hole is None:
                return
            segment.add_hole(hole)
            damage = Damage(hole.first_offset, hole.end_offset, "the batches are broken")
            self.damages = (*self.damages, damage)
            self._write()
            self.note(
                f"offsets {damage.first_offset} to {damage.end_offset} cannot be read: "
                f"{segment.path('.log')} is damaged at position {hole.position}"
            )

    def truncated(self, end: Offset) -> None:
        """Drop the damage at or past the new log end offset."""
        kept = tuple(one for one in self.damages if one.first_offset < end)
        if len(kept) < len(self.damages):
            self.damages = kept
            self._write()

    def accept_end(self) -> None:
        if self._lost:
            self._lost = ()
            self._write()

    def _write(self) -> None:
        damage_file.write(self._disk, self._directory, (*self.damages, *self._lost))

    def repair_indexes(
        self,
        segments: SegmentList,
        end: Offset,
        budget: int,
        epochs: LeaderEpochs,
        *,
        has_gaps: bool,
    ) -> int:
        """Scan up to `budget` headers to rebuild or confirm indexes.

        Returns the unused budget, or 0 while work is left.
        """
        for number, segment in enumerate(segments):
            rebuild = segment.rebuild
            if rebuild is None:
                continue
            walked = rebuild.walked
            if not rebuild.step(budget):
                self.is_due = True
                return 0
            budget = max(1, budget - rebuild.walked + walked)
            wrong = segment.end_rebuild()
            if wrong is not None:
                base = segment.base_offset
                self.note(f"segment {base}: {wrong}; the indexes were rebuilt from its batches")
            if rebuild.broken is not None:
                broken_at, ends = rebuild.broken.next_offset, segments.end_of(number, end)
                self.broken(segment, broken_at, ends, epochs, has_gaps=has_gaps)
        self.is_due = False
        return budget
