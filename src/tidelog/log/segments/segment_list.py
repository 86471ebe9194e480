"""The segments of a log, ordered by base offset; the last is the active segment."""

from bisect import bisect_right
from collections.abc import Iterator

from tidelog.log.segments.segment import Segment
from tidelog.model.ids import Offset


class SegmentList:
    __slots__ = ("_bases", "_sealed_bytes", "_segments", "active")

    active: Segment
    """The segment to which batches are appended."""

    def __init__(self, segments: list[Segment]) -> None:
        assert segments
        self._replace(segments)

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def size(self) -> int:
        return self._sealed_bytes + self.active.size

    def index_of(self, offset: Offset) -> int:
        """The index of the segment whose range holds `offset`; 0 for an offset before the log."""
        return max(bisect_right(self._bases, offset) - 1, 0)

    def end_of(self, index: int, log_end_offset: Offset) -> Offset:
        """The end of the offset range of a segment."""
        following = index + 1
        return self._bases[following] if following < len(self._bases) else log_end_offset

    def starting_from(self, offset: Offset) -> list[Segment]:
        """The segment that holds `offset` and all later segments."""
        return self._segments[self.index_of(offset) :]

    def add(self, segment: Segment) -> None:
        """Add a new active segment; the caller has sealed the former active segment."""
        assert segment.base_offset > self._bases[-1]
        self._sealed_bytes += self.active.size
        self._segments.append(segment)
        self._bases.append(segment.base_offset)
        self.active = segment

    def drop_first(self, count: int) -> list[Segment]:
        """Remove the oldest segments; at least one stays."""
        dropped = self._segments[:count]
        self._replace(self._segments[count:])
        return dropped

    def drop_from(self, index: int) -> list[Segment]:
        """Remove the segments from `index` on; the segment before them becomes active."""
        dropped = self._segments[index:]
        self._replace(self._segments[:index])
        return dropped

    def replace_active(self, segment: Segment) -> list[Segment]:
        """Replace an empty active segment."""
        former = self._segments[-1]
        assert former.size == 0
        self._replace([*self._segments[:-1], segment])
        return [former]

    def replace(self, index: int, count: int, segment: Segment) -> None:
        """Replace sealed segments with one segment that begins where they begin."""
        assert segment.base_offset == self._bases[index]
        assert index + count < len(self._segments)
        rest = self._segments[index + count :]
        self._replace([*self._segments[:index], segment, *rest])

    def start_over(self, segment: Segment) -> list[Segment]:
        """Replace all segments with this one."""
        dropped = self._segments
        self._replace([segment])
        return dropped

    def _replace(self, segments: list[Segment]) -> None:
        assert segments
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        self._sealed_bytes = sum(segment.size for segment in segments[:-1])
