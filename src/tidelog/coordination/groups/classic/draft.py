"""A decision about one classic group, in the making.

A draft holds a copy of the group. The modules `joining`, `syncing`, `leaving` and `rebalancing`
change the copy and collect what follows: records, answers and timers. The copy replaces the group
when the decision takes effect, and is forgotten if the records are refused.
"""

from collections.abc import Hashable
from typing import Any, NamedTuple, Self

from tidelog.config.group_settings import GroupSettings
from tidelog.coordination.groups.classic.group import ClassicGroup, group_record
from tidelog.coordination.groups.classic.timeouts import ClassicTimeout
from tidelog.coordination.groups.kind import GroupDecision, GroupRecord
from tidelog.coordination.runtime.decision import LATER, Instant, Ticket, TicketAnswer
from tidelog.coordination.timers import SetTimer
from tidelog.model.ids import Millis


class GroupChanged(NamedTuple):
    """The new state of a group, which includes its state that is not stored."""

    group: ClassicGroup


class ClassicDraft:
    __slots__ = ("_answers", "_records", "_then", "_timers", "at", "group", "settings")

    def __init__(self, group: ClassicGroup, settings: GroupSettings, at: Instant) -> None:
        self.group = group
        self.settings = settings
        self.at = at
        self._records: list[GroupRecord] = []
        self._answers: list[TicketAnswer] = []
        self._timers: list[SetTimer] = []
        self._then: Hashable | None = None

    @classmethod
    def of(cls, group: ClassicGroup, settings: GroupSettings, at: Instant) -> Self:
        return cls(group.copy(), settings, at)

    def answer(self, ticket: Ticket, response: Any) -> None:
        self._answers.append(TicketAnswer(ticket, response))

    def schedule(self, key: ClassicTimeout, delay_ms: Millis) -> None:
        self._timers.append(SetTimer(key, self.at.now + delay_ms))

    def cancel(self, key: ClassicTimeout) -> None:
        self._timers.append(SetTimer(key, None))

    def write(self, then: Hashable | None = None) -> None:
        """Store the group as it is now in this draft."""
        self._records.append(group_record(self.group))
        self._then = then

    @property
    def has_records(self) -> bool:
        return bool(self._records)

    def decision(self, response: Any = LATER, *, at_once: bool | None = None) -> GroupDecision:
        """The decision; by default, its answers leave at once unless the draft has records."""
        return GroupDecision(
            records=tuple(self._records),
            response=response,
            answers=tuple(self._answers),
            changes=(GroupChanged(self.group), *self._timers),
            then=self._then,
            at_once=not self._records if at_once is None else at_once,
        )
