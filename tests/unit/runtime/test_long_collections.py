"""Full collections do not look again and again at what stays (F63)."""

import gc
from collections.abc import Iterator

import pytest

from tidelog.runtime.long_collections import LONG_NS, LongCollections


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


def collect(generation: int, took_ns: int) -> int:
    """-> how many objects are left out from now on."""
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
