"""What the system knows of TCP sockets: which ports are listened on, and who owns a connection."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTEN = "0A"


class _Row(NamedTuple):
    local_port: int
    remote_port: int
    state: str
    inode: str


def is_supported() -> bool:
    return _TABLES[0].exists()


def listening_ports() -> set[int]:
    return {row.local_port for row in _rows() if row.state == _LISTEN}


def owner(local_port: int, remote_port: int, pids: Mapping[int, int]) -> int | None:
    """Which of these (id -> pid) holds the end of a connection that has these ports."""
    for row in _rows():
        if (row.local_port, row.remote_port) == (local_port, remote_port):
            return next((id for id, pid in pids.items() if row.inode in _inodes(pid)), None)
    return None


def remote_ports(pid: int) -> set[int]:
    """The ports at the other ends of a process's connections."""
    held = _inodes(pid)
    return {row.remote_port for row in _rows() if row.inode in held and row.state != _LISTEN}


def _rows() -> Iterator[_Row]:
    for path in _TABLES:
        with suppress(FileNotFoundError):
            for line in path.read_text().splitlines()[1:]:
                _, local, remote, state, *_, inode = line.split()[:10]
                yield _Row(_port(local), _port(remote), state, inode)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _inodes(pid: int) -> set[str]:
    """Of the sockets that a process holds."""
    found = set()
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                kind, _, inode = os.readlink(entry.path).partition(":")
                if kind == "socket":
                    found.add(inode.strip("[]"))
    return found
