"""What a decision about a consumer group returns, and what it reads besides the group.

A decision changes nothing. Its records are appended and replayed; its changes, which are about
state that is not stored, are applied after that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from tidelog.config.group_settings import ConsumerGroupSettings
from tidelog.coordination.groups.consumer.records import ConsumerGroupRecord
from tidelog.coordination.groups.consumer.topics import ClusterTopics, TopicHashes
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis
from tidelog.security.authorizer import AclSubject


class Refused(Exception):
    """The request is refused with this error; nothing is written."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(f"{error.name}: {message}")
        self.error = error
        self.message = message


class MemberTimer(NamedTuple):
    """A deadline of a member; when it passes, the member is removed from the group."""

    kind: str
    group_id: str
    member_id: str


SESSION = "session"
"""The member has sent nothing for its session timeout."""
REBALANCE = "rebalance"
"""The member has not given up partitions within its rebalance timeout."""
JOIN = "join"
"""A member with the classic protocol has not joined again within its rebalance timeout."""
SYNC = "sync"
"""A member with the classic protocol has joined, but has not fetched its assignment in time."""

TIMER_KINDS = (SESSION, REBALANCE, JOIN, SYNC)


@dataclass(frozen=True, slots=True)
class StartTimer:
    timer: MemberTimer
    deadline: Millis
    only_if_absent: bool = False


@dataclass(frozen=True, slots=True)
class StopTimer:
    timer: MemberTimer


@dataclass(frozen=True, slots=True)
class MetadataChecked:
    """The hash of the group's topics was compared in the current metadata, at this group epoch."""

    group_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class MetadataChanged:
    """The topics of all groups must be compared with the metadata again."""


@dataclass(frozen=True, slots=True)
class ResolveRegexes:
    """Match these regular expressions with the names of all topics, soon."""

    group_id: str
    regexes: tuple[str, ...]
    subject: AclSubject | None
    """The client whose heartbeat caused this. The topics that it may describe can match."""


@dataclass(frozen=True, slots=True)
class RegexesResolved:
    """The regular expressions of the group were matched."""

    group_id: str


GroupChange: TypeAlias = StartTimer | StopTimer | MetadataChecked | ResolveRegexes | RegexesResolved


class GroupOutcome(NamedTuple):
    records: tuple[ConsumerGroupRecord, ...] = ()
    response: Any = None
    changes: tuple[GroupChange, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupView:
    """What a decision reads besides the group: time, metadata, settings, and unstored state."""

    now: Millis
    wall: Millis
    topics: ClusterTopics
    hashes: TopicHashes
    settings: ConsumerGroupSettings
    """The settings of this group, with its dynamic configuration."""
    checked_epoch: int | None = None
    """The group epoch at which the metadata was last compared; None if it has changed since."""
    subject: AclSubject | None = None
    """The client that has sent the request; None if there is no request."""
    is_resolving: bool = False
    """Whether regular expressions of the group are being matched."""
    new_member_id: Callable[[], str] = str


def drop_timers(group_id: str, member_id: str) -> tuple[StopTimer, ...]:
    return tuple(StopTimer(MemberTimer(kind, group_id, member_id)) for kind in TIMER_KINDS)
