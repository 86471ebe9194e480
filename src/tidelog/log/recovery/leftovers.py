"""Files that an interrupted deletion or compaction leaves in a partition's directory.

`.deleted` and `.cleaned` files are removed. A `.swap` file is the finished result of a compaction
that was interrupted before it replaced segments. Loading completes this replacement. If a
`.cleaned` file shows that the compaction did not finish, loading removes the `.swap` file instead.
In a log that is not compacted, no file may replace a segment, so `.swap` and `.cleaned` files are
set aside. A damaged `.swap` file is set aside too, because it would replace valid records (F54).
"""

from collections.abc import Callable
from typing import NamedTuple

from tidelog.log import names
from tidelog.log.recovery.set_aside import set_aside
from tidelog.log.segments import scan
from tidelog.log.segments.scan import BrokenChainError
from tidelog.model.disk import Disk
from tidelog.model.ids import Offset

_SNAPSHOT_OF_METADATA = ".checkpoint"
"""The suffix of snapshots of the metadata log, which are not leftovers."""


class Cleared(NamedTuple):
    names: list[str]
    """The files that remain after leftovers are removed and swaps are completed."""
    is_swapped: bool = False
    """Whether a compaction was completed, so that offsets may be missing."""
    notes: tuple[str, ...] = ()
    """One sentence about each file that was set aside."""


def clear(
    disk: Disk, directory: str, before_change: Callable[[], None], *, is_compacted: bool
) -> Cleared:
    found = disk.list(directory)
    unwanted = [name for name in found if _is_unwanted(disk, directory, name, is_compacted)]
    notes = []
    for name in unwanted:
        before_change()
        kept = set_aside(disk, f"{directory}/{name}")
        notes.append(f"{name} is not the result of a compaction: it is kept as {kept}")
    found = [name for name in found if name not in unwanted]
    cleaned = [name for name in found if name.endswith(names.CLEANED)]
    swaps = [name for name in found if name.endswith(names.SWAP)]
    rubbish = [
        name
        for name in found
        if name.endswith(names.DELETED)
        and not name.removesuffix(names.DELETED).endswith(_SNAPSHOT_OF_METADATA)
    ]
    if not (cleaned or swaps or rubbish):
        return Cleared(found, notes=tuple(notes))
    if cleaned or swaps:
        before_change()
    incomplete = min((_offset_in(name) for name in cleaned), default=None)
    if incomplete is not None:
        rubbish += [name for name in swaps if _offset_in(name) >= incomplete]
    for name in cleaned + rubbish:
        disk.remove(f"{directory}/{name}")
    swaps = [name for name in swaps if name not in rubbish]
    _complete(disk, directory, swaps)
    return Cleared(disk.list(directory), bool(swaps), tuple(notes))


def _is_unwanted(disk: Disk, directory: str, name: str, is_compacted: bool) -> bool:
    """Whether the file is named like the result of a compaction but cannot be used as one."""
    if not name.endswith((names.CLEANED, names.SWAP)):
        return False
    if not is_compacted:
        return True
    if name.endswith(names.CLEANED):
        return False
    log = names.offset_name(_offset_in(name), names.LOG) + names.SWAP
    return disk.exists(f"{directory}/{log}") and not _is_sound(
        disk, f"{directory}/{log}", _offset_in(name)
    )


def _is_sound(disk: Disk, path: str, base_offset: Offset) -> bool:
    """Whether all batches in the file are valid.

    A file that replaces a segment must not be empty.
    """
    file = disk.open(path)
    try:
        for _ in scan.batches(file, 0, file.size, base_offset):
            pass
    except BrokenChainError:
        return False
    return file.size > 0 or not disk.exists(path.removesuffix(names.SWAP))


def _complete(disk: Disk, directory: str, swaps: list[str]) -> None:
    """Remove the segments that the swaps replace, then rename the swaps."""
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
