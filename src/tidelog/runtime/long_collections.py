"""Keeps the garbage collector from holding the loop up (F63).

A full collection looks at every object, for 100 ms and more where a node has thousands of
partitions or of parked requests. What survives one that took long is not looked at again: it is
still freed when nobody refers to it any more, and only a cycle that breaks later is not.
"""

import gc
from collections.abc import Callable
from time import thread_time_ns
from typing import Any

LONG_NS = 10_000_000
_FULL = 2


class LongCollections:
    """A callback of `gc`."""

    def __init__(self, cpu_clock: Callable[[], int] = thread_time_ns) -> None:
        self._cpu_clock = cpu_clock
        self._began_ns = 0

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if info["generation"] < _FULL:
            return
        if phase == "start":
            self._began_ns = self._cpu_clock()
        elif self._cpu_clock() - self._began_ns >= LONG_NS:
            gc.freeze()
