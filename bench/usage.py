"""What processes take of a machine, as Linux tells it."""

import os
import threading
import time
from pathlib import Path

SAMPLE_SECONDS = 0.5


def cpu_seconds(pid: int) -> float:
    """Of one process that runs."""
    return _ticks(_fields(Path(f"/proc/{pid}"))) / os.sysconf("SC_CLK_TCK")


class Usage:
    """What a process and all that it started took of the CPU, and held at once at most."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = 0
        self._ticks: dict[int, int] = {}
        """Of the CPU, by process: what each had taken when it was last seen."""
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def totals(self) -> tuple[float, int]:
        """Seconds and bytes, once all is over."""
        self._thread.join()
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK"), self._peak

    def _watch(self) -> None:
        while held := self._held():
            self._peak = max(self._peak, held)
            time.sleep(SAMPLE_SECONDS)

    def _held(self) -> int:
        parents, sizes, ticks = {}, {}, {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    fields = _fields(entry)
                except OSError:
                    continue
                parents[int(entry.name)] = int(fields[1])
                sizes[int(entry.name)] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
                ticks[int(entry.name)] = _ticks(fields)
        ours = {self._pid} & sizes.keys()
        while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
            ours |= more
        self._ticks |= {pid: ticks[pid] for pid in ours}
        return sum(sizes[pid] for pid in ours)


def _fields(process: Path) -> list[str]:
    """Those that come after the command's name, which may contain anything."""
    return (process / "stat").read_text().rpartition(")")[2].split()


def _ticks(fields: list[str]) -> int:
    return int(fields[11]) + int(fields[12])
