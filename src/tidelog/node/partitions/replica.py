"""This node's copy of one partition: its log, its leadership while it leads, and who waits on it.

Invariant: an offset is acknowledged only when the log holds it as durably as the flush policy
asks, and shown to consumers only below the high watermark.
"""

from typing import NamedTuple, Protocol, TypeAlias

from tidelog.log.partition import PartitionLog
from tidelog.model.effects import AppendResult, RecordsDeleted
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import (
    NO_OFFSET,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    TopicId,
    TopicPartition,
)
from tidelog.model.watches import PartitionWatch, WatchListener, mark_all, wake_all
from tidelog.node.clock import Clock
from tidelog.node.requests.pending import Pending
from tidelog.replication.isr.leader import (
    AdvanceHighWatermark,
    FollowerFetched,
    FollowerFetchedAgain,
    IsrAgreed,
    LagChecked,
    LeaderEvent,
    PartitionLeader,
    Produced,
    ProposeIsr,
)
from tidelog.replication.waiters import OffsetWaiters

Waiter: TypeAlias = tuple[Pending[AppendResult], int] | tuple[Pending[RecordsDeleted], int]

_EVERYDAY = (Produced, FollowerFetched, LagChecked)
"""What does not by itself change whether a follower's fetch has something to say."""


class Throttling(NamedTuple):
    """Whether its topic has this replica throttled, in either role."""

    as_leader: bool = False
    as_follower: bool = False


class ReplicaOwner(Protocol):
    """What a replica asks of its node."""

    def start_flush(self, replica: "Replica") -> None: ...

    def propose_isr(self, replica: "Replica", proposal: ProposeIsr) -> None: ...

    def truncated(self, replica: "Replica", end: Offset, high_watermark: Offset) -> None:
        """It was cut as follower; these are its end and its watermark of before."""

    def is_alive(self, broker: NodeId) -> bool: ...


