"""Requests that wait for an offset. A waiting request takes no CPU time until the offset moves."""

from collections import deque
from collections.abc import Iterator
from typing import TypeVar

from tidelog.model.ids import Offset

T = TypeVar("T")


class OffsetWaiters(deque[tuple[Offset, T]]):
    """The waiters for one partition's offset, released in order of arrival.

    Appends arrive in offset order, so the oldest waiter always waits for the lowest offset.
    """

    __slots__ = ()

    def add(self, offset: Offset, waiter: T) -> None:
        # A duplicate batch waits for the offset of its original, which may be lower than the offset
        # of an earlier waiter. In that case, the duplicate is released together with the earlier
        # waiter, at most one commit later than necessary.
        self.append((offset, waiter))

    def release(self, reached: Offset) -> Iterator[T]:
        """Release every waiter for `reached` or a lower offset."""
        while self and self[0][0] <= reached:
            yield self.popleft()[1]

    def drain(self) -> Iterator[T]:
        """Release every waiter, because the offset will not be reached."""
        while self:
            yield self.popleft()[1]
