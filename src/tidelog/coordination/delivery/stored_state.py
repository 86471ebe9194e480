"""What the leader of a share partition exchanges with the share coordinator."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from tidelog.model.ids import LeaderEpoch, Offset


class StateBatch(NamedTuple):
    """The persisted delivery state of consecutive records."""

    first: Offset
    last: Offset
    state: int
    delivery_count: int


class StoredState(NamedTuple):
    """The state of a share partition that a new leader reads."""

    start_offset: Offset
    state_epoch: int
    batches: tuple[StateBatch, ...] = ()


class StateWrite(NamedTuple):
    """A change that the leader persists before it takes effect."""

    start_offset: Offset
    state_epoch: int
    leader_epoch: LeaderEpoch
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


def combine(
    old: Iterable[StateBatch], new: Iterable[StateBatch], start: Offset
) -> tuple[StateBatch, ...]:
    """Merge two lists of batches into one without overlaps, from the start offset on.

    Where two batches overlap, the higher delivery count wins, and the later state among equal
    counts. Neighbours in the same state become one batch.
    """
    batches = [batch for batch in (*old, *new) if batch.last >= start]
    if len(batches) == 1 and batches[0].first >= start:
        return tuple(batches)
    edges = sorted({max(b.first, start) for b in batches} | {b.last + 1 for b in batches})
    batches.sort(key=lambda batch: batch.first)
    merged: list[StateBatch] = []
    active: list[StateBatch] = []
    upcoming = 0
    for first, end in pairwise(edges):
        active = [batch for batch in active if batch.last >= first]
        while upcoming < len(batches) and batches[upcoming].first <= first:
            active.append(batches[upcoming])
            upcoming += 1
        if not active:
            continue
        _, _, state, count = max(active, key=_priority)
        last = merged[-1] if merged else None
        if last is not None and last.last + 1 == first and last[2:] == (state, count):
            merged[-1] = last._replace(last=end - 1)
        else:
            merged.append(StateBatch(first, end - 1, state, count))
    return tuple(merged)


def _priority(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.state
