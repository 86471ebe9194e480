"""Sets aside directory entries whose file type does not match their name.

Examples are a directory in place of a file, a file in place of a directory, and a dangling link.

If an entry of the wrong type stayed, the first read or write of its name would fail and count as a
disk failure. The check runs before anything else in a log directory is read. A file that the check
has set aside counts as missing.
"""

from collections.abc import Iterator

from tidelog.log import names
from tidelog.log.recovery.set_aside import set_aside
from tidelog.model.disk import Disk

_TEMPORARY = ".tmp"
_IN_ROOT = (
    names.RECOVERY_POINT_CHECKPOINT,
    names.HIGH_WATERMARK_CHECKPOINT,
    names.LOG_START_CHECKPOINT,
    names.CLEANER_CHECKPOINT,
    names.CLEAN_SHUTDOWN,
    names.METADATA_LOG_MARK,
    names.MACHINE_BOOT,
)
_OF_IDENTITY = (
    names.META_PROPERTIES_COPY,
    names.META_PROPERTIES_COPY + _TEMPORARY,
    names.META_PROPERTIES + _TEMPORARY,
)
"""Files that the node can write again. An operator must repair `meta.properties` itself."""


def clear_identity(disk: Disk) -> list[str]:
    """Check the copy and the temporary files of `meta.properties`, before that file is read."""
    return _set_aside(disk, [name for name in disk.list_non_files("") if name in _OF_IDENTITY])


def clear(disk: Disk) -> list[str]:
    """Check a whole log directory; returns one sentence for each entry that was renamed."""
    directories = disk.list_directories("")
    partitions = {name for name in disk.list("") if names.partition_of(name) is not None}
    found = sorted(partitions.difference(directories))
    found += [name for name in disk.list_non_files("") if name.removesuffix(_TEMPORARY) in _IN_ROOT]
    for directory in directories:
        if directory in partitions:
            found += _inside(disk, directory)
    return _set_aside(disk, found)


def _inside(disk: Disk, directory: str) -> Iterator[str]:
    """The entries of a partition directory that are not files."""
    for name in disk.list_non_files(directory):
        if not name.endswith(names.SET_ASIDE):
            yield f"{directory}/{name}"


def _set_aside(disk: Disk, paths: list[str]) -> list[str]:
    return [
        f"{path} has the wrong file type: it is kept as {set_aside(disk, path)}" for path in paths
    ]
