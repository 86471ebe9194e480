"""Decides when the active segment is full: by size, age, index size or relative offsets."""

from crc32c import crc32c

from tidelog.log.config import LogConfig
from tidelog.log.indexes.index import TimeIndex
from tidelog.log.segments.segment import Segment
from tidelog.model.ids import Millis, Offset

MAX_RELATIVE_OFFSET = (1 << 31) - 1
"""The largest relative offset, which an index entry stores in four signed bytes."""


class RollPolicy:
    __slots__ = ("_index_bytes", "_jitter_ms", "_safe_bytes", "_segment_bytes", "_segment_ms")

    def __init__(self, config: LogConfig) -> None:
        self._segment_bytes = config.segment_bytes
        self._segment_ms = config.max_segment_ms
        self._jitter_ms = min(config.segment_jitter_ms, self._segment_ms)
        self._index_bytes = config.segment_index_bytes
        # Each index entry covers at least index.interval.bytes, so no index is full in a segment
        # below this size.
        per_entry = TimeIndex.ENTRY.size
        self._safe_bytes = config.segment_index_bytes // per_entry * config.index_interval_bytes

    def is_due(
        self,
        segment: Segment,
        pending: int,
        size: int,
        last_offset: Offset,
        timestamp: Millis,
        now: Millis,
    ) -> bool:
        """Whether a batch needs a new segment. `pending` bytes will be written before the batch."""
        occupied = segment.size + pending
        if last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if not occupied:
            return False
        if occupied > self._segment_bytes - size:
            return True
        first = segment.first_timestamp
        if first is None:
            first = segment.first_batch_timestamp()
        waited = timestamp - first if first >= 0 else now - segment.created
        if waited > self._segment_ms - self._jitter_ms and self._is_old(segment, waited):
            return True
        return occupied > self._safe_bytes and self._is_index_full(segment)

    def _is_old(self, segment: Segment, waited: Millis) -> bool:
        """Whether segment.ms, minus the jitter, has passed.

        The jitter is computed from the path, so it is the same after a restart.
        """
        if not self._jitter_ms:
            return waited > self._segment_ms
        jitter = crc32c(segment.path("").encode()) % self._jitter_ms
        return waited > self._segment_ms - jitter

    def _is_index_full(self, segment: Segment) -> bool:
        return any(
            entries.size + entries.entry_size > self._index_bytes
            for entries in (segment.offset_index.entries, segment.time_index.entries)
        )
