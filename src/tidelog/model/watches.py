"""Watches, through which a partition notifies fetch sessions that it has moved.

A partition has moved if a fetch could return something new for it. Otherwise the partition is at
rest. Invariant: a partition that is not in `SessionWatch.moved` has nothing new to return. A fetch
therefore reads only partitions that have moved.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tidelog.model.ids import NO_NODE, Millis, NodeId

if TYPE_CHECKING:
    from tidelog.model.effects import PartitionFetch


class WatchListener(Protocol):
    """An object that a partition notifies: a parked fetch, or a session with the partition."""

    def mark(self) -> None:
        """Note that the partition may have a new result. This does not wake a fetch."""

    @property
    def waiting(self) -> Iterable["ParkedFetch"]:
        """The parked fetches to wake when there may be something to return."""


class ParkedFetch(Protocol):
    """A fetch that waits until there is something to return."""

    @property
    def order(self) -> int:
        """The position of this fetch among all parked fetches."""

    def wake(self) -> None: ...


class WatchedPartition(Protocol):
    """A partition that can be watched."""

    def fetched_at_end(self, watch: "PartitionWatch") -> None:
        """Record that all fetches of the session so far have found the partition at rest."""

    def unwatch(self, watch: "PartitionWatch") -> None: ...


Watched = TypeVar("Watched", bound="PartitionWatch")


class SessionWatch(ABC, Generic[Watched]):
    """One fetch session: the partitions that have moved, and the parked fetches."""

    __slots__ = ("_is_over", "fetched_at", "moved", "replica", "waiting")

    def __init__(self) -> None:
        self.moved: dict[Watched, None] = {}
        self.waiting: dict[ParkedFetch, None] = {}
        self.replica: NodeId = NO_NODE
        """The follower that owns the session."""
        self.fetched_at: Millis = -1
        """The time of the follower's last fetch, which counts for every partition at rest."""
        self._is_over = False

    @abstractmethod
    def due(self) -> "list[PartitionFetch]":
        """The reads for the partitions that have moved, in the session's order."""

    @abstractmethod
    def release(self) -> None:
        """Stop watching all partitions."""

    @abstractmethod
    def forget(self) -> None:
        """Drop all partitions of a session that has ended, so that no reference cycle remains."""

    def park(self, fetch: ParkedFetch) -> None:
        self.waiting[fetch] = None

    def unpark(self, fetch: ParkedFetch) -> None:
        self.waiting.pop(fetch, None)
        if self._is_over and not self.waiting:
            self._close()

    def end(self) -> None:
        """End the session. Fetches that are parked in it are still woken."""
        self._is_over = True
        if not self.waiting:
            self._close()

    def _close(self) -> None:
        self.release()
        self.moved.clear()
        self.forget()


class PartitionWatch:
    """One partition of a fetch session. The watch is at rest until the partition moves."""

    __slots__ = ("session", "watched_partition")

    def __init__(self, session: SessionWatch[Any] | None) -> None:
        self.session = session
        """None for a read outside a session, and after the end of the session."""
        self.watched_partition: WatchedPartition | None = None

    @property
    def is_at_rest(self) -> bool:
        return self.session is not None and self not in self.session.moved

    def mark(self) -> None:
        session = self.session
        if session is not None and self not in session.moved:
            session.moved[self] = None
            if self.watched_partition is not None:
                self.watched_partition.fetched_at_end(self)

    @property
    def waiting(self) -> Iterable[ParkedFetch]:
        return self.session.waiting if self.session is not None else ()

    def rest(self) -> None:
        """Mark the partition as at rest, because the client has everything that can be read."""
        if self.session is not None:
            self.session.moved.pop(self, None)

    def release(self) -> None:
        self.mark()
        if self.watched_partition is not None:
            self.watched_partition.unwatch(self)
            self.watched_partition = None


def mark_all(listeners: dict[WatchListener, None]) -> None:
    for listener in listeners:
        listener.mark()


def wake_all(listeners: dict[WatchListener, None]) -> None:
    """Mark all listeners and wake their fetches, starting with the one that has waited longest."""
    waiting: list[ParkedFetch] = []
    for listener in listeners:
        listener.mark()
        waiting += listener.waiting
    if len(waiting) > 1:
        waiting.sort(key=_ORDER)
    for fetch in waiting:
        fetch.wake()


_ORDER = attrgetter("order")
