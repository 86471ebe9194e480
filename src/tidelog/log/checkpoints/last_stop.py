"""How the last process that used a log directory ended, and which of its writes may be lost.

A process that is killed loses no write, because the system keeps unsynced data until it reaches the
disk. Only power loss or a crash of the system loses such data. The file `machine-boot` tells these
cases apart: it names the boot of the machine in which every log of the directory was last valid. If
the machine has not booted since, invalid bytes in a log are damage, and valid batches behind them
are kept. Otherwise invalid bytes past the recovery point may come from a write that was not synced,
and the bytes behind them may be older than those before them.
"""

from enum import Enum

from tidelog.log import names
from tidelog.model.disk import Disk


class LastStop(Enum):
    CLEAN = "clean"
    """The process closed and synced every log."""
    KILLED = "killed"
    """The process ended without closing its logs, and the machine runs since then."""
    UNKNOWN = "unknown"
    """Writes that were not synced may be lost."""


class BootMark:
    __slots__ = ("_disk", "is_current")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.is_current = _is_current(disk)
        """Whether the machine has not booted since every log of the directory was valid."""

    def set(self) -> None:
        """Record that every log of the directory is valid in this boot of the machine.

        The file needs no fsync: whatever a power loss leaves of it, it does not name a later boot.
        """
        boot = self._disk.boot_id()
        if boot is not None and not self.is_current:
            self._disk.write_file(names.MACHINE_BOOT, f"{boot}\n".encode(), durable=False)
            self.is_current = True


def _is_current(disk: Disk) -> bool:
    boot = disk.boot_id()
    if boot is None or not disk.exists(names.MACHINE_BOOT):
        return False
    return disk.read_file(names.MACHINE_BOOT) == f"{boot}\n".encode()
