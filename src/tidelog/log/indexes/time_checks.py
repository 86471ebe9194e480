"""Verifies time index entries against the batches (F56).

Invariant: a time index is only a hint. An entry is used only if its batch has the same timestamp.
The largest timestamp of a segment is used only after the batches have confirmed it.
"""

from tidelog.log.indexes.index import TimeEntry
from tidelog.log.indexes.index_repair import PATIENCE, StillIndexing
from tidelog.log.segments.scan import BrokenChainError
from tidelog.log.segments.segment import Segment
from tidelog.model.ids import NO_TIMESTAMP, Millis, Offset

SMALL = 8 * 1024 * 1024
"""In segments up to this size, all headers are read before the time index is used."""


def confirmed_max_timestamp(segment: Segment) -> Millis:
    """The largest timestamp, confirmed by the batches.

    For a small segment, all headers are read once. For a large segment, two checks are enough: the
    last entry of the time index must have the timestamp of its batch, and the last batch must not
    be newer. If a check fails, a scan of all headers begins, and StillIndexing is raised until the
    scan is complete.
    """
    if segment.is_time_confirmed:
        return segment.max_timestamp
    if segment.rebuild is None and segment.size > SMALL and ends_well(segment):
        return segment.max_timestamp
    segment.confirm_indexes()
    assert segment.rebuild is not None
    if not segment.rebuild.step(PATIENCE):
        raise StillIndexing
    if segment.rebuild.broken is not None:
        raise segment.rebuild.broken
    segment.adopt_times()
    return segment.max_timestamp


def ends_well(segment: Segment) -> bool:
    """Whether the last entry of the time index agrees with the last batches."""
    try:
        last = None
        for _, header in segment.headers(segment.last_indexed_position()):
            last = header
    except BrokenChainError:
        return False
    if last is None or last.max_timestamp > segment.max_timestamp:
        return False
    return names_its_batch(segment, segment.max_timestamp, segment.offset_of_max_timestamp)


def names_its_batch(segment: Segment, timestamp: Millis, offset: Offset) -> bool:
    if timestamp == NO_TIMESTAMP:
        return False
    header = next((header for _, header in segment.headers_from(offset)), None)
    return header is not None and header.last_offset == offset and header.max_timestamp == timestamp


def offset_before(segment: Segment, timestamp: Millis) -> Offset:
    """An offset such that every record of the segment below it is older than `timestamp`."""
    entry = segment.time_index.entry_before(timestamp)
    if entry is None or names_its_batch(segment, entry.timestamp, entry.offset):
        return segment.base_offset if entry is None else entry.offset
    segment.distrust_indexes("an entry of its time index does not point to its batch")
    return segment.base_offset


def entry_below(segment: Segment, limit: Offset) -> TimeEntry | None:
    """The last entry for an offset below `limit`, if its batch confirms it."""
    entry = segment.time_index.entry_below(limit)
    if entry is None or names_its_batch(segment, entry.timestamp, entry.offset):
        return entry
    segment.distrust_indexes("an entry of its time index does not point to its batch")
    return None
