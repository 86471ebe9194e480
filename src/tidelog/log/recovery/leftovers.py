"""Files that an interrupted deletion or compaction leaves in a partition's directory.

`.deleted` and `.cleaned` are rubbish. A `.swap` is the finished result of a compaction that was
about to replace segments: it is put in their place, unless a `.cleaned` beside it says it was
not complete. In a log that nobody compacts nothing replaces a segment: such files are set aside.
"""

from collections.abc import Callable

from tidelog.log import names
from tidelog.log.recovery.set_aside import set_aside
from tidelog.log.segments import scan
from tidelog.log.segments.scan import BrokenChainError
from tidelog.model.disk import Disk
from tidelog.model.ids import Offset

_SNAPSHOT_OF_METADATA = ".checkpoint"
"""KRaft's own snapshots live and die by other rules."""


def clear(
    disk: Disk, directory: str, before_change: Callable[[], None], *, is_compacted: bool
) -> list[str]:
    """The names that remain once leftovers are removed and swaps are completed."""
    found = disk.list(directory)
    if not is_compacted:
        for name in found:
            if name.endswith((names.CLEANED, names.SWAP)):
                before_change()
                set_aside(disk, f"{directory}/{name}")
        found = [name for name in found if not name.endswith((names.CLEANED, names.SWAP))]
    cleaned = [name for name in found if name.endswith(names.CLEANED)]
    swaps = [name for name in found if name.endswith(names.SWAP)]
    rubbish = [
        name
        for name in found
        if name.endswith(names.DELETED)
        and not name.removesuffix(names.DELETED).endswith(_SNAPSHOT_OF_METADATA)
    ]
    if not (cleaned or swaps or rubbish):
        return found
    if cleaned or swaps:
        before_change()
    incomplete = min((_offset_in(name) for name in cleaned), default=None)
    if incomplete is not None:
        rubbish += [name for name in swaps if _offset_in(name) >= incomplete]
    for name in cleaned + rubbish:
        disk.remove(f"{directory}/{name}")
    _complete(disk, directory, [name for name in swaps if name not in rubbish])
    return disk.list(directory)


def _complete(disk: Disk, directory: str, swaps: list[str]) -> None:
    """Remove the segments that the swaps replace, then give the swaps their names."""
    logs = [name for name in swaps if name.removesuffix(names.SWAP).endswith(names.LOG)]
    if logs:
        first = min(_offset_in(name) for name in logs)
        end = max(_end_offset(disk, f"{directory}/{name}", _offset_in(name)) for name in logs)
        for name in disk.list(directory):
            parsed = names.segment_file(name)
            if parsed is not None and first <= parsed[0] < end:
                disk.remove(f"{directory}/{name}")
    for name in swaps:
        path = f"{directory}/{name}"
        disk.rename(path, path.removesuffix(names.SWAP))


def _end_offset(disk: Disk, path: str, base_offset: Offset) -> Offset:
    file, end = disk.open(path), base_offset
    try:
        for _, header in scan.headers(file, 0, file.size, scan.NEAR, base_offset):
            end = header.next_offset
    except BrokenChainError:
        return end
    return end


def _offset_in(name: str) -> Offset:
    digits = name[:20]
    return int(digits) if digits.isascii() and digits.isdigit() else 0
