"""Long work in slices, so that a node can serve other clients between two slices.

`Steps` is work that can pause: a generator that yields between slices and returns the result. A
`Meter` decides when a slice is used up. The meter counts fields, not time, so a slice is the same
amount of work on every machine and in the simulator.
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.pieces import ANY_NUMBER

R = TypeVar("R")

Steps: TypeAlias = Generator[None, None, R]

SLICE_FIELDS = 3_000
"""The number of fields to read, convert or write per slice. A field takes about a microsecond."""

SLICE_BYTES = 16 * 1024
"""A slice of reading ends after this many bytes, however few fields they contain."""

RECORDS_PER_SLICE = 1_000
"""The number of metadata records to decode, apply or encode per slice.

A record takes 2 microseconds to apply, 3 to encode and 8 to decode.
"""


class Meter:
    """Counts the fields left in a slice, and the array elements that a message may still have."""

    __slots__ = ("_elements", "_left", "_limit")

    def __init__(self, max_elements: int = ANY_NUMBER) -> None:
        self._left = SLICE_FIELDS
        self._limit = self._elements = max_elements

    def spend(self, fields: int) -> bool:
        """Count completed work; returns whether the slice is used up."""
        self._left -= fields
        if self._left > 0:
            return False
        self._left = SLICE_FIELDS
        return True

    def count(self, elements: int) -> None:
        """Count array elements before they are read; raises MalformedMessage over the limit."""
        self._elements -= elements
        if self._elements < 0:
            counted = self._limit - self._elements
            raise MalformedMessage(f"{counted} array elements, over the limit of {self._limit}")


def finish(steps: Steps[R]) -> R:
    """Run all slices at once, for messages that are known to be small."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: R = done.value
            return result
