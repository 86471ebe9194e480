"""Requests that wait for an offset: parked, they cost nothing until something moves."""

from collections import deque
from collections.abc import Iterator
from typing import TypeVar

from tidelog.model.ids import Offset

T = TypeVar("T")


class OffsetWaiters(deque[tuple[Offset, T]]):
    """Waiters for one partition's offset, released in the order in which they came.

    Appends come in offset order, so the oldest waiter always waits for the lowest offset.
    """

    __slots__ = ()

    def add(self, offset: Offset, waiter: T) -> None:
        # A duplicate is answered with its first offset, which may lie below a later waiter's; to
        # be released with its elders delays it by no more than the commit that is under way.
        self.append((offset, waiter))

    def release(self, reached: Offset) -> Iterator[T]:
        """Everyone who waited for `reached` or less."""
        while self and self[0][0] <= reached:
            yield self.popleft()[1]

    def drain(self) -> Iterator[T]:
        """Everyone, since what they wait for will not come."""
        while self:
            yield self.popleft()[1]
