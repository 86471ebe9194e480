"""Keeps the garbage collector from delaying the loop (F63).

A full collection visits every object, which takes 100 ms and more on a node with thousands of
partitions or parked requests. Objects that survive a long collection are frozen, so the collector
skips them until the next thaw. A thaw is due every `THAW_SECONDS`. Reference counting still frees
frozen objects. A frozen cycle that becomes garbage is freed after the next thaw. Without a thaw,
the memory of a node would grow without bound if topics are created and deleted all the time.
"""

import gc
from collections.abc import Callable
from time import monotonic, thread_time_ns
from typing import Any

LONG_NS = 10_000_000
THAW_SECONDS = 3_600.0
_FULL = 2


class LongCollections:
    """A callback for `gc.callbacks`."""

    def __init__(
        self,
        cpu_clock: Callable[[], int] = thread_time_ns,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._cpu_clock = cpu_clock
        self._clock = clock
        self._began_ns = 0
        self._thawed_at = clock()

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if info["generation"] < _FULL:
            return
        if phase == "start":
            self._maybe_thaw()
            self._began_ns = self._cpu_clock()
        elif self._cpu_clock() - self._began_ns >= LONG_NS:
            gc.freeze()

    def _maybe_thaw(self) -> None:
        """After `THAW_SECONDS`, let this collection visit the frozen objects too."""
        if self._clock() - self._thawed_at >= THAW_SECONDS:
            self._thawed_at = self._clock()
            gc.unfreeze()
