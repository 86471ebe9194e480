"""Finds the next valid batches after broken ones in one segment."""

from collections.abc import Iterator

from tidelog.log.checkpoints.epochs import LeaderEpochs
from tidelog.log.segments import scan
from tidelog.log.segments.rolling import MAX_RELATIVE_OFFSET
from tidelog.log.segments.scan import BrokenChainError, Hole
from tidelog.log.segments.segment import Segment
from tidelog.model.ids import Offset
from tidelog.protocol.records.batch import BatchHeader


def resume(
    segment: Segment, position: int, least: Offset, limit: Offset, *, has_gaps: bool
) -> tuple[int, Offset] | None:
    """The position and offset of the next valid batch past `least` that ends at or before `limit`.

    No checksum covers offsets. A batch that ends past the limit has a wrong offset and is skipped.
    A batch directly at `position` is also skipped, unless it ends where the next batch begins.
    """
    limit = min(limit, segment.base_offset + MAX_RELATIVE_OFFSET)
    at: int | None = position
    while at is not None:
        header = segment.header_at(at)
        is_within = header is not None and least < header.base_offset < header.next_offset <= limit
        if header is not None and is_within:
            behind = segment.header_at(at + header.size)
            if _is_chained(segment, at, header, behind, has_gaps) and (at > position or behind):
                return at, header.base_offset
        at = scan.resume_after(segment.file, at, segment.size, least)
    return None


def headers(segment: Segment, position: int, end: Offset) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each batch before `end`, and step over broken batches."""
    next_offset = segment.base_offset
    at: int | None = position
    while at is not None:
        try:
            for found, header in segment.headers(at):
                if header.base_offset >= end:
                    return
                yield found, header
                next_offset = header.next_offset
            return
        except BrokenChainError as broken:
            behind = resume(segment, broken.position, next_offset, end, has_gaps=True)
            at = None if behind is None else behind[0]


def _is_chained(
    segment: Segment,
    position: int,
    header: BatchHeader,
    behind: BatchHeader | None,
    has_gaps: bool,
) -> bool:
    """Whether the batch is valid and ends where the next batch begins, if there is a next one."""
    try:
        next(scan.batches(segment.file, position, segment.size))
    except BrokenChainError:
        return False
    return behind is None or has_gaps or behind.base_offset == header.next_offset


def find(
    segment: Segment, offset: Offset, end: Offset, epochs: LeaderEpochs, *, has_gaps: bool
) -> Hole | None:
    """Search for a damaged range that is not known yet, from a batch boundary before `offset` on.

    `end` is the end of the segment's offset range. Checksums are verified too, because the batch
    before a gap may be broken.
    """
    position = segment.position_before(offset)
    expected = segment.base_offset if position == 0 else None
    for stop, behind, resumed_at in _runs(segment, position):
        try:
            for at, header, _ in scan.batches(segment.file, position, stop, segment.base_offset):
                if expected is not None and header.base_offset != expected and not has_gaps:
                    raise BrokenChainError(
                        at, expected, f"offset {header.base_offset} instead of {expected}"
                    )
                if epochs.at(header.base_offset) != header.leader_epoch:
                    expected = header.base_offset
                    raise BrokenChainError(at, expected, f"leader epoch {header.leader_epoch}")
                expected = header.next_offset
        except BrokenChainError as broken:
            first = segment.base_offset if expected is None else expected
            found = resume(segment, broken.position, first, end, has_gaps=has_gaps)
            at, offset = (stop, end) if found is None else found
            return Hole(broken.position, at, first, offset)
        position, expected = behind, resumed_at
    if expected is not None and expected < end and not has_gaps:
        return Hole(segment.size, segment.size, expected, end)
    return None


def _runs(segment: Segment, position: int) -> Iterator[tuple[int, int, Offset | None]]:
    """For each run of batches between known holes, its end and the start of the next run."""
    for hole in segment.holes:
        if hole.end > position or (hole.position == hole.end >= position):
            yield hole.position, hole.end, hole.end_offset
    yield segment.size, segment.size, None
