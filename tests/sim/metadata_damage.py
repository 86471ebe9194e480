"""Damages the files of one node's metadata log, as a disk, a crash or a person may do."""

from collections.abc import Callable
from random import Random

from tidelog.node.metadata import metadata_mark
from tidelog.node.metadata.snapshot_files import DIRECTORY
from tidelog.sim.machines.disk import SimDisk

KINDS = (
    "flip",
    "cut",
    "empty",
    "delete",
    "garbage",
    "swap",
    "copy over",
    "directory gone",
    "zeros",
)


def files(disk: SimDisk) -> list[str]:
    """All files of the metadata log, and the file `metadata-log-mark`."""
    found = [f"{DIRECTORY}/{name}" for name in disk.list(DIRECTORY)]
    return [path for path in found if "damaged" not in path] + [metadata_mark.PATH]


def damage(disk: SimDisk, kind: str, random: Random, among: Callable[[str], bool]) -> str:
    """Apply one kind of damage to one or two files; return a description."""
    chosen = [path for path in files(disk) if among(path) and disk.exists(path)]
    if kind == "directory gone" or not chosen:
        disk.remove_tree(DIRECTORY)
        return "the directory is gone"
    path = random.choice(chosen)
    content = disk.read_file(path)
    other = random.choice(chosen)
    if kind == "flip" and content:
        disk.flip_bit(path, random.randrange(len(content) * 8))
    elif kind == "cut":
        disk.write_file(path, content[: random.randrange(len(content) + 1)])
    elif kind == "delete":
        disk.remove(path)
    elif kind == "garbage":
        disk.write_file(path, random.randbytes(len(content) or 10))
    elif kind == "zeros":
        start = random.randrange(len(content) + 1)
        disk.write_file(path, content[:start] + bytes(len(content) - start))
    elif kind == "swap":
        theirs = disk.read_file(other)
        disk.write_file(path, theirs)
        disk.write_file(other, content)
    elif kind == "copy over":
        disk.write_file(path, disk.read_file(other))
    else:
        disk.write_file(path, b"")
    return f"{kind}: {path}, {other}"
