"""The clusters that `tidelog up` runs for this user, one small file per cluster.

`up` writes the file when its cluster is ready, and removes it at the end. If the process that wrote
a file has ended, readers ignore and remove the file. A later process may have the same pid, so the
file also has the start time of the process that wrote it.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_STATE_FIELD, _START_FIELD = 0, 19
"""The indexes of fields in /proc/PID/stat, counted after the name of the process."""


class RunningCluster(NamedTuple):
    directory: Path
    bootstrap: str
    pid: int
    """The process of `up`."""
    started: int
    """When the process of `up` started, in clock ticks since the machine booted."""

    @property
    def shown_directory(self) -> str:
        here = Path.cwd()
        inside = self.directory.is_relative_to(here) and self.directory != here
        return str(self.directory.relative_to(here) if inside else self.directory)

    @property
    def port(self) -> str:
        """The port of the cluster's first broker."""
        return self.bootstrap.partition(",")[0].rpartition(":")[2]


def state_directory() -> Path | None:
    """The directory of these files; None if the user has no home directory."""
    given = os.environ.get("XDG_STATE_HOME", "")
    try:
        # The XDG specification requires that a relative path is ignored.
        base = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return base / "tidelog" / "clusters"


def remember(directory: Path, bootstrap: str) -> None:
    """Write the file of this process's cluster; do nothing if the file cannot be written."""
    state = state_directory()
    started = _start_time(os.getpid())
    if state is None or started is None:
        return
    cluster = RunningCluster(directory.absolute(), bootstrap, os.getpid(), started)
    with suppress(OSError, UnicodeError):
        state.mkdir(parents=True, exist_ok=True)
        draft = state / f".{os.getpid()}.tmp"
        draft.write_text(json.dumps({**cluster._asdict(), "directory": str(cluster.directory)}))
        draft.rename(state / _file_name(directory))


def forget(directory: Path) -> None:
    """Remove the file of the cluster in this directory."""
    state = state_directory()
    if state is not None:
        with suppress(OSError):
            (state / _file_name(directory)).unlink()


def running_clusters() -> list[RunningCluster]:
    """The clusters that run now, sorted by directory."""
    state = state_directory()
    if state is None or not state.is_dir():
        return []
    found = []
    for file in sorted(state.glob("*.json")):
        cluster = _read(file)
        if cluster is not None and _start_time(cluster.pid) == cluster.started:
            found.append(cluster)
        else:
            with suppress(OSError):
                file.unlink()
    return sorted(found)


def listed(clusters: Sequence[RunningCluster]) -> str:
    """`a (port 1), b (port 2) and c (port 3)`."""
    shown = [f"{one.shown_directory} (port {one.port})" for one in clusters]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _file_name(directory: Path) -> str:
    path = os.fsencode(directory.absolute())
    return f"{hashlib.sha256(path).hexdigest()[:16]}.json"


def _read(file: Path) -> RunningCluster | None:
    try:
        noted = json.loads(file.read_text())
        directory, bootstrap = Path(noted["directory"]), str(noted["bootstrap"])
        return RunningCluster(directory, bootstrap, int(noted["pid"]), int(noted["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _start_time(pid: int) -> int | None:
    """The start time of a process; None if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[_STATE_FIELD] == "Z" else int(fields[_START_FIELD])
