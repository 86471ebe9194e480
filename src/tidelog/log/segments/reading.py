"""Locates the slice of one segment file that answers a fetch, without reading the records."""

from collections.abc import Callable

from tidelog.log.checkpoints.epochs import LeaderEpochs
from tidelog.log.recovery import continuity
from tidelog.log.results import AbortedTxn, ReadResult
from tidelog.log.segments.scan import BrokenChainError
from tidelog.log.segments.segment import Segment
from tidelog.log.segments.segment_list import SegmentList
from tidelog.model.disk import FileSlice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset


def read(
    segments: SegmentList,
    offset: Offset,
    max_bytes: int,
    limit: Offset,
    log_end_offset: Offset,
    *,
    at_least_one: bool,
    has_gaps: bool,
    epochs: LeaderEpochs | None,
    mark_due: Callable[[], None],
    broken_at: Callable[[Offset], None],
) -> ReadResult | ErrorCode:
    """Locate batches from `offset` on and below `limit`, which is not past the log end offset.

    Raises BrokenChainError at missing or broken batches, because a read must not skip them.
    """
    segment = segments.active
    if offset < segment.base_offset:
        segment = segments[segments.index_of(offset)]
    hole = segment.hole_at(offset) if segment.holes else None
    if hole is not None and hole.first_offset <= offset:
        return ErrorCode.corrupt_message
    location = segment.locate(offset)
    if location is None:
        if not has_gaps:
            raise BrokenChainError(segment.size, offset, "the segment ends too early")
        found = _after_gap(segments, offset, limit)
        if found is None:
            return ReadResult(None, limit)
        segment, location = found
    position, first_size = location
    end_offset, end = log_end_offset, segment.size
    if segment is not segments.active:
        end_offset = segments.end_of(segments.index_of(segment.base_offset), log_end_offset)
    if limit < end_offset:
        end_offset = limit
        beyond = segment.locate(limit)
        if beyond is not None:
            end = beyond[0]
    if hole is not None:
        end = min(end, hole.position)
    length = end - position
    if length > max_bytes:
        length = _bounded(first_size, max_bytes, at_least_one)
    if length <= 0:
        return ReadResult(None, offset)
    if position < segment.unread_to:
        if segment.rebuild is not None:
            mark_due()
        length, breaks_at = continuity.readable(
            segment, position, offset, length, has_gaps=has_gaps, epochs=epochs
        )
        if breaks_at is not None:
            broken_at(breaks_at)
    return ReadResult(FileSlice(segment.file, position, length), end_offset)


def _after_gap(
    segments: SegmentList, offset: Offset, limit: Offset
) -> tuple[Segment, tuple[int, int]] | None:
    """The first batch after a gap that compaction left at the end of a segment, below `limit`."""
    for segment in segments.starting_from(offset)[1:]:
        if segment.base_offset >= limit:
            return None
        location = segment.locate(offset)
        if location is not None:
            return segment, location
    return None


def _bounded(first_size: int, max_bytes: int, at_least_one: bool) -> int:
    """The number of bytes to return, if not all are wanted.

    The first batch is complete; the last one may be partial.
    """
    if max_bytes >= first_size:
        return max_bytes
    return first_size if at_least_one else 0


def aborted(segments: list[Segment], start: Offset, end: Offset) -> tuple[AbortedTxn, ...]:
    """Aborted transactions that overlap [start, end), from the segment of `start` on."""
    found = []
    for segment in segments:
        for transaction in segment.transaction_index:
            if transaction.last_offset >= start and transaction.first_offset < end:
                found.append(transaction)
            if transaction.last_stable_offset >= end:
                return tuple(found)
    return tuple(found)
