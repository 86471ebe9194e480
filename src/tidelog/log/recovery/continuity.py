"""Checks cheaply whether the segments of a log are contiguous (F54).

For each segment, the check reads the last index entry and the batches from that entry on. The next
segment must begin where these batches end. Only a log in which compaction has run may have gaps.
The setting cleanup.policy=compact alone does not make a gap valid. Even in a compacted log, a
segment never begins before the previous segment ends.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidelog.log.checkpoints.epochs import LeaderEpochs
from tidelog.log.segments import scan
from tidelog.log.segments.scan import BrokenChainError
from tidelog.log.segments.segment import Segment
from tidelog.model.ids import NO_EPOCH, LeaderEpoch, Millis, Offset
from tidelog.protocol.records.batch import BatchHeader

READ_AT_ONCE = 2_000
"""The maximum number of batches that one read checks. This takes a few milliseconds."""


class Tail(NamedTuple):
    """The offsets, epoch and timestamp at the end of a segment."""

    next_offset: Offset
    last_offset: Offset
    """The last offset; -1 if the segment is empty."""
    leader_epoch: LeaderEpoch
    timestamp: Millis


class ContinuityVerdict(NamedTuple):
    sound: int
    """The number of segments, from the first on, that are valid and contiguous."""
    end: Offset
    """The end offset of the last valid segment."""
    tails: tuple[Tail, ...]
    problem: str | None
    """The problem with the first invalid segment; None if all segments are valid."""


def tail_of(segment: Segment, *, has_gaps: bool) -> Tail:
    """Read the end of the segment; raises BrokenChainError if the batches are not contiguous."""
    if not segment.size:
        return Tail(segment.base_offset, -1, NO_EPOCH, -1)
    position = segment.last_indexed_position()
    expected = segment.base_offset if position == 0 else None
    tail: Tail | None = None
    for at, header in segment.headers(position):
        is_next = expected is None or header.base_offset == expected
        if not is_next and not has_gaps:
            reason = f"offset {header.base_offset} instead of {expected}"
            raise BrokenChainError(at, expected or 0, reason)
        if at > 2 * segment.index_interval and segment.offset_index.last is None:
            segment.distrust_indexes("its offset index is empty")
        expected = header.next_offset
        tail = Tail(expected, header.last_offset, header.leader_epoch, header.max_timestamp)
    assert tail is not None
    return tail


def check(
    segments: Sequence[Segment], count: int, *, has_gaps: bool, recovery_point: Offset | None
) -> ContinuityVerdict:
    """Find how many of the first `count` segments are valid and contiguous.

    If a segment does not begin where the previous segment ends, either of the two may be wrong,
    because no checksum covers offsets. Therefore, both count as invalid, and the caller scans them.
    The caller always scans the segments after the first `count`.
    """
    tails: list[Tail] = []
    end = segments[0].base_offset if segments else 0
    for number, segment in enumerate(segments[: count + 1]):
        problem = misplaced(segment, end, has_gaps=has_gaps, recovery_point=recovery_point)
        if problem is not None:
            text = f"segment {segment.base_offset}: {problem}"
            return ContinuityVerdict(
                number - 1, segments[number - 1].base_offset, tuple(tails[:-1]), text
            )
        if number == count:
            break
        is_last = number == len(segments) - 1
        if not segment.size and not is_last and not has_gaps:
            problem = "it is empty"
        if problem is None:
            try:
                tail = tail_of(segment, has_gaps=has_gaps)
            except BrokenChainError as broken:
                problem = str(broken)
        if problem is not None:
            return ContinuityVerdict(
                number, end, tuple(tails), f"segment {segment.base_offset}: {problem}"
            )
        tails.append(tail)
        end = tail.next_offset
        if not is_last:
            segment.rest()
    return ContinuityVerdict(count, end, tuple(tails), None)


def misplaced(
    segment: Segment, end: Offset, *, has_gaps: bool, recovery_point: Offset | None
) -> str | None:
    """Why a segment cannot follow a segment that ends at `end`; None if it can."""
    base = segment.base_offset
    if base == end:
        return None
    if base < end:
        return f"it begins before offset {end}, where the segment before it ends"
    if not has_gaps:
        return f"the segment before it ends at offset {end}"
    if not segment.size and recovery_point is not None and base > recovery_point:
        return f"it is empty, and the log never reached past offset {recovery_point}"
    return None


def readable(
    segment: Segment,
    position: int,
    offset: Offset,
    length: int,
    *,
    has_gaps: bool,
    epochs: LeaderEpochs | None,
) -> tuple[int, Offset | None]:
    """How many bytes from the batch boundary `position` on hold contiguous batches.

    Only these bytes may be served. No checksum covers offsets, so only this check detects wrong
    offsets. If a batch is missing or broken, the second result is its expected offset. Raises
    BrokenChainError if the first batch does not hold `offset`. If `epochs` is given, leader epochs
    and checksums are verified as well.
    """
    end, checks_sums = position + length, epochs is not None
    first, checked_to = segment.summed if checks_sums else segment.chained
    if first <= position and end <= checked_to:
        return length, None
    expected, checked_to, breaks_at = -1, position, None
    try:
        for number, (at, header) in enumerate(_walk(segment, position, checks_sums)):
            if expected < 0 and header.base_offset > offset and not has_gaps:
                reason = f"offset {header.base_offset} instead of {offset}"
                raise BrokenChainError(at, offset, reason)
            if at >= end or number == READ_AT_ONCE:
                break
            if epochs is not None and epochs.at(header.base_offset) != header.leader_epoch:
                reason = f"leader epoch {header.leader_epoch} is not that of its offset"
                raise BrokenChainError(at, header.base_offset, reason)
            if at > checked_to or (0 <= expected != header.base_offset and not has_gaps):
                breaks_at = expected
                break
            checked_to, expected = at + header.size, header.next_offset
    except BrokenChainError:
        if checked_to == position:
            raise
        breaks_at = expected
    _remember(segment, position, checked_to, checks_sums)
    return min(checked_to, end) - position, breaks_at


def _walk(segment: Segment, position: int, checks_sums: bool) -> Iterator[tuple[int, BatchHeader]]:
    if not checks_sums:
        return segment.headers(position)
    hole = next((one for one in segment.holes if one.end > position), None)
    end = segment.size if hole is None else hole.position
    found = scan.batches(segment.file, position, end, segment.base_offset)
    return ((at, header) for at, header, _ in found)


def _remember(segment: Segment, position: int, checked_to: int, checks_sums: bool) -> None:
    """Record the verified range, so that its batches are verified only once per run."""
    first, before = segment.summed if checks_sums else segment.chained
    if first <= position <= before:
        position, checked_to = first, max(before, checked_to)
    if checks_sums:
        segment.summed = position, checked_to
    else:
        segment.chained = position, checked_to
