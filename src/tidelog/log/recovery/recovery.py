"""Scans segments that may be invalid, and builds a contiguous log from them or reports damage.

Invariant: if power may have been lost, the log is truncated at the first invalid bytes at or past
the recovery point, because the bytes after them may be older. Any other invalid bytes are damage to
records that may have been acknowledged. This damage is reported, and valid batches after it are
kept. A segment that does not fit at its base offset is set aside, not deleted.
"""

from tidelog.log.checkpoints.epochs import LeaderEpochs
from tidelog.log.config import LogConfig
from tidelog.log.producers.producer_snapshots import SnapshotFiles
from tidelog.log.producers.producers import ProducerStates
from tidelog.log.recovery import next_sound_batch, replay
from tidelog.log.recovery.continuity import misplaced
from tidelog.log.recovery.steps import OpeningSteps
from tidelog.log.results import Damage
from tidelog.log.segments import scan
from tidelog.log.segments.rolling import MAX_RELATIVE_OFFSET
from tidelog.log.segments.scan import BrokenChainError, Hole
from tidelog.log.segments.segment import Segment
from tidelog.model.ids import NO_EPOCH, LeaderEpoch, Offset
from tidelog.protocol.records.batch import BatchHeader

STEP_BYTES = 4 * 1024 * 1024
BATCH_COST = 8 * 1024
"""A step ends after `STEP_BYTES`. Each batch counts as this many bytes more, because the time also
depends on the number of batches. So a step takes a few milliseconds.
"""


