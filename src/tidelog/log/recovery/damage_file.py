"""The unreadable or lost ranges of a log (`damage-checkpoint`), kept across restarts.

After a clean shutdown, loading skips the scan that finds damage. So without this file, loading
would treat a damaged log as complete (F54). The file exists only while there is damage.
"""

from collections.abc import Sequence

from tidelog.log import names
from tidelog.log.checkpoints import checkpoints
from tidelog.log.results import Damage
from tidelog.model.disk import Disk
from tidelog.model.ids import Offset


def read(disk: Disk, directory: str) -> list[tuple[Offset, Offset]]:
    """The damaged ranges; (0, 0) if the file is unreadable, so that loading scans the whole log."""
    pairs, was_sound = checkpoints.read_pairs(disk, _path(directory))
    return pairs if was_sound else [(0, 0)]


def write(disk: Disk, directory: str, damages: Sequence[Damage]) -> None:
    """Replace the file, or remove it if there is no damage."""
    if damages:
        pairs = [(one.first_offset, one.end_offset) for one in damages]
        disk.write_file(_path(directory), checkpoints.encode_pairs(pairs))
    else:
        disk.remove(_path(directory))


def _path(directory: str) -> str:
    return f"{directory}/{names.DAMAGE_CHECKPOINT}"
