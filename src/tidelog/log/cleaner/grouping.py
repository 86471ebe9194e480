"""Groups neighbouring segments that one new segment replaces, so that segments stay large."""

from collections.abc import Sequence

from tidelog.log.config import LogConfig
from tidelog.log.segments.rolling import MAX_RELATIVE_OFFSET
from tidelog.log.segments.segment import Segment
from tidelog.model.ids import Offset


def group_segments(
    segments: Sequence[Segment], config: LogConfig, end: Offset
) -> list[list[Segment]]:
    """Groups whose logs and indexes together are within the limits of one segment.

    `end` is the end offset of the last segment.
    """
    groups: list[list[Segment]] = []
    sizes = (0, 0, 0)
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else end
        added = (
            segment.size,
            segment.offset_index.entries.size,
            segment.time_index.entries.size,
        )
        together = (sizes[0] + added[0], sizes[1] + added[1], sizes[2] + added[2])
        fits = (
            groups
            and together[0] <= config.segment_bytes
            and max(together[1:]) <= config.segment_index_bytes
            and (
                segment.size == 0
                or following - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET
            )
        )
        if fits:
            groups[-1].append(segment)
            sizes = together
        else:
            groups.append([segment])
            sizes = added
    return groups