class SegmentRecovery:
    """One pass over the segments of a log, in order."""

    def __init__(
        self,
        config: LogConfig,
        recovery_point: Offset | None,
        durable_to: Offset,
        epochs: LeaderEpochs,
        producers: ProducerStates,
        *,
        has_gaps: bool,
    ) -> None:
        """All writes below `durable_to` reached the disk, so invalid bytes below it are damage. If
        power may have been lost, `durable_to` is the recovery point. Otherwise it is unlimited.
        """
        self._config = config
        self._recovery_point = recovery_point
        self._durable_to = durable_to
        self._has_gaps = has_gaps
        self._epochs = epochs
        self._producers = producers
        self._epoch: LeaderEpoch = NO_EPOCH
        self._step_cost = 0
        self.end_offset: Offset = 0
        self.scanned_bytes = 0
        self.truncated_bytes = 0
        self.damages: list[Damage] = []
        self.notes: list[str] = []

    def steps(
        self, before: Segment | None, end: Offset, segments: list[Segment], files: SnapshotFiles
    ) -> OpeningSteps[list[Segment]]:
        """Recover the segments after `before`, which ends at `end`; returns the kept segments."""
        kept: list[Segment] = []
        self.end_offset = end
        previous = before
        for number, segment in enumerate(segments):
            if previous is not None and not self._follows(previous, segment):
                if self._log_ends_before(segment):
                    self._drop(segments[number:])
                    break
                self._set_aside(segment)
                continue
            if previous is not None and kept:
                previous.seal()
                files.write(segment.base_offset, self._producers.entries)
            kept.append(segment)
            previous = segment
            rest = segments[number + 1 :]
            is_cut = yield from self._recover(segment, next(filter(self._proves_reach, rest), None))
            if is_cut:
                self._drop(rest)
                break
        return kept

    # -- between two segments

    def _follows(self, previous: Segment, segment: Segment) -> bool:
        """Whether the segment continues the log. If durable offsets are missing before the segment,
        they are recorded as a hole."""
        end, base = self.end_offset, segment.base_offset
        known = self._recovery_point
        if misplaced(segment, end, has_gaps=self._has_gaps, recovery_point=known) is None:
            return True
        is_promised = end < base and end < self._durable_to
        if not is_promised or self._has_gaps or not self._starts_at_base(segment):
            return False
        self.damages.append(Damage(end, base, "a segment is missing, or shorter than it was"))
        previous.holes += (Hole(previous.size, previous.size, end, base),)
        return True

    def _log_ends_before(self, segment: Segment) -> bool:
        """Whether the log ends before the segment, because no later offset was durable."""
        return self.end_offset >= self._durable_to and segment.base_offset > self.end_offset

    def _starts_at_base(self, segment: Segment) -> bool:
        """Whether the segment begins at its base offset, or is empty below the recovery point."""
        if not segment.size:
            known = self._recovery_point
            return known is not None and segment.base_offset <= known
        first = segment.header_at(0)
        return first is not None and first.base_offset == segment.base_offset

    def _proves_reach(self, segment: Segment) -> bool:
        """Whether the segment proves that the log once reached it, so a gap before it is a hole."""
        return (self._has_gaps and segment.size > 0) or self._starts_at_base(segment)

    def _set_aside(self, segment: Segment) -> None:
        path = segment.set_aside()
        self.notes.append(
            f"segment {segment.base_offset} does not follow offset {self.end_offset}: "
            f"it is kept as {path}"
        )

    def _drop(self, segments: list[Segment]) -> None:
        """Drop segments past the log's end: remove empty ones, and set aside those with records."""
        for segment in segments:
            self.truncated_bytes += segment.size
            if segment.size:
                self._set_aside(segment)
            else:
                segment.remove_files()

    # -- inside one segment

    def _recover(self, segment: Segment, following: Segment | None) -> OpeningSteps[bool]:
        """Scan one segment and rebuild its indexes; returns whether its tail was cut."""
        segment.reset_indexes()
        self.end_offset = segment.base_offset
        if self.end_offset < self._durable_to:
            # A wrong epoch at the end of one segment must not invalidate the next segment.
            self._epoch = NO_EPOCH
        self.scanned_bytes += segment.size
        position, size = 0, segment.size
        found: list[Hole] = []
        while position < size:
            try:
                yield from self._take(segment, position, size, following)
                break
            except BrokenChainError as broken:
                if following is not None and following.base_offset == self.end_offset:
                    self._trim(segment, broken.position, tuple(found))
                    return False
                hole = self._hole(segment, broken, following)
                if hole is None:
                    self.truncated_bytes += size - broken.position
                    segment.cut_at(broken.position, tuple(found))
                    return True
                found.append(hole)
                position, self.end_offset = hole.end, hole.end_offset
        segment.holes = tuple(found)
        return False

    def _trim(self, segment: Segment, position: int, holes: tuple[Hole, ...]) -> None:
        """Remove invalid bytes after the segment's last record. The log continues in the next
        segment."""
        self.notes.append(
            f"segment {segment.base_offset}: removed {segment.size - position} bytes behind its "
            "last record"
        )
        segment.cut_at(position, holes)

    def _take(
        self, segment: Segment, position: int, size: int, next_segment: Segment | None
    ) -> OpeningSteps[None]:
        """Add the batches up to the end of the segment; raises at the first broken batch."""
        found = scan.batches(segment.file, position, size, self.end_offset)
        before: tuple[int, BatchHeader, memoryview] | None = None
        while True:
            try:
                current = next(found, None)
            except BrokenChainError:
                if before is not None:
                    self._enter(segment, *before, following=None)
                raise
            if current is not None:
                following: BatchHeader | None = current[1]
            else:
                following = None if next_segment is None else next_segment.header_at(0)
            if before is not None:
                self._enter(segment, *before, following=following)
            if current is None:
                return
            before = current
            self._step_cost += current[1].size + BATCH_COST
            if self._step_cost >= STEP_BYTES:
                self._step_cost = 0
                yield ()

    def _enter(
        self,
        segment: Segment,
        at: int,
        header: BatchHeader,
        batch: memoryview,
        following: BatchHeader | None,
    ) -> None:
        """Add a batch to the log, after checking it against the batches before and after it."""
        reason = self._invalid_reason(segment, header, following)
        if reason is not None:
            raise BrokenChainError(at, self.end_offset, reason)
        self._epoch = header.leader_epoch
        if header.leader_epoch > self._epochs.latest:
            self._epochs.learn(header.leader_epoch, header.base_offset)
        segment.note(
            header.base_offset,
            header.last_offset,
            header.max_timestamp,
            at,
            header.size,
            self._config.index_interval_bytes,
        )
        aborted = replay.apply(self._producers, header, batch)
        if aborted is not None:
            segment.transaction_index.add(aborted)
        self.end_offset = header.next_offset

    def _invalid_reason(
        self, segment: Segment, header: BatchHeader, following: BatchHeader | None
    ) -> str | None:
        """The reason why the batch's offset or leader epoch is wrong; None if both are right."""
        if header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
            return f"offset {header.last_offset} is too far from the segment's base"
        if header.base_offset != self.end_offset and not self._has_gaps:
            return f"offset {header.base_offset} comes after {self.end_offset - 1}"
        epoch = header.leader_epoch
        if epoch < self._epoch:
            # These old bytes are after newer bytes because a truncation was not fsynced.
            return f"leader epoch {epoch} comes after {self._epoch}"
        if (
            following is not None
            and header.base_offset < self._durable_to
            and self._epoch <= following.leader_epoch < epoch
        ):
            return f"leader epoch {epoch} comes between {self._epoch} and {following.leader_epoch}"
        return None

    def _hole(
        self, segment: Segment, broken: BrokenChainError, following: Segment | None
    ) -> Hole | None:
        """The damaged range, if its records were durable; None if the log ends before the range."""
        first = self.end_offset
        if first >= self._durable_to:
            return None
        limit = self._durable_to
        if following is not None:
            limit = following.base_offset
        elif self._recovery_point is not None and first < self._recovery_point:
            limit = self._recovery_point
        found = next_sound_batch.resume(
            segment, broken.position, first, limit, has_gaps=self._has_gaps
        )
        if found is not None:
            end, end_offset = found
        elif following is not None and following.base_offset > first:
            end, end_offset = segment.size, following.base_offset
        else:
            if self._recovery_point is not None and first < self._recovery_point:
                lost = Damage(first, self._recovery_point, f"lost: {broken.reason}")
                self.damages.append(lost)
            return None
        self.damages.append(Damage(first, end_offset, broken.reason))
        return Hole(broken.position, end, first, end_offset)
