"""Decides whether a log needs compaction, and which of its segments a pass may clean.

A pass never cleans the active segment, a segment with records at or past the last stable offset, or
a segment younger than min.compaction.lag.ms. In addition to Kafka's limits, a pass ends at the
recovery point. Otherwise power loss could remove the record for which an older one was removed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tidelog.log.config import MILLION, UNLIMITED, LogConfig
from tidelog.log.segments.segment import Segment
from tidelog.log.segments.segment_list import SegmentList
from tidelog.model.ids import Millis, Offset


class Cleanable(NamedTuple):
    """The part of a log that a pass would clean."""

    first_dirty: Offset
    end: Offset
    """The base offset of the first segment that may not be cleaned."""
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: Millis
    """For how long the oldest dirty record has exceeded max.compaction.lag.ms; 0 if it has not."""

    @property
    def dirty_millionths(self) -> int:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes * MILLION // total if total else 0

    def is_due(self, config: LogConfig) -> bool:
        """Whether the log is dirty enough, or has waited for too long."""
        if not self.dirty_bytes:
            return False
        total = self.clean_bytes + self.dirty_bytes
        return (
            self.overdue_ms > 0
            or self.dirty_bytes * MILLION > config.min_cleanable_dirty_millionths * total
        )


def first_dirty_offset(cleaned_to: Offset, log_start: Offset, log_end: Offset) -> Offset:
    """Where the dirty part of a log begins. An impossible checkpoint makes the whole log dirty."""
    return cleaned_to if log_start <= cleaned_to <= log_end else log_start


def find_cleanable(
    segments: SegmentList, config: LogConfig, first_dirty: Offset, limit: Offset, now: Millis
) -> Cleanable:
    """What a pass would clean; no record at or past `limit` may be cleaned."""
    sealed = [segments[number] for number in range(len(segments) - 1)]
    dirty_from = segments.index_of(first_dirty)
    dirty = sealed[dirty_from:]
    end = min(limit, segments.active.base_offset)
    if config.min_compaction_lag_ms > 0:
        newest = now - config.min_compaction_lag_ms
        young = (one.base_offset for one in dirty if one.max_timestamp > newest)
        end = min(end, next(young, end))
    end = max(end, first_dirty)
    # The segment that holds `end` is not cleaned.
    end = segments[segments.index_of(end)].base_offset
    start = min(first_dirty, end)
    clean = sum(one.size for one in sealed if one.base_offset < first_dirty)
    dirty_bytes = sum(one.size for one in dirty if start <= one.base_offset < end)
    if dirty and dirty[0].base_offset < first_dirty < end:
        dirty_bytes += dirty[0].size
    return Cleanable(first_dirty, end, clean, dirty_bytes, _overdue(dirty, config, now))


def _overdue(dirty: Sequence[Segment], config: LogConfig, now: Millis) -> Millis:
    if config.max_compaction_lag_ms == UNLIMITED:
        return 0
    first = (segment.first_batch_timestamp() for segment in dirty)
    oldest = min((timestamp for timestamp in first if timestamp > 0), default=None)
    if oldest is None:
        return 0
    return max(0, now - config.max_compaction_lag_ms - oldest)
