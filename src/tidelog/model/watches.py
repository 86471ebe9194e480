"""Fetch sessions as partitions see them: who is to be told that something has moved.

Invariant: a partition that is not among its session's `moved` would be answered for with nothing
new, so a fetch that finds nothing moved looks at no partition at all.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tidelog.model.ids import NO_NODE, Millis, NodeId

if TYPE_CHECKING:
    from tidelog.model.effects import PartitionFetch


class WatchListener(Protocol):
    """Told by a partition: a fetch that waits there, or a session that has the partition."""

    def mark(self) -> None:
        """An answer for the partition may have changed; that alone is no reason to give it."""

    @property
    def waiting(self) -> Iterable["Waiting"]:
        """The fetches to wake when there may be something to answer them with."""


class Waiting(Protocol):
    """A fetch that is parked."""

    @property
    def order(self) -> int:
        """Its turn among all that wait."""

    def wake(self) -> None: ...


class Subject(Protocol):
    """A partition that can be watched."""

    def fetched_at_end(self, watch: "PartitionWatch") -> None:
        """Every fetch of the session until now has found it at rest; from now on it moves."""

    def unwatch(self, watch: "PartitionWatch") -> None: ...


Watched = TypeVar("Watched", bound="PartitionWatch")


class SessionWatch(ABC, Generic[Watched]):
    """One fetch session: which of its partitions have moved, and which fetches wait for that."""

    __slots__ = ("_is_over", "fetched_at", "moved", "replica", "waiting")

    def __init__(self) -> None:
        self.moved: dict[Watched, None] = {}
        self.waiting: dict[Waiting, None] = {}
        self.replica: NodeId = NO_NODE
        """The follower whose session it is."""
        self.fetched_at: Millis = -1
        """When that follower fetched last: a proof for every partition that is at rest."""
        self._is_over = False

    @abstractmethod
    def due(self) -> "list[PartitionFetch]":
        """What is to be read of the partitions that have moved, in the session's order."""

    @abstractmethod
    def release(self) -> None:
        """Watch nothing any more."""

    def park(self, fetch: Waiting) -> None:
        self.waiting[fetch] = None

    def unpark(self, fetch: Waiting) -> None:
        self.waiting.pop(fetch, None)
        if self._is_over and not self.waiting:
            self.release()

    def end(self) -> None:
        """Given up, though a fetch that waits in it is still to be woken."""
        self._is_over = True
        if not self.waiting:
            self.release()


class PartitionWatch:
    """One partition of a fetch session, at rest until something moves."""

    __slots__ = ("session", "subject")

    def __init__(self, session: SessionWatch[Any] | None) -> None:
        self.session = session
        """None for what is read once."""
        self.subject: Subject | None = None

    @property
    def is_at_rest(self) -> bool:
        return self.session is not None and self not in self.session.moved

    def mark(self) -> None:
        session = self.session
        if session is not None and self not in session.moved:
            session.moved[self] = None
            if self.subject is not None:
                self.subject.fetched_at_end(self)

    @property
    def waiting(self) -> Iterable[Waiting]:
        return self.session.waiting if self.session is not None else ()

    def rest(self) -> None:
        """The client knows all that there is to know, and there is nothing to read."""
        assert self.session is not None
        self.session.moved.pop(self, None)

    def release(self) -> None:
        self.mark()
        if self.subject is not None:
            self.subject.unwatch(self)
            self.subject = None


def mark_all(listeners: dict[WatchListener, None]) -> None:
    for listener in listeners:
        listener.mark()


def wake_all(listeners: dict[WatchListener, None]) -> None:
    """Who has waited for longest comes first."""
    waiting: list[Waiting] = []
    for listener in listeners:
        listener.mark()
        waiting += listener.waiting
    if len(waiting) > 1:
        waiting.sort(key=_ORDER)
    for fetch in waiting:
        fetch.wake()


_ORDER = attrgetter("order")
