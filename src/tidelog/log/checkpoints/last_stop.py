"""How the last process that used a log directory ended, and which of its writes may be lost.

A process that is killed loses no write, because the operating system keeps unsynced data and writes
it to disk later. Only power loss or a crash of the operating system loses unsynced data. The file
`machine-boot` tells these cases apart. It holds the id of the machine boot in which every log of
the directory was last known to be valid. If the machine has not rebooted since then, invalid bytes
in a log are damage, and the valid batches after them are kept. If the machine has rebooted, invalid
bytes past the recovery point may come from a write that was not synced. In this case, the bytes
after them may be older than the bytes before them.
"""

from enum import Enum

from tidelog.log import names
from tidelog.model.disk import Disk


class LastStop(Enum):
    CLEAN = "clean"
    """The process closed and synced every log."""
    KILLED = "killed"
    """The process ended without closing its logs, but the machine has not rebooted since then."""
    UNKNOWN = "unknown"
    """Writes that were not synced may be lost."""


class BootMark:
    __slots__ = ("_disk", "is_current")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.is_current = _is_current(disk)
        """Whether every log of the directory was valid in the current boot of the machine."""

    def set(self) -> None:
        """Record that every log of the directory is valid in this boot of the machine.

        The file needs no fsync. Power loss may damage the file. But after power loss the machine
        has a new boot id, which no old content of the file can equal.
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
