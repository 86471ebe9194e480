"""Carries out the effects of share groups: acquire, acknowledge and release records.

A fetch without records waits until records are committed, or become available again.
"""

from collections.abc import Iterable
from functools import partial
from itertools import count

from tidelog.api.records.share_sessions import ShareSession
from tidelog.coordination.delivery.acknowledgements import AcknowledgementBatch
from tidelog.coordination.delivery.acquisition import Acquirer
from tidelog.coordination.delivery.group_limits import is_read_committed
from tidelog.coordination.delivery.share_partition import SharePartition
from tidelog.coordination.share_state.share_records import SharePartitionKey
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ConnId, Offset
from tidelog.model.share_effects import (
    AcknowledgeRecords,
    AcquireRecords,
    RecordsAcknowledged,
    RecordsAcquired,
    ReleaseRecords,
    SharedPartition,
)
from tidelog.node.clock import Clock
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.partitions.rereads import SHORT_READS_PER_TURN, Rereads
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.shares.led_shares import LedShare, LedShares
from tidelog.node.shares.share_reads import ColdReader, ShareReads
from tidelog.node.timers import Timer

_DONE = RecordsAcknowledged(ErrorCode.none)
_NOTHING = RecordsAcquired(ErrorCode.none)
_READS = 8
"""How often one event reads on, while all records that it finds are of aborted transactions."""


class ShareFetches:
    def __init__(
        self, clock: Clock, partitions: Partitions, reads: ShareReads, shares: LedShares
    ) -> None:
        self.clock = clock
        self.partitions = partitions
        self.reads = reads
        self.shares = shares
        self.rereads = Rereads(clock, SHORT_READS_PER_TURN)
        self.order = count()
        self.waiting: dict[ConnId, dict[PendingShareFetch, None]] = {}
        """The fetches of each connection that wait."""

    def acquire(
        self, effect: AcquireRecords, resume: Resume, conn: ConnId
    ) -> list[RecordsAcquired] | Parked:
        pending = PendingShareFetch(self, effect, resume, conn)
        pending.begin()
        return PARKED

    def acknowledge(self, effect: AcknowledgeRecords, resume: Resume) -> Parked:
        results: list[RecordsAcknowledged] = [_DONE] * len(effect.acknowledgements)
        missing = len(results)

        def done(index: int, outcome: RecordsAcknowledged) -> None:
            nonlocal missing
            results[index] = outcome
            missing -= 1
            if not missing:
                resume(results)

        if not missing:
            resume(results)
        for index, (partition, batches) in enumerate(effect.acknowledgements):
            led = self.shares.known(effect.group, partition)
            if led is None:
                done(index, RecordsAcknowledged(ErrorCode.unknown_topic_or_partition))
                continue
            typed = [AcknowledgementBatch(*batch) for batch in batches]
            self.shares.acknowledge(led, effect.member, typed, partial(done, index))
        return PARKED

    def release(self, effect: ReleaseRecords, resume: Resume) -> Parked:
        held = [
            led
            for partition in effect.partitions
            if (led := self.shares.known(effect.group, partition)) is not None
        ]
        missing = len(held)

        def done(outcome: RecordsAcknowledged) -> None:
            nonlocal missing
            missing -= 1
            if not missing:
                resume(None)

        if not held:
            resume(None)
        for led in held:
            self.shares.release(led, effect.member, done)
        if effect.is_last:
            self.shares.sessions_ended(effect.group)
        return PARKED

    def connection_lost(self, conn: ConnId, sessions: Iterable[ShareSession]) -> None:
        """Drop the fetches of a lost connection, and release what its members have acquired."""
        for pending in list(self.waiting.get(conn, ())):
            pending.drop()
        for session in sessions:
            for topic_id, index in session.partitions:
                key = SharePartitionKey(session.key.group, topic_id, index)
                led = self.shares.loaded(key)
                if led is not None:
                    self.shares.release(led, session.key.member, _ignore)
            if session.is_last:
                self.shares.sessions_ended(session.key.group)


def _ignore(outcome: RecordsAcknowledged) -> None:
    pass


