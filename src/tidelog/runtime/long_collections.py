"""Keeps the garbage collector from delaying the loop (F63).

A full collection visits every object, which takes 100 ms and more on a node with thousands of
partitions or parked requests. Objects that survive a long collection are not visited again. They
are still freed by reference counting; only a cycle that becomes garbage later is not.
"""

import gc
from collections.abc import Callable
from time import thread_time_ns
from typing import Any

LONG_NS = 10_000_000
_FULL = 2


class LongCollections:
    """A callback for `gc.callbacks`."""

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
