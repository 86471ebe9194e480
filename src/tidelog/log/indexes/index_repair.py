"""Rebuilds the indexes of a segment from its batch headers, in steps of limited length.

Indexes are derived data. Until they are rebuilt, a wrong entry only makes scans longer (F55, F56).
The rebuilt entries stay in memory (5 MB per gigabyte of segment), and readers use them during the
scan. When the scan has reached the end of the segment, these entries replace the index files.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidelog.log.indexes.index import OffsetIndex, TimeIndex
from tidelog.log.segments.scan import BrokenChainError
from tidelog.model.disk import NotCached
from tidelog.model.ids import NO_TIMESTAMP, Millis, Offset
from tidelog.protocol.records.batch import BatchHeader

if TYPE_CHECKING:
    from tidelog.log.segments.segment import Segment

SLICE = 2_000
"""The number of headers that one step scans. This takes a few milliseconds."""
PATIENCE = 8 * SLICE
"""The number of headers that one read may scan before the client has to retry."""


_MAX_RELATIVE_OFFSET = (1 << 31) - 1
"""The largest relative offset, which an index entry stores in four signed bytes."""


class StillIndexing(Exception):
    """The indexes of a large segment are still being rebuilt, so the client has to retry soon."""


class IndexRebuild:
    """One scan over the headers of one segment."""

    def __init__(self, segment: "Segment", index_interval: int, reason: str) -> None:
        self.reason = reason
        """The reason for the rebuild; empty if the indexes are only compared with the headers."""
        self.max_timestamp: Millis = NO_TIMESTAMP
        self.offset_of_max_timestamp: Offset = segment.base_offset
        self.since_entry = 0
        self.broken: BrokenChainError | None = None
        """The broken batch that ended the scan; None if there was none."""
        self.walked = 0
        """The number of headers scanned so far."""
        self._segment = segment
        self._interval = index_interval
        self._position = 0
        self._next_offset = segment.base_offset
        self._offsets = array("q")
        self._positions = array("q")
        self._time_entries = bytearray()
        self._last_entry_time: Millis = NO_TIMESTAMP
        self._headers = self._walk(0)

    def _walk(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        self._end = self._segment.size
        return self._segment.headers(position)

    def step(self, budget: int = SLICE) -> bool:
        """Scan up to `budget` headers; returns whether the scan is complete."""
        if self.broken is not None:
            return True
        try:
            for _ in range(budget):
                self.walked += 1
                found = next(self._headers, None)
                if found is None:
                    if self._segment.size == self._end:
                        return True
                    # The segment has grown since the scan began.
                    self._headers = self._walk(self._position)
                    continue
                self._take(*found)
        except BrokenChainError as broken:
            self.broken = broken
            return True
        except NotCached:
            self._headers = self._walk(self._position)
            raise
        return False

    def _take(self, position: int, header: BatchHeader) -> None:
        """Add entries for a batch as `Segment.note` does for an append."""
        last_offset = header.base_offset + header.last_offset_delta
        if last_offset - self._segment.base_offset > _MAX_RELATIVE_OFFSET:
            reason = f"offset {last_offset} is too far from the segment's base"
            raise BrokenChainError(position, self._next_offset, reason)
        self._next_offset = last_offset + 1
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp, self.offset_of_max_timestamp = header.max_timestamp, last_offset
        if self.since_entry > self._interval:
            self._offsets.append(last_offset)
            self._positions.append(position)
            self._add_time()
            self.since_entry = 0
        self.since_entry += header.size
        self._position = position + header.size

    def _add_time(self) -> None:
        if self.max_timestamp > self._last_entry_time:
            self._last_entry_time = self.max_timestamp
            relative = self.offset_of_max_timestamp - self._segment.base_offset
            self._time_entries += TimeIndex.ENTRY.pack(self.max_timestamp, relative)

    def position_before(self, offset: Offset) -> int:
        """A batch boundary at or before the batch that holds `offset`."""
        walked = 0
        while not (self._offsets and self._offsets[-1] > offset):
            if self.step():
                break
            walked += SLICE
            if walked > PATIENCE:
                raise StillIndexing
        number = bisect_right(self._offsets, offset)
        return self._positions[number - 1] if number else 0

    def offset_entries(self) -> bytes:
        base = self._segment.base_offset
        return b"".join(
            OffsetIndex.ENTRY.pack(offset - base, position)
            for offset, position in zip(self._offsets, self._positions, strict=True)
        )

    def time_entries(self) -> bytes:
        """The time index entries, with the largest timestamp last, as in a sealed segment."""
        self._add_time()
        return bytes(self._time_entries)
