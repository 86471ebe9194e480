"""This node's replica of one partition: its log, its leadership and the requests that wait on it.

Invariant: a record is acknowledged only when the log holds it as durably as the flush policy
requires. A record is visible to consumers only if it is below the high watermark.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from tidelog.log.partition import PartitionLog
from tidelog.log.results import ProducerSequence
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
from tidelog.replication.rules import CommitRule
from tidelog.replication.throttle import Throttling
from tidelog.replication.waiters import OffsetWaiters

Waiter: TypeAlias = tuple[Pending[AppendResult], int] | tuple[Pending[RecordsDeleted], int]

_EVERYDAY = (Produced, FollowerFetched, LagChecked)
"""Frequent events, which alone do not change the answer to a follower's fetch."""


class ReplicaOwner(Protocol):
    """The methods of the broker that its replicas call."""

    def start_flush(self, replica: "Replica") -> None: ...

    def propose_isr(self, replica: "Replica", proposal: ProposeIsr) -> None: ...

    def truncated(self, replica: "Replica", end: Offset, high_watermark: Offset) -> None:
        """Report a follower's truncation; `end` and `high_watermark` are the values before it."""

    def removed(self, replica: "Replica", batches: Sequence[ProducerSequence]) -> None:
        """Called with the first batch of each producer that a truncation has removed."""

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
        "highest_watermark",
        "leader",
        "log",
        "partition",
        "sent_watermarks",
        "throttling",
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
        """The offset up to which the leader may acknowledge: the log end, unless a flush is due."""
        self.follower_starts: dict[NodeId, Offset] = {}
        """The log start offset of each follower, from its last fetch."""
        self.throttling = Throttling()
        self.sent_watermarks: dict[NodeId, Offset] = {}
        """The high watermark last sent to each follower; used only if followers serve consumers."""
        self.flushing = False
        self.flushing_since: Millis = 0
        self.has_chores = True
        """Whether the log may need a timed flush or a purge; if not, `do_chores` is skipped."""
        self._clock = clock
        self._owner = owner
        self._flush_is_due = False
        self._high_watermark = high_watermark
        self.highest_watermark: Offset = high_watermark
        """The highest high watermark that a leader has sent; it may be past the end of this log."""
        self._acks_leader: OffsetWaiters[Waiter] = OffsetWaiters()
        self._acks_all: OffsetWaiters[Waiter] = OffsetWaiters()
        self._deletions: OffsetWaiters[Waiter] = OffsetWaiters()
        self._consumers: dict[WatchListener, None] = {}
        self._followers: dict[WatchListener, None] = {}
        self.learn_high_watermark(high_watermark)

    @property
    def high_watermark(self) -> Offset:
        return self.leader.high_watermark if self.leader is not None else self._high_watermark

    @property
    def last_stable_offset(self) -> Offset:
        """The offset up to which a read_committed consumer may read."""
        return self.log.last_stable_offset(self.high_watermark)

    @property
    def is_flush_due(self) -> bool:
        """Whether the flush policy requires an fsync that is not complete yet."""
        return self._flush_is_due

    def learn_high_watermark(self, high_watermark: Offset) -> None:
        """As a follower, adopt the leader's high watermark up to the end of this log."""
        start, end = self.log.log_start_offset, self.log.log_end_offset
        if high_watermark > self.highest_watermark:
            self.highest_watermark = high_watermark
        before = self._high_watermark
        self._high_watermark = min(max(before, start, min(high_watermark, end)), end)
        if self._high_watermark > before and self._consumers:
            wake_all(self._consumers)

    def truncate(self, offset: Offset) -> None:
        """Remove the records that the leader does not have."""
        assert self.leader is None
        end, high_watermark = self.log.log_end_offset, self._high_watermark
        self._cut(self.log.truncate_to, offset, removed_from=offset)
        if self.log.log_end_offset < end:
            self._owner.truncated(self, end, high_watermark)

    def drop_damaged(self, offset: Offset) -> None:
        """Remove all records from `damaged_from` on, to fetch them from the leader again."""
        assert self.leader is None
        self._cut(self.log.truncate_to, offset, removed_from=offset)

    @property
    def damaged_from(self) -> Offset | None:
        """The first offset of damaged records, which must be fetched from the leader again."""
        return min((one.first_offset for one in self.log.damages), default=None)

    def restart_at(self, offset: Offset) -> None:
        """Delete the whole log and continue at `offset`, the leader's log start offset."""
        assert self.leader is None
        self._cut(self.log.truncate_fully_and_start_at, offset, removed_from=0)

    def _cut(
        self, cut: Callable[[Offset, Millis], None], offset: Offset, *, removed_from: Offset
    ) -> None:
        removed = self.log.sequences_from(removed_from)
        cut(offset, self._clock.now)
        self._owner.removed(self, removed)
        self.visible_end = self.log.log_end_offset
        self.has_chores = True
        self._flush_is_due = False
        self._high_watermark = min(self._high_watermark, self.visible_end)
        self.highest_watermark = self._high_watermark
        self.moved()

    # -- beginning and ending leadership ---------------------------------------------------------

    def lead(self, me: NodeId, epoch: LeaderEpoch, agreed: IsrAgreed, rule: CommitRule) -> None:
        """Begin to lead. The epoch starts at the log end. The high watermark does not change."""
        log = self.log
        assert epoch >= log.latest_epoch, "the log knows of a later leader"
        self.follower_starts, self.sent_watermarks = {}, {}
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
            rule=rule,
        )
        self._reach(self.visible_end)
        # Wake followers that wait in an earlier epoch, so that they fetch in the new epoch at once.
        wake_all(self._followers)

    def step(self, event: LeaderEvent) -> None:
        """Pass an event to the leader's machine and carry out its effects."""
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
            # Nothing can be committed until a replica returns, so fail the writes now (F32).
            _refuse(self._acks_all, ErrorCode.not_enough_replicas_after_append)
        if self._deletions:
            self.settle_deletions()

    def has_stuck_follower(self, patience_ms: Millis) -> bool:
        """Whether this node leads and an in-sync follower has not fetched for `patience_ms`."""
        if self.leader is None:
            return False
        self.refresh_progress()
        return self.leader.has_stuck_follower(self._clock.now, patience_ms)

    def give_up_acks(self) -> None:
        """Fail the writes that wait for acks=all, so that their clients look for another leader."""
        _refuse(self._acks_all, ErrorCode.not_leader_or_follower)
        wake_all(self._consumers)

    def resign(self, error: ErrorCode) -> None:
        """End the leadership, if any, and fail every request that waits for this replica."""
        if self.leader is not None:
            self._high_watermark = self.leader.high_watermark
        self.leader = None
        for waiters in (self._acks_leader, self._acks_all, self._deletions):
            _refuse(waiters, error)
        wake_all(self._consumers)
        wake_all(self._followers)

    # -- appends and acknowledgements ------------------------------------------------------------

    def appended(self) -> None:
        """Acknowledge an append, or start the flush that must come first."""
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
            # The flushed offset `up_to` is not used here, because the log may have been truncated
            # during the flush. Records below `visible_end` may have been acknowledged without a
            # flush.
            self._reach(max(log.recovery_point, self.visible_end))
        else:
            self._flush_is_due = False
            self._reach(log.log_end_offset)

    def has_acknowledged(self, acks: int, end: Offset) -> bool:
        """Whether every replica that `acks` requires holds all records below `end`."""
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
        if self.sent_watermarks:
            wake_all(self._followers)

    # -- DeleteRecords ---------------------------------------------------------------------------

    def delete_before(self, offset: Offset) -> None:
        """Move the log start offset. Followers receive it at once and move their own."""
        self.log.advance_log_start(offset)
        self.moved()
        wake_all(self._followers)

    @property
    def low_watermark(self) -> Offset:
        """The smallest log start offset among the live replicas."""
        assert self.leader is not None
        others = (
            self.follower_starts.get(replica, NO_OFFSET)
            for replica in self.leader.replicas
            if replica != self.leader.me and self._owner.is_alive(replica)
        )
        return min((self.log.log_start_offset, *others))

    def await_deletion(self, offset: Offset, deletion: Pending[RecordsDeleted], index: int) -> None:
        """Park the deletion at `index` until no live replica holds records below `offset`."""
        self._deletions.add(offset, (deletion, index))

    def settle_deletions(self) -> None:
        """Confirm deletions of records that no live replica holds any more."""
        if self._deletions and self.leader is not None:
            for deletion, index in self._deletions.release(self.low_watermark):
                deletion.confirm(index)

    # -- followers and waiting fetches -----------------------------------------------------------

    def follower_fetched(self, event: FollowerFetched) -> None:
        if self.leader is not None:
            self.step(event)

    def listen(self, listener: WatchListener, *, is_follower: bool) -> None:
        """Wake this listener from now on.

        A commit wakes a consumer, and an append wakes a follower.
        """
        (self._followers if is_follower else self._consumers)[listener] = None

    def unlisten(self, listener: WatchListener) -> None:
        self._consumers.pop(listener, None)
        self._followers.pop(listener, None)

    def watch(self, watch: PartitionWatch, *, is_follower: bool) -> None:
        """Notify the fetch session from now on whenever this partition changes."""
        if watch.watched_partition is self:
            return
        if watch.watched_partition is not None:
            watch.watched_partition.unwatch(watch)
        watch.watched_partition = self
        self.listen(watch, is_follower=is_follower)

    def unwatch(self, watch: PartitionWatch) -> None:
        self.unlisten(watch)

    def moved(self) -> None:
        """Make the next fetch of every session read this partition."""
        if self._consumers:
            mark_all(self._consumers)
        if self._followers:
            mark_all(self._followers)

    def fetched_at_end(self, watch: PartitionWatch) -> None:
        """Record that a follower's incremental fetch omitted this partition as unchanged."""
        session = watch.session
        if session is not None and session.replica >= 0 and self.leader is not None:
            self.leader.step(FollowerFetchedAgain(session.replica, session.fetched_at), 0)

    def refresh_progress(self) -> None:
        """Update the leader's record of each follower's last fetch."""
        for listener in self._followers:
            if isinstance(listener, PartitionWatch) and listener.is_at_rest:
                self.fetched_at_end(listener)

    # -- timed work ------------------------------------------------------------------------------

    def do_chores(self, now: Millis) -> None:
        """Start a flush that flush.ms requires, and remove the files of deleted segments."""
        if self.log.needs_flush(now):
            if not self.flushing:
                self._owner.start_flush(self)
            return
        deadline = self.log.next_deadline()
        if deadline is None:
            self.has_chores = self.flushing
        elif deadline <= now:
            self.log.purge(now)


def _refuse(waiters: OffsetWaiters[Waiter], error: ErrorCode) -> None:
    for append, index in waiters.drain():
        append.refuse(index, error)
