"""This node's copy of one partition: its log, its leadership while it leads, and who waits on it.

Invariant: an offset is acknowledged only when the log holds it as durably as the flush policy
asks, and shown to consumers only below the high watermark.
"""

from collections.abc import Callable
from typing import TypeAlias

from tidelog.log.partition import PartitionLog
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Millis, NodeId, Offset, TopicId, TopicPartition
from tidelog.node.appends import PendingAppend
from tidelog.node.fetches import PendingFetch
from tidelog.replication.commit import InSync
from tidelog.replication.isr.leader import IsrChanged, PartitionLeader, Produced
from tidelog.replication.waiters import OffsetWaiters

AckWaiter: TypeAlias = tuple[PendingAppend, int]
StartFlush: TypeAlias = Callable[["Replica"], None]


class Replica:
    __slots__ = (
        "_acks_all",
        "_acks_leader",
        "_fetches",
        "_flush_is_due",
        "_start_flush",
        "flushing",
        "leader",
        "log",
        "partition",
        "topic_id",
        "visible_end",
    )

    def __init__(
        self, partition: TopicPartition, topic_id: TopicId, log: PartitionLog, flush: StartFlush
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.log = log
        self.leader: PartitionLeader | None = None
        self.visible_end: Offset = log.log_end_offset
        """How far the log may be acknowledged: its end, less what still waits for a flush."""
        self.flushing = False
        self._flush_is_due = False
        self._start_flush = flush
        self._acks_leader: OffsetWaiters[AckWaiter] = OffsetWaiters()
        self._acks_all: OffsetWaiters[AckWaiter] = OffsetWaiters()
        self._fetches: dict[PendingFetch, None] = {}

    @property
    def high_watermark(self) -> Offset:
        return self.leader.high_watermark if self.leader is not None else self.log.log_start_offset

    @property
    def last_stable_offset(self) -> Offset:
        """What a transactional reader may see: below the first transaction still open."""
        return self.log.last_stable_offset(self.high_watermark)

    # -- leadership ------------------------------------------------------------------------------

    def lead(self, me: NodeId, epoch: LeaderEpoch, isr: InSync) -> None:
        """Begin a leadership: the epoch starts at the log's end."""
        self.log.assign_epoch(epoch, self.log.log_end_offset)
        self.leader = PartitionLeader(
            me, epoch, isr, end=self.visible_end, high_watermark=self.log.log_start_offset
        )
        self._reach(self.visible_end)

    def change_isr(self, isr: InSync) -> None:
        assert self.leader is not None
        if self.leader.step(IsrChanged(isr)) is not None:
            self._committed(self.leader.high_watermark)

    def resign(self, error: ErrorCode) -> None:
        """End the leadership, or the replica: nobody who waits here will be served."""
        self.leader = None
        for waiters in (self._acks_leader, self._acks_all):
            for append, index in waiters.drain():
                append.refuse(index, error)
        self._wake_fetches()

    # -- appends ---------------------------------------------------------------------------------

    def appended(self) -> None:
        """The log has grown: acknowledge, or see to the flush that must come first."""
        log = self.log
        if log.log_end_offset - log.recovery_point >= log.config.flush_messages:
            self._flush_is_due = True
            if not self.flushing:
                self._start_flush(self)
        if not self._flush_is_due:
            self._reach(log.log_end_offset)

    def flushed(self, up_to: Offset) -> None:
        self.flushing = False
        self.log.flushed(up_to)
        if not self._flush_is_due:
            return
        log = self.log
        if log.log_end_offset - log.recovery_point >= log.config.flush_messages:
            self._start_flush(self)
            self._reach(up_to)
        else:
            self._flush_is_due = False
            self._reach(log.log_end_offset)

    def has_acknowledged(self, acks: int, end: Offset) -> bool:
        """Whether everyone whom `acks` names holds everything below `end`."""
        return (self.high_watermark if acks == -1 else self.visible_end) >= end

    def await_ack(self, acks: int, end: Offset, append: PendingAppend, index: int) -> None:
        """Park the append at `index` until `end` is acknowledged."""
        (self._acks_all if acks == -1 else self._acks_leader).add(end, (append, index))

    def _reach(self, end: Offset) -> None:
        self.visible_end = end
        for append, index in self._acks_leader.release(end):
            append.acknowledge(index)
        if self.leader is not None and self.leader.step(Produced(end)) is not None:
            self._committed(self.leader.high_watermark)

    def _committed(self, high_watermark: Offset) -> None:
        for append, index in self._acks_all.release(high_watermark):
            append.acknowledge(index)
        self._wake_fetches()

    # -- fetches ---------------------------------------------------------------------------------

    def park(self, fetch: PendingFetch) -> None:
        self._fetches[fetch] = None

    def unpark(self, fetch: PendingFetch) -> None:
        self._fetches.pop(fetch, None)

    def _wake_fetches(self) -> None:
        if self._fetches:
            for fetch in list(self._fetches):
                fetch.wake()

    # -- time ------------------------------------------------------------------------------------

    def flush_by_time(self, now: Millis) -> None:
        """flush.ms: in the background, nobody waits for it."""
        if not self.flushing and self.log.needs_flush(now):
            self._start_flush(self)
