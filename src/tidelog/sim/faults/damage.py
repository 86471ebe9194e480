"""Damage at rest: a file changes without a write while its machine is down.

`is_visible` returns whether a node can detect the damage from Kafka's formats. If so, the node must
report the damage. Damage is not visible in these cases:

* The file is an index, a producer snapshot or an older metadata snapshot. These files are derived
  data, which a node validates only when it uses them. There is one exception: if the node stopped
  cleanly, a missing index is visible. In the metadata log, a missing index is visible only below
  the recovery point. A crash may leave later segments without an index, so every start scans these
  segments and rebuilds the index.
* A text file (checkpoints, quorum-state, meta.properties) has no checksum. If the damaged file is
  well-formed, a node cannot see that its numbers are wrong.
* If the node stopped uncleanly, damage after the recovery point of a log may look like an append
  that a kill interrupted, or like an append that a power loss removed.
* The topic id of the metadata log is constant, so its partition.metadata is never read.
* Files that were set aside or are about to be deleted are never read.
* The clean-shutdown mark and the boot mark are optional. If they are missing, a node assumes an
  unclean stop and a restart of its machine.
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from tidelog.log import names
from tidelog.model.dice import Dice
from tidelog.model.ids import METADATA_TOPIC, Offset
from tidelog.sim.machines.disk import SimDisk

METADATA = f"{METADATA_TOPIC}-0"
ROOT_CHECKPOINTS = (
    names.RECOVERY_POINT_CHECKPOINT,
    names.HIGH_WATERMARK_CHECKPOINT,
    names.LOG_START_CHECKPOINT,
)
_MARKS = (names.CLEAN_SHUTDOWN, names.MACHINE_BOOT)
QUORUM_STATE = "quorum-state"
_SNAPSHOT_OF_METADATA = ".checkpoint"
_INDEXES = (names.OFFSET_INDEX, names.TIME_INDEX)
_DERIVED = (*_INDEXES, names.TRANSACTION_INDEX, names.SNAPSHOT)
_OFFSETS = re.compile(rb"0\n(\d+)\n((?:\S+ \d+ \d+\n)*)")
_EPOCHS = re.compile(rb"0\n(\d+)\n((?:\d+ \d+\n)*)")
_META = re.compile(
    rb"(?s)(?=.*^cluster\.id=\S+$)(?=.*^node\.id=\d+$).*^directory\.id=\S{22}$", re.M
)
_TOPIC_ID = re.compile(rb"^topic_id: *(\S+) *$", re.M)
_NO_END: Offset = 1 << 62

Files = Mapping[str, bytes]
"""The content of a log directory, by path."""


class Harm(NamedTuple):
    what: str
    paths: tuple[str, ...]

    @property
    def names(self) -> set[str]:
        """The names of the damaged files. A report of the damage must contain one of them."""
        return names_of(self.paths)


def names_of(paths: tuple[str, ...]) -> set[str]:
    """The first part of each path, and other names for the metadata log that reports use."""
    found = {path.partition("/")[0] for path in paths}
    if METADATA in found:
        found |= {"metadata log", QUORUM_STATE, "snapshot"}
    return found


# -- which damage is visible


def is_visible(paths: tuple[str, ...], before: Files, after: Files, *, was_clean: bool) -> bool:
    """Whether the damage to one of these files can be detected."""
    return any(_shows(path, before, after, was_clean) for path in paths)


def recovery_points(files: Files) -> dict[str, Offset]:
    """The recovery point of each partition directory: records below it were synced."""
    text = files.get(names.RECOVERY_POINT_CHECKPOINT, b"").decode(errors="replace")
    rows = [line.split() for line in text.splitlines()[2:]]
    return {f"{row[0]}-{row[1]}": int(row[2]) for row in rows if len(row) == 3}


def _shows(path: str, before: Files, after: Files, was_clean: bool) -> bool:
    directory, _, name = path.rpartition("/")
    old, new = before.get(path), after.get(path)
    if old == new or name in _MARKS or _is_out_of_use(directory, name):
        return False
    if name.endswith(names.LOG):
        return was_clean or _end_of(path, before) <= recovery_points(before).get(directory, 0)
    if name.endswith(_DERIVED):
        is_missing = new is None and name.endswith(_INDEXES)
        return was_clean and is_missing and not _is_scanned_anyway(path, before)
    if name.endswith(_SNAPSHOT_OF_METADATA):
        return path == max(one for one in before if one.endswith(_SNAPSHOT_OF_METADATA))
    if name in ROOT_CHECKPOINTS:
        return was_clean if new is None else not _is_table(_OFFSETS, new)
    if name == names.PARTITION_METADATA:
        has_records = any(before[one] for one in before if _is_log_in(directory, one))
        is_lost = new is None and not has_records  # the file is written with the first record
        return directory != METADATA and not is_lost and _topic_id(new) != _topic_id(old)
    if new is None or old is None:
        return True
    if name == names.LEADER_EPOCH_CHECKPOINT:
        return not _is_table(_EPOCHS, new)
    if name == QUORUM_STATE:
        return not _is_state(new)
    return name != names.META_PROPERTIES or not _META.search(new)


def _is_out_of_use(directory: str, name: str) -> bool:
    """Whether the file was set aside or is about to be deleted, so that it is never read."""
    if name.endswith((names.DELETED, names.SET_ASIDE, ".damaged", ".tmp")):
        return True
    return bool(directory) and directory != METADATA and names.partition_of(directory) is None


def _is_log_in(directory: str, path: str) -> bool:
    return path.startswith(f"{directory}/") and path.endswith(names.LOG)


def _is_scanned_anyway(path: str, files: Files) -> bool:
    """Whether every start builds the indexes of this segment from its batches."""
    directory, _, name = path.rpartition("/")
    log = f"{directory}/{name.partition('.')[0]}{names.LOG}"
    return directory == METADATA and _end_of(log, files) > recovery_points(files).get(METADATA, 0)


def _end_of(path: str, files: Files) -> Offset:
    """The base offset of the next segment; `_NO_END` for the last segment."""
    directory, _, name = path.rpartition("/")
    bases = [
        names.offset_of(one.rpartition("/")[2], names.LOG)
        for one in files
        if one.startswith(f"{directory}/")
    ]
    base = names.offset_of(name, names.LOG)
    later = [one for one in bases if one is not None and base is not None and one > base]
    return min(later, default=_NO_END)


def _is_table(form: re.Pattern[bytes], content: bytes) -> bool:
    found = form.fullmatch(content)
    return found is not None and int(found[1]) == found[2].count(b"\n")


def _topic_id(content: bytes | None) -> bytes | None:
    found = None if content is None else _TOPIC_ID.search(content)
    return None if found is None else found[1]


def _is_state(content: bytes) -> bool:
    try:
        found = json.loads(content)
    except ValueError:
        return False
    return isinstance(found, dict) and all(
        isinstance(found.get(key), int) for key in ("leaderId", "leaderEpoch", "votedId")
    )


# -- damaging files


def damage(disk: SimDisk, dice: Dice) -> Harm | None:
    """Damage one or two files of the disk; return None if the damage would change nothing.

    meta.properties is excluded, because a node correctly refuses to start without this file.
    """
    paths = [path for path in disk.files() if path != names.META_PROPERTIES]
    path, other = _drawn(paths, dice), _drawn(paths, dice)
    content = disk.read_file(path)
    match dice.below(6):
        case 0 if content:
            bits = 1 << dice.below(4)
            for _ in range(bits):
                disk.flip_bit(path, dice.below(8 * len(content)))
            return Harm(f"{bits} bits flipped in {path}", (path,))
        case 1 if content:
            kept = dice.below(len(content))
            disk.rot(path, content[:kept])
            return Harm(f"{path} cut to {kept} bytes", (path,))
        case 2 if content:
            disk.rot(path, b"")
            return Harm(f"{path} emptied", (path,))
        case 3:
            disk.rot(path, None)
            return Harm(f"{path} deleted", (path,))
        case 4 if not _could_be(path, other):
            disk.rot(other, content)
            return Harm(f"{other} replaced by {path}", (other,))
        case 5 if not _could_be(path, other):
            disk.rot(path, disk.read_file(other))
            disk.rot(other, content)
            return Harm(f"{path} and {other} swapped", (path, other))
        case _:
            return None


def _could_be(one: str, other: str) -> bool:
    """Whether a node would accept one file in place of the other.

    A batch does not name its partition, so a node accepts the segments of another partition.
    """
    name = one.rpartition("/")[2]
    return one == other or (name.endswith(names.LOG) and name == other.rpartition("/")[2])


def _drawn(paths: list[str], dice: Dice) -> str:
    """Draw a directory, then a file in it, so that directories with many files are not favoured."""
    directories = sorted({path.rpartition("/")[0] for path in paths})
    directory = directories[dice.below(len(directories))]
    inside = [path for path in paths if path.rpartition("/")[0] == directory]
    return inside[dice.below(len(inside))]
