"""Renames files that do not fit their log, so that loading ignores them and they can be inspected.

Invariant: no file is deleted here, because it may be the only copy of its records.
"""

from tidelog.log import names
from tidelog.model.disk import Disk


def set_aside(disk: Disk, path: str) -> str:
    """Rename a file or directory so that loading ignores it; returns its new path."""
    new, number = path + names.SET_ASIDE, 1
    while disk.exists(new):
        number += 1
        new = f"{path}.{number}{names.SET_ASIDE}"
    disk.rename(path, new)
    return new
