"""Incremental fetch sessions (KIP-227): requests and responses contain only the changes.

Invariant: a session's epoch increases by one with each fetch, so that a lost or repeated request is
detected. The session holds the latest fetch position of each partition.

Each fetch visits only partitions that have changed since the last response. The cost of a fetch
therefore depends on the number of changes, not on the number of partitions.
"""

from collections import OrderedDict
from itertools import count
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from tidelog.model.dice import Dice
from tidelog.model.effects import PartitionFetch
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import (
    NO_EPOCH,
    NO_OFFSET,
    BrokerEpoch,
    Millis,
    NodeId,
    Offset,
    TopicPartition,
)
from tidelog.model.watches import PartitionWatch, SessionWatch
from tidelog.protocol.fetch import FetchPartition, FetchRequest
from tidelog.protocol.pieces import TopicRef

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_MAX_EPOCH = 2**31 - 1
EVICTABLE_AFTER_MS = 120_000
"""How long a session must be unused before any new session may evict it, as in Kafka."""

MAX_CACHED = 100_000
"""The maximum number of partitions in all sessions together, which limits their memory."""

Key: TypeAlias = tuple[TopicRef, int]
_Asker: TypeAlias = tuple[NodeId, BrokerEpoch, int, str]
"""The reader of a session: replica id and epoch, isolation level, rack."""


class CachedPartition(PartitionWatch):
    """A partition's fetch position, and the state that the last response reported."""

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
        """The partition's position in the order in which partitions are served."""
        self.read: PartitionFetch | None = None
        """`fetch` with the topic's name instead of its id; None while the topic does not exist."""
        self.high_watermark: Offset = NO_OFFSET
        self.log_start_offset: Offset = NO_OFFSET

    def read_as(self, name: str | None) -> PartitionFetch | None:
        """`fetch` with the topic's current name.

        A partition of a session caches the result in `read`.
        """
        read = self.read
        if name is None:
            read = None
        elif read is None or read.partition.topic != name:
            partition, epoch, offset, last_epoch, start, max_bytes, _, _ = self.fetch
            # Any negative epoch means that the request has no epoch.
            read = PartitionFetch(
                TopicPartition(name, partition),
                offset,
                max_bytes,
                epoch if epoch >= 0 else NO_EPOCH,
                last_epoch if last_epoch >= 0 else NO_EPOCH,
                start,
                self,
            )
        if self.session is not None:
            self.read = read
        return read


class FetchSession(SessionWatch[CachedPartition]):
    __slots__ = (
        "_asker",
        "_image_offset",
        "_places",
        "epoch",
        "id",
        "is_privileged",
        "last_used",
        "partitions",
        "uses_topic_ids",
    )

    def __init__(self, id: int, uses_topic_ids: bool, is_privileged: bool) -> None:
        super().__init__()
        self.id = id
        self.epoch = 1
        self.uses_topic_ids = uses_topic_ids
        self.is_privileged = is_privileged
        """Whether the session belongs to a follower, so that it may evict a consumer's session."""
        self.last_used: Millis = 0
        self.partitions: dict[Key, CachedPartition] = {}
        self._image_offset: Offset = NO_OFFSET
        self._asker: _Asker | None = None
        self._places = count()

    def update(self, request: FetchRequest) -> None:
        asker = (
            request.replica_id,
            request.replica_epoch,
            request.isolation_level,
            request.rack_id,
        )
        if asker != self._asker:
            self._asked_by(asker)
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

    def _asked_by(self, asker: _Asker) -> None:
        """Mark all partitions as changed. A new reader may be allowed to see other offsets."""
        self.release()
        self._asker = asker
        self.replica, self.fetched_at = asker[0], -1

    def image_seen(self, offset: Offset) -> None:
        """For a reader with a rack, visit all partitions after a metadata change.

        The nearest replica of a partition may have changed.
        """
        if offset != self._image_offset:
            self._image_offset = offset
            for cached in self.partitions.values():
                cached.mark()

    def asked(self) -> list[CachedPartition]:
        """The partitions that have changed, in serving order."""
        moved = list(self.moved)
        if len(moved) > 1:
            moved.sort(key=_PLACE)
        return moved

    def due(self) -> list[PartitionFetch]:
        return [cached.read for cached in self.asked() if cached.read is not None]

    def serve_last(self, cached: CachedPartition) -> None:
        """Move a partition to the end, so that a busy partition does not starve the others."""
        cached.place = next(self._places)

    def release(self) -> None:
        for cached in self.partitions.values():
            cached.release()

    def forget(self) -> None:
        for cached in self.partitions.values():
            cached.session = cached.read = None
        self.partitions.clear()


_PLACE = attrgetter("place")


class FetchPlan(NamedTuple):
    """The partitions that one fetch reads, and the form of its response."""

    error: ErrorCode
    session: FetchSession | None = None
    """None for a fetch without a session, whose response contains every requested partition."""
    session_id: int = NO_SESSION
    is_incremental: bool = False
    """Whether the response contains only partitions that have changed."""
    sessionless: tuple[CachedPartition, ...] = ()

    def asked(self) -> list[CachedPartition]:
        """The partitions to read, in serving order."""
        if self.session is not None:
            return self.session.asked()
        return list(self.sessionless)

    @property
    def is_empty(self) -> bool:
        """Whether the fetch has no partitions. If so, the response is sent without a wait."""
        return not (self.sessionless if self.session is None else self.session.partitions)


class FetchSessions:
    """The sessions of one broker, at most `slots` of them."""

    def __init__(self, slots: int, dice: Dice) -> None:
        self._slots = slots
        self._dice = dice
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._cached = 0
        """The number of partitions in all sessions."""

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
        session.last_used = now
        self._sessions.move_to_end(session.id)
        return FetchPlan(ErrorCode.none, session, session.id, True)

    def extend(self, plan: FetchPlan, rest: FetchRequest) -> FetchPlan:
        """Add the next part of a split request to its plan."""
        session = plan.session
        if session is None:
            return plan._replace(sessionless=plan.sessionless + _sessionless(rest).sessionless)
        if self._sessions.get(session.id) is not session or not self._update(session, rest):
            return FetchPlan(ErrorCode.fetch_session_id_not_found)
        return plan

    def _update(self, session: FetchSession, request: FetchRequest) -> bool:
        """Update a session. If the cache is then too large, end the session and return False."""
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
        session.last_used = now
        return FetchPlan(ErrorCode.none, session, session.id)

    def _make_room(self, is_privileged: bool, now: Millis) -> bool:
        """If all slots are in use, evict a session; returns whether there is room for a new one.

        A stale session may be evicted. For a follower, any session of a consumer may be evicted
        too. Of these sessions, the least recently used one is evicted.
        """
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
    """Plan a fetch without a session; if a partition is repeated, its last entry counts."""
    asked: dict[Key, CachedPartition] = {
        (topic, fetch.partition): CachedPartition(topic, fetch)
        for topic, fetches in request.topics
        for fetch in fetches
    }
    return FetchPlan(ErrorCode.none, sessionless=tuple(asked.values()))
