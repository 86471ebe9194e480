"""Incremental fetch sessions (KIP-227): a client names what changes, and is told what changed.

Invariant: a session's epoch goes up by one with each fetch, so that a lost or repeated request is
noticed; the partitions are those of the client's last word on each. Only those that have moved
since the client was told of them are looked at: the work is that of what changes, not of what is
watched.
"""

from collections import OrderedDict
from itertools import count
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from tidelog.model.dice import Dice
from tidelog.model.effects import PartitionFetch
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_EPOCH, NO_OFFSET, Millis, Offset, TopicPartition
from tidelog.model.watches import PartitionWatch, SessionWatch
from tidelog.protocol.fetch import FetchPartition, FetchRequest
from tidelog.protocol.pieces import TopicRef

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_MAX_EPOCH = 2**31 - 1
EVICTABLE_AFTER_MS = 120_000
"""Kafka's constant: a session used more recently is not given up for another."""

MAX_CACHED = 100_000
"""Partitions in all sessions together: what they take in memory is bounded."""

Key: TypeAlias = tuple[TopicRef, int]


class CachedPartition(PartitionWatch):
    """What the client asks of a partition, and what it was last told."""

    __slots__ = ("fetch", "high_watermark", "log_start_offset", "place", "read", "topic")

    def __init__(
        self,
        topic: TopicRef,
        fetch: FetchPartition,
        session: "FetchSession | None" = None,
        place: int = 0,
    ) -> None:
        super().__init__(session)
        self.topic = topic
        self.fetch = fetch
        self.place = place
        """Its turn among the partitions of the session."""
        self.read: PartitionFetch | None = None
        """What is asked, under the topic's name; None while there is no such topic."""
        self.high_watermark: Offset = NO_OFFSET
        self.log_start_offset: Offset = NO_OFFSET

    def read_as(self, name: str | None) -> PartitionFetch | None:
        """What to read, now that this is the topic's name."""
        read = self.read
        if name is None:
            self.read = None
        elif read is None or read.partition.topic != name:
            partition, epoch, offset, last_epoch, start, max_bytes, _, _ = self.fetch
            # Any negative epoch is none.
            self.read = PartitionFetch(
                TopicPartition(name, partition),
                offset,
                max_bytes,
                epoch if epoch >= 0 else NO_EPOCH,
                last_epoch if last_epoch >= 0 else NO_EPOCH,
                start,
                self,
            )
        return self.read


class FetchSession(SessionWatch[CachedPartition]):
    __slots__ = (
        "_asker",
        "_places",
        "epoch",
        "id",
        "is_privileged",
        "last_used",
        "partitions",
        "rack_id",
        "uses_topic_ids",
    )

    def __init__(self, id: int, uses_topic_ids: bool, is_privileged: bool) -> None:
        super().__init__()
        self.id = id
        self.epoch = 1
        self.uses_topic_ids = uses_topic_ids
        self.is_privileged = is_privileged
        """A follower's: consumers' sessions make room for it."""
        self.last_used: Millis = 0
        self.partitions: dict[Key, CachedPartition] = {}
        self.rack_id = ""
        """Where the reader is: another replica may come to be nearer without anything moving."""
        self._asker: tuple[object, ...] = ()
        self._places = count()

    def update(self, request: FetchRequest) -> None:
        self._asked_by(request)
        for topic, fetches in request.topics:
            for fetch in fetches:
                key = (topic, fetch.partition)
                cached = self.partitions.get(key)
                if cached is None:
                    cached = CachedPartition(topic, fetch, self, next(self._places))
                    self.partitions[key] = cached
                else:
                    cached.fetch, cached.read = fetch, None
                cached.mark()
        for topic, partitions in request.forgotten:
            for partition in partitions:
                cached = self.partitions.pop((topic, partition), None)
                if cached is not None:
                    cached.release()
                    del self.moved[cached]

    def _asked_by(self, request: FetchRequest) -> None:
        """What is at rest for one reader need not be for another."""
        asker = (
            request.replica_id,
            request.replica_epoch,
            request.isolation_level,
            request.rack_id,
        )
        if asker != self._asker:
            self.release()
            self._asker = asker
            self.replica, self.fetched_at = request.replica_id, -1
            self.rack_id = request.rack_id

    def asked(self) -> list[CachedPartition]:
        """The partitions that have moved, in their turn."""
        moved = list(self.moved)
        if len(moved) > 1:
            moved.sort(key=_PLACE)
        return moved

    def due(self) -> list[PartitionFetch]:
        return [cached.read for cached in self.asked() if cached.read is not None]

    def serve_last(self, cached: CachedPartition) -> None:
        """Last served, first to wait: no partition starves behind a busy one."""
        cached.place = next(self._places)

    def release(self) -> None:
        for cached in self.partitions.values():
            cached.release()


