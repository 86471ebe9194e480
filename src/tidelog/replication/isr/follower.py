"""The rules of a follower for one partition in one leader epoch.

The rules decide what to fetch, what to do with each response, and how long to back off. The node
carries out the effects.

Invariants: a fetch offset proves to the leader that the follower holds every record below it. A
partition is therefore not fetched while its log must still be flushed. If the log end offset
differs from the offset of the last fetch, the response belongs to a fetch of an earlier epoch and
changes nothing (F09). The log is truncated only if a response contains a diverging epoch (F03).
"""

from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from tidelog.model.effects import EpochEnd
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Millis, Offset
from tidelog.replication.divergence import truncation_point

RETRY_MS: Millis = 50
LONGEST_RETRY_MS: Millis = 5_000
THROTTLED_MS: Millis = 1_000
"""A throttled partition is left out for at most this long, and then its rate is checked again."""


class FollowerLog(Protocol):
    """The follower's own log, which these rules only read."""

    @property
    def log_start_offset(self) -> Offset: ...

    @property
    def log_end_offset(self) -> Offset: ...

    def epoch_end(self, epoch: LeaderEpoch) -> EpochEnd:
        """The largest epoch in the log up to `epoch`, and its end offset."""


class LeaderResponse(Protocol):
    """The part of a fetch response that belongs to one partition."""

    @property
    def error(self) -> ErrorCode: ...

    @property
    def high_watermark(self) -> Offset: ...

    @property
    def log_start_offset(self) -> Offset: ...

    @property
    def diverging_epoch(self) -> EpochEnd | None: ...


class NextFetch(Enum):
    """What to do with a partition in the next fetch request."""

    FETCH = "fetch from the log end offset"
    UNCHANGED = "the leader's session has the right offsets"
    WAIT = "it backs off"
    LEAVE_OUT = "remove it from the leader's session until its flush ends"
    BACK_OFF = "remove it from the leader's session until `retry_at`"


# -- effects, which the node carries out -----------------------------------------------------------


class AppendFetched(NamedTuple):
    """Append the records of the response, if there are any, and then call `appended`."""


class TruncateTo(NamedTuple):
    """Truncate the log to this offset, where it diverges from the leader's log.

    Then call `truncated`.
    """

    offset: Offset


class RestartAt(NamedTuple):
    """Drop all records, and continue at this offset, where the leader's log starts."""

    offset: Offset


class AdvanceLogStart(NamedTuple):
    """Delete the records below the leader's log start offset."""

    offset: Offset


class BackOff(NamedTuple):
    """Remove the partition from the leader's session until the time `until`."""

    until: Millis


FollowerEffect: TypeAlias = AppendFetched | TruncateTo | RestartAt | AdvanceLogStart | BackOff

_APPEND = AppendFetched()


class PartitionFollower:
    """A partition that is followed in one leader epoch."""

    __slots__ = (
        "blames",
        "epoch",
        "failures",
        "is_held_back",
        "is_in_session",
        "is_in_sync",
        "retry_at",
        "sent_offset",
        "sent_start",
    )

    def __init__(self, epoch: LeaderEpoch) -> None:
        self.epoch = epoch
        self.is_in_session = False
        self.is_in_sync = False
        """Whether, after the leader's last response, the replica held every committed record."""
        self.sent_offset: Offset = -1
        """The fetch offset that the leader's session has; -1 if it must be sent again."""
        self.sent_start: Offset = -1
        """The log start offset that the leader's session has."""
        self.retry_at: Millis = 0
        self.failures = 0
        """The number of responses in a row that could not be appended."""
        self.blames = 0
        """How many times in a row `FetchSuspects` has blamed this partition for failed fetches."""
        self.is_held_back = False
        """Whether fetches leave this partition out, as a test whether they succeed without it."""

    # -- preparing a fetch -------------------------------------------------------------------------

    def next_fetch(
        self, held: FollowerLog, now: Millis, throttled_ms: Millis, *, is_flush_due: bool
    ) -> NextFetch:
        """Decide what to do with this partition in the next fetch request.

        `throttled_ms` is how long the replication quota makes the partition wait. The quota never
        delays a partition that is in sync.
        """
        if is_flush_due:
            return NextFetch.LEAVE_OUT
        if throttled_ms:
            self.retry_at = now + min(throttled_ms, THROTTLED_MS)
            return NextFetch.BACK_OFF
        start, end = held.log_start_offset, held.log_end_offset
        if end == self.sent_offset and start == self.sent_start:
            return NextFetch.UNCHANGED
        if now < self.retry_at:
            return NextFetch.WAIT
        self.sent_offset, self.sent_start = end, start
        return NextFetch.FETCH

    def leave_session(self) -> None:
        """Record that the leader's fetch session no longer contains this partition."""
        self.sent_offset, self.is_in_session = -1, False

    # -- handling a response -----------------------------------------------------------------------

    def answered(
        self, response: LeaderResponse, held: FollowerLog, now: Millis
    ) -> FollowerEffect | None:
        """Decide what to do with a response; None if the response belongs to an earlier epoch."""
        end = held.log_end_offset
        if end != self.sent_offset:
            return None
        if response.error is ErrorCode.offset_out_of_range:
            return self._out_of_range(response.log_start_offset, held, now)
        if response.error is not ErrorCode.none:
            return self.back_off(now)
        if response.diverging_epoch is not None:
            mine = held.epoch_end(response.diverging_epoch.epoch)
            start = held.log_start_offset
            return TruncateTo(truncation_point(response.diverging_epoch, mine, start))
        return _APPEND

    def _out_of_range(self, start: Offset, held: FollowerLog, now: Millis) -> FollowerEffect:
        """Start again at the leader's log start offset, if the leader has deleted the next records.

        This also applies to an empty log whose start offset is above the leader's log end offset.
        """
        end = held.log_end_offset
        is_empty = held.log_start_offset == end
        if start > end or (is_empty and 0 <= start < end):
            return RestartAt(start)
        return self.back_off(now)

    def appended(self, response: LeaderResponse, held: FollowerLog) -> FollowerEffect | None:
        """Decide what else the response requires, after its records were appended to `held`."""
        start, end = response.log_start_offset, held.log_end_offset
        if end > self.sent_offset:
            self.failures = 0
        self.is_in_sync = end >= response.high_watermark
        if start > held.log_start_offset:
            return RestartAt(start) if start > end else AdvanceLogStart(start)
        return None

    def truncated(self, end_before: Offset, held: FollowerLog, now: Millis) -> BackOff | None:
        """Back off if nothing was truncated, because the same fetch would get the same response."""
        return self.back_off(now) if held.log_end_offset == end_before else None

    def failed(self, now: Millis) -> BackOff:
        """Back off after a response that could not be used; each failure in a row doubles the time.

        During this time, the leader may be repaired, or another replica may become the leader.
        """
        self.failures += 1
        return self.back_off(now, back_off_ms(self.failures))

    def back_off(self, now: Millis, delay: Millis = RETRY_MS) -> BackOff:
        self.retry_at = now + delay
        return BackOff(self.retry_at)


def back_off_ms(failures: int) -> Millis:
    """How long to back off after this many failures in a row; each failure doubles the time."""
    return min(LONGEST_RETRY_MS, RETRY_MS << min(failures - 1, 16))
