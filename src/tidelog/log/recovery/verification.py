"""Verifies the segments that earlier runs wrote, to find bytes that have changed on disk (F54).

Opening a log reads only the ends of its segments. The batches of these segments are verified in the
background, once per run and in small slices. Their checksums must match. Their offsets and leader
epochs, which no checksum covers, must continue the log. The aborted transactions found in the
batches are compared with the transaction index of each segment, and a wrong index is rewritten
(F55).
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar, NamedTuple

from tidelog.log.checkpoints.epochs import LeaderEpochs
from tidelog.log.producers.aborted import AbortedReplay
from tidelog.log.producers.producer_snapshots import SnapshotFiles
from tidelog.log.segments import scan
from tidelog.log.segments.scan import BrokenChainError
from tidelog.log.segments.segment import Segment
from tidelog.log.segments.segment_list import SegmentList
from tidelog.model.disk import File
from tidelog.model.ids import LeaderEpoch, Offset
from tidelog.model.jobs import Steps, Work
from tidelog.protocol.records.batch import BatchHeader

SLICE_BATCHES, SLICE_BYTES = 200, 1 << 20
STEP_BATCHES = 100
WHOLE, LEAST = 100, 6
"""The cost of a full slice, and the minimum cost of a slice. The node pauses when the slices since
the last pause together cost as much as a full slice."""

Extent = tuple[Offset, int]
"""The base offset of a segment, and its size when the log was opened."""


class Verified(NamedTuple):
    """The result of a slice: how far it is valid, and whether the next batch is broken."""

    position: int
    offset: Offset
    cost: int
    is_broken: bool = False


@dataclass(slots=True)
class VerifySlice:
    """A job that verifies the next batches of a segment."""

    work: ClassVar[Work] = Work.LOAD
    file: File
    position: int
    end: int
    offset: Offset
    epochs: Sequence[tuple[LeaderEpoch, Offset]]
    has_gaps: bool
    aborted: AbortedReplay | None
    """Finds aborted transactions; None if it is unknown which transactions are open."""

    def run(self) -> Steps[Verified]:
        position, offset, number, is_broken = self.position, self.offset, 0, False
        limit = min(self.end, position + SLICE_BYTES)
        try:
            found = scan.batches(self.file, position, self.end, offset)
            for number, (at, header, batch) in enumerate(found, 1):
                if self._is_misplaced(header, offset):
                    is_broken = True
                    break
                if self.aborted is not None:
                    self.aborted.take(header, batch)
                position, offset = at + header.size, header.next_offset
                if position >= limit or number == SLICE_BATCHES:
                    break
                if number % STEP_BATCHES == 0:
                    yield
        except BrokenChainError:
            is_broken = True
        of_bytes = WHOLE * (position - self.position) // SLICE_BYTES
        cost = max(LEAST, of_bytes, WHOLE * number // SLICE_BATCHES)
        return Verified(position, offset, cost, is_broken)

    def _is_misplaced(self, header: BatchHeader, expected: Offset) -> bool:
        """Whether the batch has a wrong offset or leader epoch for its position in the log."""
        if header.base_offset != expected and not self.has_gaps:
            return True
        return self._epoch_at(header.base_offset) not in (None, header.leader_epoch)

    def _epoch_at(self, offset: Offset) -> LeaderEpoch | None:
        number = bisect_right(self.epochs, offset, key=itemgetter(1))
        return self.epochs[number - 1][0] if number else None


class LogVerification:
    """The verification of one log, slice by slice. It covers the segments that the log had when it
    was opened."""

    def __init__(
        self,
        segments: SegmentList,
        epochs: LeaderEpochs,
        snapshots: SnapshotFiles,
        at_rest: Sequence[Extent],
        note: Callable[[str], None],
        *,
        has_gaps: bool,
    ) -> None:
        self._segments = segments
        self._epochs = epochs
        self._snapshots = snapshots
        self._note = note
        self._has_gaps = has_gaps
        self._left = list(reversed(at_rest))
        self._opened = {segment.base_offset: segment for segment in segments}
        self._at: tuple[int, Offset] | None = None
        self._aborted: AbortedReplay | None = None

    def next_slice(self) -> VerifySlice | None:
        """The next job to run; None when everything has been verified."""
        while self._left:
            base, size = self._left[-1]
            segment = self._segments[self._segments.index_of(base)]
            position, offset = self._at or (0, base)
            # If the cleaner has replaced the segment, this run has written all of it.
            end = min(size, segment.size) if self._opened.get(base) is segment else 0
            if segment.base_offset == base and not segment.holes and position < end:
                if self._at is None and self._aborted is None:
                    self._aborted = self._open_transactions(base)
                starts = self._epochs.entries
                return VerifySlice(
                    segment.file, position, end, offset, starts, self._has_gaps, self._aborted
                )
            if position == size == end and segment.base_offset == base:
                self._check_transactions(segment, size)
            else:
                self._aborted = None
            self._leave()
        return None

    def take(self, result: Verified) -> None:
        """Continue after a slice; if it found a broken batch, skip the rest of the segment."""
        self._at = result.position, result.offset
        if result.is_broken:
            self._aborted = None
            self._leave()

    def _open_transactions(self, base: Offset) -> AbortedReplay | None:
        """The transactions that are open at the start of this segment; None if they are unknown.

        Compaction removes records of aborted transactions, so a compacted log is not checked.
        """
        if self._has_gaps:
            return None
        if base == 0:
            return AbortedReplay({})
        snapshot = self._snapshots.newest(base - 1, base)
        return None if snapshot is None else AbortedReplay(snapshot[1])

    def _check_transactions(self, segment: Segment, size: int) -> None:
        """Check the transaction index, if all batches of earlier runs in the segment are valid."""
        if self._aborted is None:
            return
        found = self._aborted.take_found()
        # If the segment was cut during the verification, its transaction index was cut as well.
        if segment.unread_to == size and segment.transaction_index.correct(found):
            self._note(
                f"segment {segment.base_offset}: its transaction index was wrong and "
                "was rebuilt from its batches"
            )

    def _leave(self) -> None:
        base, _ = self._left.pop()
        self._at = None
        segment = self._segments[self._segments.index_of(base)]
        if segment.base_offset == base and segment is not self._segments.active:
            segment.rest()
