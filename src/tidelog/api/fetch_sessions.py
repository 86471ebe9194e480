"""Incremental fetch sessions (KIP-227): a client names what changes, and is told what changed.

Invariant: a session's epoch goes up by one with each fetch, so that a lost or repeated request is
noticed; the partitions are those of the client's last word on each.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from tidelog.model.dice import Dice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, Millis, Offset
from tidelog.protocol.fetch import FetchPartition, FetchRequest
from tidelog.protocol.pieces import TopicRef

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_MAX_EPOCH = 2**31 - 1
EVICTABLE_AFTER_MS = 120_000
"""Kafka's constant: a session used more recently is not given up for another."""

Key: TypeAlias = tuple[TopicRef, int]


class CachedPartition:
    """What the client asks of a partition, and what it was last told."""

    __slots__ = ("fetch", "high_watermark", "log_start_offset", "topic")

    def __init__(self, topic: TopicRef, fetch: FetchPartition) -> None:
        self.topic = topic
        self.fetch = fetch
        self.high_watermark: Offset = NO_OFFSET
        self.log_start_offset: Offset = NO_OFFSET


class Session:
    __slots__ = ("epoch", "id", "is_privileged", "last_used", "partitions", "uses_topic_ids")

    def __init__(self, id: int, uses_topic_ids: bool, is_privileged: bool) -> None:
        self.id = id
        self.epoch = 1
        self.uses_topic_ids = uses_topic_ids
        self.is_privileged = is_privileged
        """A follower's: consumers' sessions make room for it."""
        self.last_used: Millis = 0
        self.partitions: OrderedDict[Key, CachedPartition] = OrderedDict()

    def update(self, request: FetchRequest) -> None:
        for topic, fetches in request.topics:
            for fetch in fetches:
                key = (topic, fetch.partition)
                cached = self.partitions.get(key)
                if cached is None:
                    self.partitions[key] = CachedPartition(topic, fetch)
                else:
                    cached.fetch = fetch
        for topic, partitions in request.forgotten:
            for partition in partitions:
                self.partitions.pop((topic, partition), None)


class FetchPlan(NamedTuple):
    """What one fetch reads, and how its answer is to be given."""

    error: ErrorCode
    session: Session | None = None
    """None: answer everything that was asked."""
    session_id: int = NO_SESSION
    is_incremental: bool = False
    """Answer only what has changed."""
    sessionless: tuple[CachedPartition, ...] = ()

    def partitions(self) -> Iterator[CachedPartition]:
        if self.session is not None:
            return iter(self.session.partitions.values())
        return iter(self.sessionless)


class FetchSessions:
    """The sessions of one broker, at most `slots` of them."""

    def __init__(self, slots: int, dice: Dice) -> None:
        self._slots = slots
        self._dice = dice
        self._sessions: OrderedDict[int, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: FetchRequest, uses_topic_ids: bool, now: Millis) -> FetchPlan:
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
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
        session.update(request)
        if not session.partitions:
            del self._sessions[session.id]
            return _sessionless(request)
        session.epoch = 1 if epoch == _MAX_EPOCH else epoch + 1
        self._use(session, now)
        return FetchPlan(ErrorCode.none, session, session.id, is_incremental=True)

    def _begin(self, request: FetchRequest, uses_topic_ids: bool, now: Millis) -> FetchPlan:
        is_privileged = request.replica_id >= 0
        if not self._make_room(is_privileged, now):
            return _sessionless(request)
        session = Session(self._new_id(), uses_topic_ids, is_privileged)
        session.update(request)
        self._sessions[session.id] = session
        self._use(session, now)
        return FetchPlan(ErrorCode.none, session, session.id)

    def _use(self, session: Session, now: Millis) -> None:
        session.last_used = now
        self._sessions.move_to_end(session.id)

    def _make_room(self, is_privileged: bool, now: Millis) -> bool:
        """Give up the session that was not used for longest, if that was long ago."""
        if len(self._sessions) < self._slots:
            return True
        for session in self._sessions.values():
            is_stale = now - session.last_used > EVICTABLE_AFTER_MS
            if is_stale or (is_privileged and not session.is_privileged):
                del self._sessions[session.id]
                return True
        return False

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
