"""From a timestamp to an offset: by time index, batch headers and, at the end, records."""

from tidelog.log import record_checks
from tidelog.log.results import TimestampOffset
from tidelog.log.segment import Segment
from tidelog.log.segment_list import SegmentList
from tidelog.model.ids import NO_TIMESTAMP, Millis, Offset
from tidelog.protocol.batch import BatchHeader


def first_not_older(
    segments: SegmentList, timestamp: Millis, start: Offset, limit: Offset
) -> TimestampOffset | None:
    """The first record in [start, limit) whose timestamp is at least this one."""
    for segment in segments:
        if segment.base_offset >= limit:
            return None
        if segment.max_timestamp < timestamp:
            continue
        from_offset = max(segment.time_index.offset_before(timestamp), start)
        for position, header in segment.headers_from(from_offset):
            if header.base_offset >= limit:
                return None
            if header.max_timestamp >= timestamp:
                found = _in_batch(segment, position, header, timestamp, start)
                if found is not None:
                    return found if found.offset < limit else None
    return None


def newest(
    segments: SegmentList, start: Offset, log_end_offset: Offset, limit: Offset
) -> TimestampOffset | None:
    """The first record with the largest timestamp in [start, limit)."""
    best = NO_TIMESTAMP
    where: tuple[Segment, Offset] | None = None
    for number, segment in enumerate(segments):
        if segment.base_offset >= limit:
            break
        if segments.end_of(number, log_end_offset) <= limit:
            timestamp, offset = segment.max_timestamp, segment.offset_of_max_timestamp
        else:
            timestamp, offset = _newest_below(segment, limit)
        if timestamp > best:
            best, where = timestamp, (segment, offset)
    if where is None:
        return None
    segment, offset = where
    for position, header in segment.headers_from(max(offset, start)):
        if header.max_timestamp >= best:
            return _in_batch(segment, position, header, best, start)
    return None


def _newest_below(segment: Segment, limit: Offset) -> tuple[Millis, Offset]:
    """The largest timestamp of the batches that end below `limit`, and an offset in its batch."""
    entry = segment.time_index.entry_below(limit)
    timestamp, offset = (NO_TIMESTAMP, segment.base_offset) if entry is None else entry
    for _, header in segment.headers_from(offset):
        if header.last_offset >= limit:
            break
        if header.max_timestamp > timestamp:
            timestamp, offset = header.max_timestamp, header.last_offset
    return timestamp, offset


def _in_batch(
    segment: Segment, position: int, header: BatchHeader, timestamp: Millis, start: Offset
) -> TimestampOffset | None:
    """The first record of the batch, at or past `start`, that is not older than `timestamp`."""
    found = record_checks.first_not_older(
        segment.read(position, header.size), header, timestamp, start
    )
    if found is None:
        return None
    return TimestampOffset(found[0], found[1], header.leader_epoch)
