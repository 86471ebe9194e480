"""The last offset of each key in the dirty part of a log, in a fixed amount of memory.

Like Kafka's SkimpyOffsetMap, the map stores a hash of 16 bytes per key, never the key itself. A
slot takes 24 bytes. Two keys with the same hash would count as one key. The hash consists of two
values of Python's own hash function (SipHash), because it is four times faster than a digest, and
because its secret seed keeps clients from constructing collisions. Invariant: at most `capacity`
slots are in use, so a search always ends at an empty slot.
"""

from array import array

from tidelog.model.ids import NO_OFFSET, Offset

SLOT_BYTES = 24
DEFAULT_LOAD_PERCENT = 90
_SUFFIX = b"\1"
"""Makes the second half of a hash independent of the first half."""
_FEWEST_SLOTS = 3


class OffsetMap:
    """An open-addressing hash table in three arrays, with double hashing."""

    __slots__ = ("_first", "_offsets", "_second", "capacity", "count", "slots")

    def __init__(self, slots: int, load_percent: int = DEFAULT_LOAD_PERCENT) -> None:
        self.slots, self.capacity = fitting_slots(slots, load_percent)
        self.count = 0
        # A multiplication of arrays needs no second copy.
        self._first = array("q", [0]) * self.slots
        self._second = array("q", [0]) * self.slots
        self._offsets = array("q", [NO_OFFSET]) * self.slots

    def put(self, key: bytes, offset: Offset) -> bool:
        """Set the last offset of a key; returns False if the map is full and lacks the key."""
        first, second = hash(key), hash(key + _SUFFIX)
        firsts, offsets, slots = self._first, self._offsets, self.slots
        slot = first % slots
        step = 1 + second % (slots - 1)
        while offsets[slot] >= 0:
            if firsts[slot] == first and self._second[slot] == second:
                offsets[slot] = offset
                return True
            slot = (slot + step) % slots
        if self.count >= self.capacity:
            return False
        firsts[slot], self._second[slot], offsets[slot] = first, second, offset
        self.count += 1
        return True

    def get(self, key: bytes) -> Offset:
        """The last offset of a key; -1 if the map does not hold the key."""
        first, second = hash(key), hash(key + _SUFFIX)
        firsts, offsets, slots = self._first, self._offsets, self.slots
        slot = first % slots
        step = 1 + second % (slots - 1)
        while offsets[slot] >= 0:
            if firsts[slot] == first and self._second[slot] == second:
                found: Offset = offsets[slot]
                return found
            slot = (slot + step) % slots
        return NO_OFFSET


def slots_for(records: int, buffer_bytes: int, load_percent: int = DEFAULT_LOAD_PERCENT) -> int:
    """How many slots to allocate for a number of records, within the size of the buffer."""
    wanted = records * 100 // max(load_percent, 1) + 2 * _FEWEST_SLOTS
    # The next lower prime is less than 1 % below, so add this margin.
    return min(wanted + wanted // 64 + 16, buffer_bytes // SLOT_BYTES)


def fitting_slots(slots: int, load_percent: int) -> tuple[int, int]:
    """The number of slots of a map, and how many keys it may hold."""
    slots = _prime_at_most(max(slots, _FEWEST_SLOTS))
    return slots, min(max(1, slots * load_percent // 100), slots - 1)


def _prime_at_most(number: int) -> int:
    """The largest prime up to `number`. With a prime number of slots, a search visits them all."""
    while not _is_prime(number):
        number -= 1
    return number


def _is_prime(number: int) -> bool:
    if number < 4:
        return number > 1
    if number % 2 == 0:
        return False
    divisor = 3
    while divisor * divisor <= number:
        if number % divisor == 0:
            return False
        divisor += 2
    return True
