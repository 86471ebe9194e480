"""Finds where to cut a segment so that the log ends with a whole batch at or before an offset."""

from contextlib import suppress

from tidelog.log.segments.scan import BrokenChainError
from tidelog.log.segments.segment import Segment
from tidelog.model.ids import Offset


def cut_point(segment: Segment, offset: Offset) -> tuple[int, Offset]:
    """The position to cut at, and the log end offset after the cut.

    If `offset` lies inside a batch, in a hole (a damaged range) or past the last batch, the new log
    end offset is below `offset`. The log end offset is always the end of a valid batch (F54).
    """
    position = segment.position_before(offset)
    end = segment.base_offset if position == 0 else None
    try:
        for at, header in segment.headers(position):
            if header.last_offset >= offset:
                end = min(offset, header.base_offset) if end is None else end
                position = at
                break
            position, end = at + header.size, header.next_offset
    except BrokenChainError:
        return _sound_end(segment, offset)
    hole = segment.hole_at(offset)
    if hole is not None and hole.first_offset <= offset:
        return hole.position, hole.first_offset
    return position, offset if end is None else min(end, offset)


def _sound_end(segment: Segment, offset: Offset) -> tuple[int, Offset]:
    """Where the valid batches below `offset` end, in a segment with a broken batch."""
    position, end = 0, segment.base_offset
    with suppress(BrokenChainError):
        for at, header in segment.headers():
            if header.last_offset >= offset:
                break
            position, end = at + header.size, header.next_offset
    return position, min(end, offset)
