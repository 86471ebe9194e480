"""The keys of the timers of classic groups."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class SessionTimeout:
    """A member has sent nothing for its session timeout."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class JoinTimeout:
    """The join phase of a rebalance has timed out."""

    group_id: str


@dataclass(frozen=True, slots=True)
class SyncTimeout:
    """The sync phase of a rebalance has timed out."""

    group_id: str


ClassicTimeout: TypeAlias = SessionTimeout | JoinTimeout | SyncTimeout
