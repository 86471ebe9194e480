"""What a time index says, as far as the batches confirm it (F56).

A time index is only a hint: an entry is used when the batch that it names has its timestamp, and a
segment's largest timestamp when the batches have confirmed it.
"""

from tidelog.log.indexes.index import TimeEntry
from tidelog.log.indexes.index_repair import PATIENCE, StillIndexing
from tidelog.log.segments.scan import BrokenChainError
from tidelog.log.segments.segment import Segment
from tidelog.model.ids import NO_TIMESTAMP, Millis, Offset

SMALL = 8 * 1024 * 1024
"""Bytes of a segment whose headers are all read before its time index is believed."""


def confirmed_max_timestamp(segment: Segment) -> Millis:
    """The largest timestamp as the batches have it.

    All headers of a small segment are read for that, once. Of a large one it has to be enough that
    the time index ends with the timestamp of the batch that it names, and that the last batch is
    not newer; where it does not, StillIndexing is raised until its headers have been read.
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
    """Whether the last entry of the time index and the last batches agree."""
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
    """An offset below which every record of the segment is older than `timestamp`."""
    entry = segment.time_index.entry_before(timestamp)
    if entry is None or names_its_batch(segment, entry.timestamp, entry.offset):
        return segment.base_offset if entry is None else entry.offset
    segment.distrust_indexes("an entry of its time index does not name its batch")
    return segment.base_offset


def entry_below(segment: Segment, limit: Offset) -> TimeEntry | None:
    """The last entry that speaks of an offset below this one, if its batch agrees."""
    entry = segment.time_index.entry_below(limit)
    if entry is None or names_its_batch(segment, entry.timestamp, entry.offset):
        return entry
    segment.distrust_indexes("an entry of its time index does not name its batch")
    return None
