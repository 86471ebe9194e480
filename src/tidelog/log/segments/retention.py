"""Selects the segments that retention may delete, and removes their files after
file.delete.delay.ms."""

from collections import deque

from tidelog.log import names
from tidelog.log.config import LogConfig
from tidelog.log.segments.segment import Segment
from tidelog.log.segments.segment_list import SegmentList
from tidelog.model.disk import Disk
from tidelog.model.ids import NO_TIMESTAMP, Millis, Offset


def count_deletable(
    segments: SegmentList,
    config: LogConfig,
    now: Millis,
    ahead_ms: Millis,
    log_start_offset: Offset,
    log_end_offset: Offset,
    high_watermark: Offset,
) -> int:
    """The number of oldest segments to delete. They hold only records below the high watermark."""
    excess = segments.size - config.retention_bytes
    deletes = "delete" in config.cleanup_policy
    for count, segment in enumerate(segments):
        end = segments.end_of(count, log_end_offset)
        if end > high_watermark or (segment is segments.active and segment.size == 0):
            return count
        is_too_much = config.retention_bytes >= 0 and excess >= segment.size
        is_unwanted = is_too_much or _is_expired(segment, config.retention_ms, now, ahead_ms)
        if end > log_start_offset and not (deletes and is_unwanted):
            return count
        excess -= segment.size
    return len(segments)


def _is_expired(segment: Segment, retention_ms: Millis, now: Millis, ahead_ms: Millis) -> bool:
    if retention_ms < 0:
        return False
    newest = segment.max_timestamp
    if newest == NO_TIMESTAMP:
        # If a segment has no timestamps, its age counts from when this process created or loaded
        # it.
        age = now - segment.created
    else:
        age = now + ahead_ms - newest
    if age <= retention_ms:
        return False
    if not segment.is_time_confirmed:
        # The time index may be wrong, so the batch headers have to confirm it before a deletion.
        segment.confirm_indexes()
    return segment.is_time_confirmed


def awaits_confirmation(segments: SegmentList, count: int) -> bool:
    """Whether the first kept segment may be deleted once batch headers have confirmed its age."""
    if count == len(segments):
        return False
    return segments[count].rebuild is not None


PURGED_AT_ONCE = 20
"""The maximum number of segments that one call of `purge` removes."""


class DeletedFiles:
    """Files of deleted segments. They are renamed at once, so that the next start ignores them."""

    __slots__ = ("_disk", "_waiting")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._waiting: deque[tuple[Millis, list[str]]] = deque()

    def add(self, segments: list[Segment], due: Millis) -> None:
        for segment in segments:
            self._waiting.append((due, segment.rename_files(names.DELETED)))

    def purge(self, now: Millis) -> None:
        """Remove files whose delay has passed, a few segments per call because removal is slow."""
        for _ in range(PURGED_AT_ONCE):
            if not self._waiting or self._waiting[0][0] > now:
                return
            for path in self._waiting[0][1]:
                self._disk.remove(path)
            self._waiting.popleft()

    @property
    def next_due(self) -> Millis | None:
        return self._waiting[0][0] if self._waiting else None