_PLACE = attrgetter("place")


class FetchPlan(NamedTuple):
    """What one fetch reads, and how its answer is to be given."""

    error: ErrorCode
    session: FetchSession | None = None
    """None: answer everything that was asked."""
    session_id: int = NO_SESSION
    is_incremental: bool = False
    """Answer only what has changed."""
    sessionless: tuple[CachedPartition, ...] = ()

    def asked(self) -> list[CachedPartition]:
        """The partitions to look at, in their turn."""
        if self.session is not None:
            return self.session.asked()
        return list(self.sessionless)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to wait for."""
        return not (self.sessionless if self.session is None else self.session.partitions)


class FetchSessions:
    """The sessions of one broker, at most `slots` of them."""

    def __init__(self, slots: int, dice: Dice) -> None:
        self._slots = slots
        self._dice = dice
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._cached = 0
        """Partitions of all sessions."""

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: FetchRequest, uses_topic_ids: bool, now: Millis) -> FetchPlan:
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._end(request.session_id)
            if epoch == FINAL_EPOCH:
                return _sessionless(request)
            return self._begin(request, uses_topic_ids, now)
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchPlan(ErrorCode.fetch_session_id_not_found)
        if session.epoch != epoch:
            return FetchPlan(ErrorCode.invalid_fetch_session_epoch)
        if session.uses_topic_ids != uses_topic_ids:
            return FetchPlan(ErrorCode.fetch_session_topic_id_error)
        if not self._update(session, request):
            return FetchPlan(ErrorCode.fetch_session_id_not_found)
        if not session.partitions:
            self._end(session.id)
            return _sessionless(request)
        session.epoch = 1 if epoch == _MAX_EPOCH else epoch + 1
        self._use(session, now)
        return FetchPlan(ErrorCode.none, session, session.id, is_incremental=True)

    def extend(self, plan: FetchPlan, rest: FetchRequest) -> FetchPlan:
        """The plan of a request that comes in parts, with the next part added."""
        session = plan.session
        if session is None:
            return plan._replace(sessionless=plan.sessionless + _sessionless(rest).sessionless)
        if self._sessions.get(session.id) is not session or not self._update(session, rest):
            return FetchPlan(ErrorCode.fetch_session_id_not_found)
        return plan

    def _update(self, session: FetchSession, request: FetchRequest) -> bool:
        """-> whether there was room; a session that grows beyond all bounds is ended."""
        before = len(session.partitions)
        session.update(request)
        grown = len(session.partitions) - before
        self._cached += grown
        if grown > 0 and self._cached > MAX_CACHED:
            self._end(session.id)
            return False
        return True

    def _begin(self, request: FetchRequest, uses_topic_ids: bool, now: Millis) -> FetchPlan:
        is_privileged = request.replica_id >= 0
        if not self._make_room(is_privileged, now):
            return _sessionless(request)
        session = FetchSession(self._new_id(), uses_topic_ids, is_privileged)
        self._sessions[session.id] = session
        if not self._update(session, request):
            return _sessionless(request)
        self._use(session, now)
        return FetchPlan(ErrorCode.none, session, session.id)

    def _use(self, session: FetchSession, now: Millis) -> None:
        session.last_used = now
        self._sessions.move_to_end(session.id)

    def _make_room(self, is_privileged: bool, now: Millis) -> bool:
        """Give up the session that was not used for longest, if that was long ago."""
        if len(self._sessions) < self._slots:
            return True
        for session in self._sessions.values():
            is_stale = now - session.last_used > EVICTABLE_AFTER_MS
            if is_stale or (is_privileged and not session.is_privileged):
                self._end(session.id)
                return True
        return False

    def _end(self, id: int) -> None:
        session = self._sessions.pop(id, None)
        if session is not None:
            self._cached -= len(session.partitions)
            session.end()

    def _new_id(self) -> int:
        while (id := 1 + self._dice.below(_MAX_EPOCH)) in self._sessions:
            pass
        return id


def _sessionless(request: FetchRequest) -> FetchPlan:
    """What is asked for twice is read once, as the client asked for it last."""
    asked: dict[Key, CachedPartition] = {
        (topic, fetch.partition): CachedPartition(topic, fetch)
        for topic, fetches in request.topics
        for fetch in fetches
    }
    return FetchPlan(ErrorCode.none, sessionless=tuple(asked.values()))
