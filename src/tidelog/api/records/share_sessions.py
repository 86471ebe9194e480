"""Share sessions: which partitions a member of a share group fetches from this broker (KIP-932).

Invariant: a session's epoch increases by one with each request, so that a lost or repeated request
is detected. A session belongs to one member of one group, and ends with its connection.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ConnId, TopicId

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_FIRST_EPOCH = 1
_MAX_EPOCH = 2**31 - 1

ShareRef: TypeAlias = tuple[TopicId, int]
"""A topic id and a partition."""


class ShareMemberKey(NamedTuple):
    group: str
    member: str


@dataclass(slots=True, eq=False)
class ShareSession:
    key: ShareMemberKey
    conn: ConnId
    epoch: int = _FIRST_EPOCH
    partitions: dict[ShareRef, None] = field(default_factory=dict)
    is_ended: bool = False
    is_last: bool = False
    """Whether it ended as the last session of its group."""

    def advance(self) -> None:
        self.epoch = _FIRST_EPOCH if self.epoch == _MAX_EPOCH else self.epoch + 1


class ShareSessions:
    def __init__(self, most: int) -> None:
        self._most = most
        self._sessions: dict[ShareMemberKey, ShareSession] = {}
        self._by_conn: dict[ConnId, dict[ShareMemberKey, None]] = {}
        self._of_group: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, key: ShareMemberKey, conn: ConnId) -> ShareSession | ErrorCode:
        """Start a session; a session that the member already has is replaced."""
        self.close(key)
        if len(self._sessions) >= self._most:
            return ErrorCode.share_session_limit_reached
        session = self._sessions[key] = ShareSession(key, conn)
        self._by_conn.setdefault(conn, {})[key] = None
        self._of_group[key.group] += 1
        return session

    def use(self, key: ShareMemberKey, epoch: int) -> ShareSession | ErrorCode:
        """The session of a member, whose next request has this epoch."""
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.share_session_not_found
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            return ErrorCode.invalid_share_session_epoch
        session.advance()
        return session

    def close(self, key: ShareMemberKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is not None:
            session.is_ended = True
            self._of_group[key.group] -= 1
            if not self._of_group[key.group]:
                del self._of_group[key.group]
                session.is_last = True
            known = self._by_conn.get(session.conn, {})
            known.pop(key, None)
            if not known:
                self._by_conn.pop(session.conn, None)
        return session

    def connection_lost(self, conn: ConnId) -> list[ShareSession]:
        """End the sessions of a lost connection, and return them."""
        keys: Iterable[ShareMemberKey] = tuple(self._by_conn.get(conn, ()))
        return [session for key in keys if (session := self.close(key)) is not None]