class Replica:
    __slots__ = (
        "_acks_all",
        "_acks_leader",
        "_clock",
        "_consumers",
        "_deletions",
        "_flush_is_due",
        "_followers",
        "_high_watermark",
        "_owner",
        "flushing",
        "flushing_since",
        "follower_starts",
        "has_chores",
        "has_repairs",
        "highest_watermark",
        "leader",
        "log",
        "partition",
        "throttling",
        "told_watermarks",
        "topic_id",
        "visible_end",
    )

    def __init__(
        self,
        partition: TopicPartition,
        topic_id: TopicId,
        log: PartitionLog,
        high_watermark: Offset,
        clock: Clock,
        owner: ReplicaOwner,
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.log = log
        self.leader: PartitionLeader | None = None
        self.visible_end: Offset = log.log_end_offset
        """How far the log may be acknowledged: its end, less what still waits for a flush."""
        self.follower_starts: dict[NodeId, Offset] = {}
        """Where each follower's log begins, as it said with its last fetch."""
        self.throttling = Throttling()
        self.told_watermarks: dict[NodeId, Offset] = {}
        """What each follower has been told, where it serves readers."""
        self.flushing = False
        self.flushing_since: Millis = 0
        self.has_chores = True
        """Whether its log may want a flush or a purge by the clock; idle ones cost nothing."""
        self._clock = clock
        self._owner = owner
        self._flush_is_due = False
        self._high_watermark = high_watermark
        self.highest_watermark: Offset = high_watermark
        """The highest that a leader has told, though this log may not go so far yet."""
        self._acks_leader: OffsetWaiters[Waiter] = OffsetWaiters()
        self._acks_all: OffsetWaiters[Waiter] = OffsetWaiters()
        self._deletions: OffsetWaiters[Waiter] = OffsetWaiters()
        self._consumers: dict[WatchListener, None] = {}
        self._followers: dict[WatchListener, None] = {}
        self.use(log)
        self.learn_high_watermark(high_watermark)

    def use(self, log: PartitionLog) -> None:
        """The log of this replica from now on."""
        self.log = log
        self.has_repairs = True
        """Whether the log may have something to tell, or indexes to rebuild or to confirm."""
        log.when_alarmed(self._alarmed)

    def _alarmed(self) -> None:
        self.has_chores = self.has_repairs = True

    @property
    def high_watermark(self) -> Offset:
        return self.leader.high_watermark if self.leader is not None else self._high_watermark

    @property
    def last_stable_offset(self) -> Offset:
        """What a transactional reader may see: below the first transaction still open."""
        return self.log.last_stable_offset(self.high_watermark)

    @property
    def is_flush_due(self) -> bool:
        """Whether what was appended last is not yet as durable as it has to be."""
        return self._flush_is_due

    def learn_high_watermark(self, high_watermark: Offset) -> None:
        """A follower's: what the leader said, as far as its own log goes."""
        start, end = self.log.log_start_offset, self.log.log_end_offset
        if high_watermark > self.highest_watermark:
            self.highest_watermark = high_watermark
        before = self._high_watermark
        self._high_watermark = min(max(before, start, min(high_watermark, end)), end)
        if self._high_watermark > before and self._consumers:
            wake_all(self._consumers)

    def truncate(self, offset: Offset) -> None:
        """Cut what the leader does not have."""
        assert self.leader is None
        end, high_watermark = self.log.log_end_offset, self._high_watermark
        self.log.truncate_to(offset, self._clock.now)
        self._cut()
        if self.log.log_end_offset < end:
            self._owner.truncated(self, end, high_watermark)

    @property
    def damaged_from(self) -> Offset | None:
        """Where durable records are not sound any more: a leader has them again."""
        return min((one.first_offset for one in self.log.damages), default=None)

    def start_anew(self, offset: Offset) -> None:
        """Drop everything: the leader's log begins past the end of this one."""
        assert self.leader is None
        self.log.truncate_fully_and_start_at(offset, self._clock.now)
        self._cut()

    def _cut(self) -> None:
        self.visible_end = self.log.log_end_offset
        self.has_chores = True
        self._flush_is_due = False
        self._high_watermark = min(self._high_watermark, self.visible_end)
        self.highest_watermark = self._high_watermark
        self.moved()

    # -- leadership ------------------------------------------------------------------------------

    def lead(self, me: NodeId, epoch: LeaderEpoch, agreed: IsrAgreed) -> None:
        """Begin a leadership: its epoch starts at the log's end, the watermark stays."""
        log = self.log
        assert epoch >= log.latest_epoch, "the log knows of a later leader"
        self.follower_starts, self.told_watermarks = {}, {}
        self.moved()
        log.assign_epoch(epoch, log.log_end_offset)
        self.leader = PartitionLeader(
            me,
            epoch,
            epoch_start=log.log_end_offset,
            end=self.visible_end,
            high_watermark=min(self.high_watermark, self.visible_end),
            agreed=agreed,
            now=self._clock.now,
        )
        self._reach(self.visible_end)
        # A follower that waits in an earlier epoch is to ask in this one at once.
        wake_all(self._followers)

    def step(self, event: LeaderEvent) -> None:
        """Tell the leader's machine, and carry out what it asks."""
        assert self.leader is not None
        if not isinstance(event, _EVERYDAY):
            mark_all(self._followers)
        for effect in self.leader.step(event, self._clock.now):
            match effect:
                case AdvanceHighWatermark():
                    self._committed(effect.to)
                case ProposeIsr():
                    self._owner.propose_isr(self, effect)
        if self._acks_all and self.leader.is_below_min_isr:
            # Nothing will be committed until someone returns: better to be told than to wait (F32).
            _refuse(self._acks_all, ErrorCode.not_enough_replicas_after_append)
        if self._deletions:
            self.settle_deletions()

    def is_deserted(self, patience_ms: Millis) -> bool:
        """Whether it leads while others that are in sync have not been heard from for so long."""
        if self.leader is None:
            return False
        self.refresh_progress()
        return self.leader.is_deserted(self._clock.now, patience_ms)

    def give_up_acks(self) -> None:
        """What waits to be committed will not be here: whoever sent it is to look elsewhere."""
        _refuse(self._acks_all, ErrorCode.not_leader_or_follower)
        wake_all(self._consumers)

    def resign(self, error: ErrorCode) -> None:
        """End the leadership, or the replica: nobody who waits here will be served."""
        if self.leader is not None:
            self._high_watermark = self.leader.high_watermark
        self.leader = None
        for waiters in (self._acks_leader, self._acks_all, self._deletions):
            _refuse(waiters, error)
        wake_all(self._consumers)
        wake_all(self._followers)

    # -- appends ---------------------------------------------------------------------------------

    def appended(self) -> None:
        """The log has grown: acknowledge, or see to the flush that must come first."""
        log = self.log
        end = log.log_end_offset
        self.moved()
        self.has_chores = True
        if end - log.recovery_point >= log.config.flush_messages:
            self._flush_is_due = True
            if not self.flushing:
                self._owner.start_flush(self)
        if not self._flush_is_due:
            self._reach(end)
        if self._followers:
            wake_all(self._followers)

    def flushed(self, up_to: Offset) -> None:
        self.flushing = False
        self.log.flushed(up_to)
        if not self._flush_is_due:
            return
        log = self.log
        self.moved()
        if log.log_end_offset - log.recovery_point >= log.config.flush_messages:
            self._owner.start_flush(self)
            # A flush by the clock may have begun before what was acknowledged without one, and
            # any flush before the log was cut: of that only the recovery point knows.
            self._reach(max(log.recovery_point, self.visible_end))
        else:
            self._flush_is_due = False
            self._reach(log.log_end_offset)

    def has_acknowledged(self, acks: int, end: Offset) -> bool:
        """Whether everyone whom `acks` names holds everything below `end`."""
        return (self.high_watermark if acks == -1 else self.visible_end) >= end

    def await_ack(self, acks: int, end: Offset, append: Pending[AppendResult], index: int) -> None:
        """Park the append at `index` until `end` is acknowledged."""
        (self._acks_all if acks == -1 else self._acks_leader).add(end, (append, index))

    def _reach(self, end: Offset) -> None:
        self.visible_end = end
        if self._acks_leader:
            for append, index in self._acks_leader.release(end):
                append.confirm(index)
        if self.leader is not None:
            self.step(Produced(end))

    def _committed(self, high_watermark: Offset) -> None:
        for append, index in self._acks_all.release(high_watermark):
            append.confirm(index)
        mark_all(self._followers)
        wake_all(self._consumers)
        if self.told_watermarks:
            wake_all(self._followers)

    # -- deletions -------------------------------------------------------------------------------

    def delete_before(self, offset: Offset) -> None:
        """Begin the log here; followers hear of it at once and begin theirs here, too."""
        self.log.advance_log_start(offset)
        self.moved()
        wake_all(self._followers)

    @property
    def low_watermark(self) -> Offset:
        """Where the log begins on whichever replica that lives begins first."""
        assert self.leader is not None
        others = (
            self.follower_starts.get(replica, NO_OFFSET)
            for replica in self.leader.replicas
            if replica != self.leader.me and self._owner.is_alive(replica)
        )
        return min((self.log.log_start_offset, *others))

    def await_deletion(self, offset: Offset, deletion: Pending[RecordsDeleted], index: int) -> None:
        """Park the deletion at `index` until nobody who could lead next holds anything below."""
        self._deletions.add(offset, (deletion, index))

    def settle_deletions(self) -> None:
        """Confirm what no replica that lives holds any more."""
        if self._deletions and self.leader is not None:
            for deletion, index in self._deletions.release(self.low_watermark):
                deletion.confirm(index)

    # -- fetches ---------------------------------------------------------------------------------

    def follower_fetched(self, event: FollowerFetched) -> None:
        if self.leader is not None:
            self.step(event)

    def listen(self, listener: WatchListener, *, is_follower: bool) -> None:
        """Wake a consumer when more is committed, a follower as soon as anything is appended."""
        (self._followers if is_follower else self._consumers)[listener] = None

    def unlisten(self, listener: WatchListener) -> None:
        self._consumers.pop(listener, None)
        self._followers.pop(listener, None)

    def watch(self, watch: PartitionWatch, *, is_follower: bool) -> None:
        """Tell the session from now on what moves here."""
        if watch.subject is self:
            return
        if watch.subject is not None:
            watch.subject.unwatch(watch)
        watch.subject = self
        self.listen(watch, is_follower=is_follower)

    def unwatch(self, watch: PartitionWatch) -> None:
        self.unlisten(watch)

    def moved(self) -> None:
        """The next fetch of every session is to look at this partition."""
        mark_all(self._consumers)
        mark_all(self._followers)

    def fetched_at_end(self, watch: PartitionWatch) -> None:
        """A follower that said nothing on this partition has fetched from the log's end."""
        session = watch.session
        if session is not None and session.replica >= 0 and self.leader is not None:
            self.leader.step(FollowerFetchedAgain(session.replica, session.fetched_at), 0)

    def refresh_progress(self) -> None:
        """Bring what the leader knows of each follower's last fetch up to date."""
        for listener in self._followers:
            if isinstance(listener, PartitionWatch) and listener.is_at_rest:
                self.fetched_at_end(listener)

    # -- time ------------------------------------------------------------------------------------

    def do_chores(self, now: Millis) -> None:
        """flush.ms, in the background, nobody waits for it; files of segments deleted before."""
        if self.log.needs_flush(now):
            if not self.flushing:
                self._owner.start_flush(self)
            return
        deadline = self.log.next_deadline()
        if deadline is None:
            self.has_chores = self.flushing or self.has_repairs
        elif deadline <= now:
            self.log.purge(now)


def _refuse(waiters: OffsetWaiters[Waiter], error: ErrorCode) -> None:
    for append, index in waiters.drain():
        append.refuse(index, error)
