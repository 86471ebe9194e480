"""CPU time and memory of processes, from Linux's /proc."""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tidelog.model.user_error import UserError

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_BUSY_FIELDS = (1, 2, 3, 6, 7)
"""User, nice, system, interrupts and soft interrupts in the line `cpu` of /proc/stat."""


class Span(NamedTuple):
    """A measured stretch of time."""

    seconds: float
    broker_cpu: float
    """CPU seconds of the brokers."""
    others: float
    """The share of a core that other processes used; neither the brokers nor this process."""


class SpanMeter:
    """Measures from its creation until `end`."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)
        self._began = time.monotonic()
        self._brokers = cpu_seconds(self._pids)
        self._ours = time.process_time()
        self._machine = _busy_seconds()

    def end(self) -> Span:
        seconds = time.monotonic() - self._began
        brokers = cpu_seconds(self._pids) - self._brokers
        ours = time.process_time() - self._ours
        others = max(0.0, _busy_seconds() - self._machine - brokers - ours)
        return Span(seconds, brokers, others / seconds)


def check_system() -> None:
    if not Path("/proc/self/stat").exists():
        raise UserError("the benchmark reads CPU time from /proc, which only Linux has.")


def cpu_seconds(pids: Iterable[int]) -> float:
    """The CPU seconds that these running processes have used since their start."""
    return sum(_ticks(pid) for pid in pids) / _TICKS


def resident_mib(pids: Iterable[int]) -> float:
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * _PAGE / 2**20


def _ticks(pid: int) -> int:
    # The name of the command is in brackets and may contain any character.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _busy_seconds() -> float:
    fields = Path("/proc/stat").read_text().splitlines()[0].split()
    return sum(int(fields[field]) for field in _BUSY_FIELDS) / _TICKS
