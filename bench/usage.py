"""CPU time and memory of processes, from Linux's /proc."""

import os
import threading
import time
from pathlib import Path

SAMPLE_SECONDS = 0.5


def cpu_seconds(pid: int) -> float:
    """CPU seconds of one running process."""
    return _ticks(_fields(Path(f"/proc/{pid}"))) / os.sysconf("SC_CLK_TCK")


class Usage:
    """CPU time and peak memory of a process and all of its descendants."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = 0
        self._ticks: dict[int, int] = {}
        """The CPU ticks of each process when the process was last seen."""
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def totals(self) -> tuple[float, int]:
        """CPU seconds and peak memory in bytes. Waits until the process has ended."""
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
    """The fields of /proc/PID/stat after the command name, which may contain any character."""
    return (process / "stat").read_text().rpartition(")")[2].split()


def _ticks(fields: list[str]) -> int:
    return int(fields[11]) + int(fields[12])
