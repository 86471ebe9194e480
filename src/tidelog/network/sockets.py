"""The TCP sockets of the system: listening ports, and the processes that own connections.

The system's tables list every connection of this machine, including those that ended within the
last minute. Because the tables may be long, they are searched as text, and only matching rows are
parsed.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING = re.compile(r":([0-9A-F]{4}) [0-9A-F]+:0000 0A ")
_ROW = r":{local} [0-9A-F]+:{remote} [0-9A-F]{{2}} \S+ \S+ \S+ +\d+ +\d+ (\d+)"
_ANY_PORT = "([0-9A-F]{4})"


def is_supported() -> bool:
    return _TABLES[0].exists()


def listening_ports() -> set[int]:
    return {int(port, 16) for table in _tables() for port in _LISTENING.findall(table)}


def owner(local_port: int, remote_port: int, pids: Mapping[int, int]) -> int | None:
    """The id of the node that owns this connection; `pids` maps node ids to process ids."""
    row = re.compile(_ROW.format(local=f"{local_port:04X}", remote=f"{remote_port:04X}"))
    for table in _tables():
        if found := row.search(table):
            return next((id for id, pid in pids.items() if found[1] in _inodes(pid)), None)
    return None


def owners(pids: Mapping[int, int]) -> dict[tuple[int, int], int]:
    """The id of the node that owns each connection, by the connection's local and remote port."""
    holders = {inode: id for id, pid in pids.items() for inode in _inodes(pid)}
    row = re.compile(_ROW.format(local=_ANY_PORT, remote=_ANY_PORT))
    found = (match for table in _tables() for match in row.finditer(table) if match[3] in holders)
    return {(int(match[1], 16), int(match[2], 16)): holders[match[3]] for match in found}


def remote_ports(pid: int) -> set[int]:
    """The remote ports of a process's connections."""
    held = _inodes(pid)
    row = re.compile(_ROW.format(local="[0-9A-F]{4}", remote=_ANY_PORT))
    found = (match for table in _tables() for match in row.finditer(table))
    return {int(match[1], 16) for match in found if match[2] in held} - {0}


def _tables() -> list[str]:
    return [path.read_text() for path in _TABLES if path.exists()]


def _inodes(pid: int) -> set[str]:
    """The inodes of the sockets that a process holds."""
    found = set()
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                kind, _, inode = os.readlink(entry.path).partition(":")
                if kind == "socket":
                    found.add(inode.strip("[]"))
    return found
