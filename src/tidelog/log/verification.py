"""Reads again what earlier runs wrote, and finds what is no longer as it was written (F54).

Opening a log looks at the ends of its segments only. The batches between them are verified in the
background, once in a run and in small slices: their checksums, and that offsets and leader epochs,
which no checksum covers, are those of the log.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar, NamedTuple

from tidelog.log import scan
from tidelog.log.epochs import LeaderEpochs
from tidelog.log.scan import BrokenChainError
from tidelog.log.segment_list import SegmentList
from tidelog.model.disk import File
from tidelog.model.ids import LeaderEpoch, Offset
from tidelog.model.jobs import Steps, Work

SLICE_BATCHES, SLICE_BYTES = 1_000, 1 << 20
STEP_BATCHES = 100


class Verified(NamedTuple):
    """How far a slice is sound, and whether what follows is not."""

    position: int
    offset: Offset
    is_broken: bool = False


@dataclass(slots=True)
class VerifySlice:
    """A job: read the next batches of a segment."""

    work: ClassVar[Work] = Work.LOAD
    file: File
    position: int
    end: int
    offset: Offset
    epochs: Sequence[tuple[LeaderEpoch, Offset]]
    has_gaps: bool

    def run(self) -> Steps[Verified]:
        position, offset = self.position, self.offset
        limit = min(self.end, position + SLICE_BYTES)
        try:
            found = scan.batches(self.file, position, self.end, offset)
            for number, (at, header, _) in enumerate(found, 1):
                if header.base_offset != offset and not self.has_gaps:
                    return Verified(at, offset, is_broken=True)
                if self._epoch_at(header.base_offset) not in (None, header.leader_epoch):
                    return Verified(at, header.base_offset, is_broken=True)
                position, offset = at + header.size, header.next_offset
                if position >= limit or number == SLICE_BATCHES:
                    break
                if number % STEP_BATCHES == 0:
                    yield
        except BrokenChainError:
            return Verified(position, offset, is_broken=True)
        return Verified(position, offset)

    def _epoch_at(self, offset: Offset) -> LeaderEpoch | None:
        number = bisect_right(self.epochs, offset, key=itemgetter(1))
        return self.epochs[number - 1][0] if number else None


class LogVerification:
    """What is left to verify of one log: the segments that it had when it was opened."""

    def __init__(self, segments: SegmentList, epochs: LeaderEpochs, *, has_gaps: bool) -> None:
        self._segments = segments
        self._epochs = epochs
        self._has_gaps = has_gaps
        self._left = [(one.base_offset, one.size) for one in reversed(list(segments)) if one.size]
        self._at: tuple[int, Offset] | None = None

    def next_slice(self) -> VerifySlice | None:
        """The job to run next; None when everything has been read."""
        while self._left:
            base, size = self._left[-1]
            segment = self._segments[self._segments.index_of(base)]
            position, offset = self._at or (0, base)
            end = min(size, segment.size)
            if segment.base_offset == base and not segment.holes and position < end:
                starts = self._epochs.entries
                return VerifySlice(segment.file, position, end, offset, starts, self._has_gaps)
            self._leave()
        return None

    def take(self, result: Verified) -> None:
        """Go on behind what was read; a segment with something wrong in it is left."""
        self._at = result.position, result.offset
        if result.is_broken:
            self._leave()

    def _leave(self) -> None:
        base, _ = self._left.pop()
        self._at = None
        segment = self._segments[self._segments.index_of(base)]
        if segment.base_offset == base and segment is not self._segments.active:
            segment.rest()
