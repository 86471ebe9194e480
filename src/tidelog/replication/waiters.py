"""Requests that wait for an offset: parked, they cost nothing until something moves."""

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from tidelog.model.ids import Offset

T = TypeVar("T")


class OffsetWaiters(Generic[T]):
    """Waiters for one partition's offset, released in the order in which they came.

    Appends come in offset order, so the oldest waiter always waits for the lowest offset.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[tuple[Offset, T]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, offset: Offset, waiter: T) -> None:
        # A duplicate is answered with its first offset, which may lie below a later waiter's; to
        # be released with its elders delays it by no more than the commit that is under way.
        self._waiting.append((offset, waiter))

    def release(self, reached: Offset) -> Iterator[T]:
        """Everyone who waited for `reached` or less."""
        while self._waiting and self._waiting[0][0] <= reached:
            yield self._waiting.popleft()[1]

    def drain(self) -> Iterator[T]:
        """Everyone, since what they wait for will not come."""
        while self._waiting:
            yield self._waiting.popleft()[1]
