"""Full garbage collections do not visit long-lived objects again and again (F63)."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from tidelog.runtime.long_collections import LONG_NS, THAW_SECONDS, LongCollections


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


def collect(generation: int, took_ns: int) -> int:
    """Collect once; return the number of objects that later collections leave out."""
    readings = iter([0, took_ns])
    callback = LongCollections(lambda: next(readings))
    gc.callbacks.append(callback)
    try:
        gc.collect(generation)
    finally:
        gc.callbacks.remove(callback)
    return gc.get_freeze_count()


def test_f63_what_survives_a_long_full_collection_is_not_looked_at_again() -> None:
    assert collect(2, LONG_NS) > 1_000


@pytest.mark.parametrize(("generation", "took_ns"), [(2, LONG_NS - 1), (1, 10 * LONG_NS)])
def test_short_collections_leave_everything_to_the_next_one(generation: int, took_ns: int) -> None:
    assert collect(generation, took_ns) == 0


class Cycle:
    def __init__(self) -> None:
        self.me = self


def test_f63_a_frozen_cycle_that_becomes_garbage_is_freed_after_a_while() -> None:
    now = 0.0
    callback = LongCollections(lambda: 0, lambda: now)
    cycle = Cycle()
    is_alive = weakref.ref(cycle)
    gc.freeze()
    del cycle
    gc.callbacks.append(callback)
    try:
        gc.collect()
        assert is_alive()
        now = THAW_SECONDS
        gc.collect()
        assert not is_alive()
    finally:
        gc.callbacks.remove(callback)
