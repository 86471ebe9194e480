"""The last offset of each key, like `OffsetMap`, for many keys at once.

A slot takes 24 bytes: two words of a hash and an offset. A slot is free if its first word is 0.
Invariant: at most `capacity` slots are in use, so every search ends at a free slot. If several keys
of a call want the same free slot, numpy stores them one after the other, and the last one gets the
slot. The others find it occupied.
"""

import numpy as np
from numpy.typing import NDArray

from tidelog.log.cleaner.offset_map import fitting_slots
from tidelog.log.cleaner.vectors.key_hashes import Positions, Words
from tidelog.model.ids import NO_OFFSET


class VectorMap:
    def __init__(self, slots: int, load_percent: int) -> None:
        self.slots, self.capacity = fitting_slots(slots, load_percent)
        self.count = 0
        self._first = np.zeros(self.slots, np.uint64)
        self._second = np.zeros(self.slots, np.uint64)
        self._offsets = np.zeros(self.slots, np.int64)

    def has_space_for(self, first: Words, second: Words) -> bool:
        """Whether these keys can be put into the map."""
        if self.count + len(first) <= self.capacity:
            return True
        is_new = self.last_offsets(first, second) < 0
        pairs = np.stack((first[is_new], second[is_new]))
        return bool(self.count + np.unique(pairs, axis=1).shape[1] <= self.capacity)

    def put(self, first: Words, second: Words, offsets: Positions) -> None:
        """Set the last offsets of keys. The offsets must increase, and there must be space."""
        slot, step = self._probe(first, second)
        while len(slot):
            is_free = self._first[slot] == 0
            free, mine = slot[is_free], offsets[is_free]
            if len(free):
                self._first[free], self._second[free] = first[is_free], second[is_free]
                self._offsets[free] = mine
                self.count += int(np.count_nonzero(self._offsets[free] == mine))
            is_same = self._is_same(slot, first, second)
            held, mine = slot[is_same], offsets[is_same]
            is_later = mine > self._offsets[held]
            self._offsets[held[is_later]] = mine[is_later]
            left = np.flatnonzero(~is_same)
            first, second, offsets, step = first[left], second[left], offsets[left], step[left]
            slot = (slot[left] + step) % self.slots

    def last_offsets(self, first: Words, second: Words) -> Positions:
        """The last offset of each key; -1 if the map does not hold the key."""
        found = np.full(len(first), NO_OFFSET, np.int64)
        slot, step = self._probe(first, second)
        rows = np.arange(len(first))
        while len(slot):
            is_same = self._is_same(slot, first, second)
            found[rows[is_same]] = self._offsets[slot[is_same]]
            left = np.flatnonzero(~is_same & (self._first[slot] != 0))
            first, second, rows, step = first[left], second[left], rows[left], step[left]
            slot = (slot[left] + step) % self.slots
        return found

    def _probe(self, first: Words, second: Words) -> tuple[Positions, Positions]:
        slot = (first % np.uint64(self.slots)).astype(np.int64)
        step = (second % np.uint64(self.slots - 1)).astype(np.int64)
        return slot, step + 1

    def _is_same(self, slot: Positions, first: Words, second: Words) -> NDArray[np.bool_]:
        is_same: NDArray[np.bool_] = self._first[slot] == first
        is_same &= self._second[slot] == second
        return is_same