class PendingShareFetch:
    """One fetch of a member. It waits for its share partitions to load, then for records."""

    def __init__(
        self, owner: ShareFetches, effect: AcquireRecords, resume: Resume, conn: ConnId
    ) -> None:
        self.order = next(owner.order)
        self._owner = owner
        self._effect = effect
        self._resume = resume
        self._conn = conn
        self._results: dict[SharedPartition, RecordsAcquired] = {}
        self._led: dict[SharedPartition, LedShare] = {}
        self._listening: list[Replica] = []
        self._loading = 0
        self._has_timed_out = False
        self._is_over = False
        self._rounds = 0
        """How often the fetch has waited for bytes that were not cached."""
        self._timer: Timer | None = None

    def begin(self) -> None:
        effect, owner = self._effect, self._owner
        owner.waiting.setdefault(self._conn, {})[self] = None
        deadline = owner.clock.now + max(0, effect.max_wait_ms)
        self._timer = owner.clock.timers.at(deadline, self._time_out)
        self._loading = 1  # until all partitions have been opened
        for partition in effect.partitions:
            self._open(partition)
        self._loading -= 1
        self._opened()

    def _open(self, partition: SharedPartition) -> None:
        led = self._owner.shares.open(self._effect.group, partition)
        if isinstance(led, ErrorCode):
            self._results[partition] = RecordsAcquired(led)
            return
        self._led[partition] = led
        if led.share is not None and not led.opening:
            return
        self._loading += 1

        def loaded(error: ErrorCode) -> None:
            if error is not ErrorCode.none:
                self._led.pop(partition, None)
            if error not in (ErrorCode.none, ErrorCode.coordinator_not_available):
                # Members do not expect the latter: the next fetch tries to load the state again.
                self._results[partition] = RecordsAcquired(error)
            self._loading -= 1
            self._opened()

        led.opening.append(loaded)

    def _opened(self) -> None:
        if self._loading <= 0 and not self._is_over:
            self._listen()
            self.wake()

    def _listen(self) -> None:
        partitions = self._owner.partitions
        for led in self._led.values():
            led.waiting[self.wake] = None
            replica = partitions.get(led.partition)
            if replica is not None:
                replica.listen(self, is_follower=False)
                self._listening.append(replica)

    # -- as a listener of partitions ---------------------------------------------------------------

    def mark(self) -> None:
        """Do nothing, because a woken fetch reads every partition anyway."""

    @property
    def waiting(self) -> tuple["PendingShareFetch"]:
        return (self,)

    def wake(self) -> None:
        """Read again, now or in turn (F97)."""
        if not self._is_over and self._loading <= 0 and self._owner.rereads.admits(self):
            self.read_again()

    def _time_out(self) -> None:
        self._has_timed_out = True
        self._loading = 0
        self.wake()

    def drop(self) -> None:
        """Stop waiting, because the fetch is answered or its connection is lost."""
        self._is_over = True
        waiting = self._owner.waiting.get(self._conn)
        if waiting is not None:
            waiting.pop(self, None)
            if not waiting:
                del self._owner.waiting[self._conn]
        self._owner.rereads.drop(self)
        if self._timer is not None:
            self._timer.cancel()
        for led in self._led.values():
            led.waiting.pop(self.wake, None)
        for replica in self._listening:
            replica.unlisten(self)

    def _answer(self) -> None:
        self.drop()
        results = [self._results.get(one, _NOTHING) for one in self._effect.partitions]
        self._resume(results)

    # -- reading -----------------------------------------------------------------------------------

    @property
    def partitions(self) -> int:
        """How many partitions the fetch reads."""
        return len(self._led)

    def read_again(self) -> None:
        """Read every partition, and answer if there is something to return or the time is over."""
        if self._is_over or self._loading > 0:
            return
        acquired = self._acquire()
        has_error = any(result.error is not ErrorCode.none for result in self._results.values())
        if acquired or has_error or self._has_timed_out:
            self._answer()

    def _acquire(self) -> bool:
        effect = self._effect
        records, size = effect.max_records, effect.max_bytes
        for partition, led in self._led.items():
            if led.is_dropped:
                self._results[partition] = RecordsAcquired(ErrorCode.not_leader_or_follower)
                continue
            if records <= 0 or size <= 0 or led.share is None or led.opening:
                continue
            result = self._acquire_from(led, led.share, records, size)
            if result is None:
                continue
            self._results[partition] = result
            records -= sum(last - first + 1 for first, last, _ in result.acquired)
            size -= len(result.records or b"")
        return records < effect.max_records

    def _acquire_from(
        self, led: LedShare, share: SharePartition, most: int, size: int
    ) -> RecordsAcquired | None:
        """Acquire records; None if the partition has none for this member now."""
        for _ in range(_READS):
            share.limits = self._owner.shares.limits_of(led.key.group)
            start = self._owner.shares.log_start(led)
            if start is not None:
                share.log_start_moved(start)
            if not share.can_acquire():
                return None
            offset = share.next_fetch_offset()
            result = self._acquire_at(led, share, offset, most, size)
            if result is not None or share.next_fetch_offset() == offset:
                return result
        # All that was read belongs to aborted transactions. Others have their turn first.
        self._owner.clock.timers.at(self._owner.clock.now + 1, self.wake)
        return None

    def _acquire_at(
        self, led: LedShare, share: SharePartition, offset: Offset, most: int, size: int
    ) -> RecordsAcquired | None:
        shares, reads, effect = self._owner.shares, self._owner.reads, self._effect
        committed = is_read_committed(shares.config_of(led.key.group))
        reader = ColdReader(self._conn, self._cached, self._rounds)
        read = reads.read(led.partition, offset, size, reader, read_committed=committed)
        if read is None or read is ErrorCode.offset_out_of_range:
            # An unclean election has cut the log below the records that were delivered. The next
            # records have offsets that are in range.
            return None
        if isinstance(read, ErrorCode):
            return RecordsAcquired(read)
        acquirer = Acquirer(effect.member, most, effect.batch_size, effect.is_strict)
        acquired = share.acquire(acquirer, read.fetched, shares.now())
        shares.flush(led)
        if not acquired:
            return None
        ranges = tuple((part.first, part.last, part.delivery_count) for part in acquired)
        data = read.bytes_of(acquired)
        reads.sent(len(data))
        return RecordsAcquired(ErrorCode.none, None, data, ranges)

    def _cached(self) -> None:
        """Read again, because bytes that were missing are now in the page cache."""
        self._rounds += 1
        self.wake()
