"""Finds an offset by timestamp: the time index selects a range, and a job reads its batches.

A search unpacks batches that clients have written. These may contain anything, so the search has
limits. When a limit is reached, or when records cannot be read, the result is the first offset that
was not examined. No matching record lies before that offset, so a consumer that starts there misses
nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

from tidelog.log.indexes import time_checks
from tidelog.log.results import TimestampOffset
from tidelog.log.segments.scan import BrokenChainError, Stretch
from tidelog.log.segments.segment import Segment
from tidelog.log.segments.segment_list import SegmentList
from tidelog.model.disk import File
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_TIMESTAMP, Millis, Offset
from tidelog.model.jobs import Steps, Work
from tidelog.protocol.records.batch import HEADER_SIZE, BatchHeader
from tidelog.protocol.records.record_heads import record_heads
from tidelog.protocol.records.records import codec_of
from tidelog.protocol.records.unpacking import UnreadableRecords, unpack

SEARCHED_BYTES = 32 * 1024 * 1024
"""The maximum number of bytes to unpack from one batch."""
SEARCHED_RECORDS = 200_000
"""The maximum number of records to read from one batch. Producers write far smaller batches."""
_SEARCHED_BATCHES = 64
"""A search unpacks at most this many batches, even if later headers promise a match."""

_PIECE = 64 * 1024
_HEADERS_PER_STEP = 256

Found: TypeAlias = TimestampOffset | ErrorCode | None


class _Batch(NamedTuple):
    file: File
    position: int
    header: BatchHeader

    def at(self, offset: Offset) -> TimestampOffset:
        header = self.header
        offset = min(offset, header.last_offset)
        return TimestampOffset(offset, header.max_timestamp, header.leader_epoch)

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the batch's records."""
        position, end = self.position + HEADER_SIZE, self.position + self.header.size
        while position < end and (piece := self.file.read(position, min(_PIECE, end - position))):
            yield piece
            position += len(piece)


@dataclass(slots=True)
class TimeSearch:
    """Finds the first record of one segment in [start, limit) with at least this timestamp."""

    work: ClassVar[Work] = Work.COMPUTE
    stretch: Stretch
    timestamp: Millis
    start: Offset
    limit: Offset
    next_offset: Offset
    """The start of the next segment, where the search continues if this one finds nothing."""

    def run(self) -> Steps[Found]:
        opened = 0
        try:
            for number, (position, header) in enumerate(self.stretch.headers()):
                if number % _HEADERS_PER_STEP == _HEADERS_PER_STEP - 1:
                    yield
                if header.base_offset >= self.limit:
                    return None
                if header.max_timestamp < self.timestamp or header.last_offset < self.start:
                    continue
                batch = _Batch(self.stretch.file, position, header)
                opened += 1
                if opened > _SEARCHED_BATCHES:
                    return batch.at(max(header.base_offset, self.start))
                found = yield from _first_not_older(batch, self.timestamp, self.start)
                if found is not None:
                    return found if found.offset < self.limit else None
        except BrokenChainError:
            return ErrorCode.corrupt_message
        return None


def first_not_older(
    segments: SegmentList, timestamp: Millis, start: Offset, limit: Offset
) -> TimeSearch | None:
    """Return a search in the first segment that may hold a matching record in [start, limit)."""
    for number in range(segments.index_of(start), len(segments)):
        segment = segments[number]
        if segment.base_offset >= limit:
            return None
        if time_checks.confirmed_max_timestamp(segment) < timestamp:
            continue
        from_offset = max(time_checks.offset_before(segment, timestamp), start)
        end = segments.end_of(number, limit)
        return TimeSearch(segment.stretch_from(from_offset), timestamp, start, limit, end)
    return None


@dataclass(slots=True)
class NewestSearch:
    """Finds the first record with the largest timestamp below an offset."""

    work: ClassVar[Work] = Work.COMPUTE
    timestamp: Millis
    """The largest timestamp of the segments that end below the limit; -1 if there are none."""
    whole: Stretch | None
    """The range of the segment that holds `timestamp`, from the batch with that timestamp on."""
    rest: Stretch | None
    """The range of the segment that holds the limit, from its last usable time index entry on."""
    start: Offset
    limit: Offset

    def run(self) -> Steps[Found]:
        try:
            best = yield from self._newest_batch()
            if best is None:
                return None
            found = yield from _first_not_older(best, best.header.max_timestamp, self.start)
        except BrokenChainError:
            return ErrorCode.corrupt_message
        return found

    def _newest_batch(self) -> Steps[_Batch | None]:
        best: _Batch | None = None
        timestamp = self.timestamp
        if self.rest is not None:
            for number, (position, header) in enumerate(self.rest.headers()):
                if number % _HEADERS_PER_STEP == _HEADERS_PER_STEP - 1:
                    yield
                if header.last_offset >= self.limit:
                    break
                if header.max_timestamp > timestamp and header.last_offset >= self.start:
                    timestamp = header.max_timestamp
                    best = _Batch(self.rest.file, position, header)
        if best is None and self.whole is not None:
            for position, header in self.whole.headers():
                if header.max_timestamp >= timestamp and header.last_offset >= self.start:
                    return _Batch(self.whole.file, position, header)
        return best


def newest(
    segments: SegmentList, start: Offset, log_end_offset: Offset, limit: Offset
) -> NewestSearch | None:
    """Return a search for the first record with the largest timestamp in [start, limit)."""
    best, where, rest = NO_TIMESTAMP, None, None
    for number, segment in enumerate(segments):
        if segment.base_offset >= limit:
            break
        if segments.end_of(number, log_end_offset) > limit:
            rest = _rest_of(segment, limit, start)
        elif time_checks.confirmed_max_timestamp(segment) > best:
            best, where = segment.max_timestamp, segment
    whole = None
    if where is not None:
        whole = where.stretch_from(max(where.offset_of_max_timestamp, start))
    if whole is None and rest is None:
        return None
    return NewestSearch(best, whole, rest, start, limit)


def _rest_of(segment: Segment, limit: Offset, start: Offset) -> Stretch:
    entry = time_checks.entry_below(segment, limit)
    return segment.stretch_from(max(start, segment.base_offset if entry is None else entry.offset))


def _first_not_older(
    batch: _Batch, timestamp: Millis, start: Offset
) -> Steps[TimestampOffset | None]:
    """The first record of a batch at or past `start` with at least this timestamp.

    If some records cannot be examined, the result is the first offset that was not examined.
    """
    header = batch.header
    unseen = header.base_offset
    if header.uses_log_append_time:
        return batch.at(max(unseen, start))
    wanted, seen = timestamp - header.base_timestamp, 0
    try:
        chunks = unpack(codec_of(header), batch.pieces(), SEARCHED_BYTES)
        for heads in record_heads(chunks, header.record_count):
            if heads and max(heads)[0] >= wanted:
                for timestamp_delta, offset_delta, _ in heads:
                    if not 0 <= offset_delta <= header.last_offset_delta:
                        raise UnreadableRecords(f"an offset delta of {offset_delta}")
                    offset = header.base_offset + offset_delta
                    if timestamp_delta >= wanted and offset >= start:
                        found = header.base_timestamp + timestamp_delta
                        return TimestampOffset(offset, found, header.leader_epoch)
            seen += len(heads)
            if heads:
                unseen = max(unseen, header.base_offset + heads[-1][1] + 1)
            if seen > SEARCHED_RECORDS:
                break
            yield
        else:
            return None
    except UnreadableRecords:
        pass
    return batch.at(max(unseen, start))
