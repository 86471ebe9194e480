"""Carries out the effects of share groups: acquire, acknowledge and release records.

A fetch without records waits until records are committed, or become available again.
"""

from collections.abc import Iterable
from functools import partial
from itertools import count

from tidelog.api.records.share_sessions import ShareSession
from tidelog.coordination.delivery.acknowledgements import AcknowledgementBatch
from tidelog.coordination.delivery.acquisition import (
    AcquiredRecords,
    Acquirer,
    FetchedBatches,
    OffsetRange,
)
from tidelog.coordination.delivery.group_limits import is_read_committed
from tidelog.coordination.share_state.share_records import SharePartitionKey
from tidelog.model.effects import (
    AbortedTransaction,
    FetchBatches,
    FetchResult,
    PartitionFetch,
)
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
from tidelog.node.partitions.fetches import Fetches
from tidelog.node.partitions.replica import Replica
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.shares.led_shares import LedShare, LedShares
from tidelog.node.timers import Timer
from tidelog.protocol.records.batch import BatchHeader, iterate

_DONE = RecordsAcknowledged(ErrorCode.none)
_NOTHING = RecordsAcquired(ErrorCode.none)


class ShareFetches:
    def __init__(self, clock: Clock, fetches: Fetches, shares: LedShares) -> None:
        self.clock = clock
        self.fetches = fetches
        self.shares = shares
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
                self._results[partition] = RecordsAcquired(error)
            self._loading -= 1
            self._opened()

        led.opening.append(loaded)

    def _opened(self) -> None:
        if self._loading <= 0 and not self._is_over:
            self._listen()
            self.wake()

    def _listen(self) -> None:
        partitions = self._owner.fetches.partitions
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
        """Read again, and answer if there is something to return or the time is over."""
        if self._is_over or self._loading > 0:
            return
        acquired = self._acquire()
        has_error = any(result.error is not ErrorCode.none for result in self._results.values())
        if acquired or has_error or self._has_timed_out:
            self._answer()

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

    def _acquire(self) -> bool:
        effect = self._effect
        records, size = effect.max_records, effect.max_bytes
        for partition, led in self._led.items():
            if led.is_dropped:
                self._results[partition] = RecordsAcquired(ErrorCode.not_leader_or_follower)
                continue
            if records <= 0 or size <= 0 or led.share is None or led.opening:
                continue
            result = self._acquire_from(led, records, size)
            if result is None:
                continue
            self._results[partition] = result
            records -= sum(last - first + 1 for first, last, _ in result.acquired)
            size -= len(result.records or b"")
        return records < effect.max_records

    def _acquire_from(self, led: LedShare, most: int, size: int) -> RecordsAcquired | None:
        share, shares = led.share, self._owner.shares
        assert share is not None
        share.limits = shares.limits_of(led.key.group)
        start = shares.log_start(led)
        if start is not None:
            share.log_start_moved(start)
        if not share.can_acquire():
            return None
        offset = share.next_fetch_offset()
        found = self._read(led, offset, size)
        if found.error is not ErrorCode.none:
            return RecordsAcquired(found.error)
        if found.records is None:
            return None
        file, position, length = found.records
        data = memoryview(file.read(position, length))
        headers = list(iterate(data))
        batches = tuple(OffsetRange(h.base_offset, h.last_offset) for _, h in headers)
        aborted = _aborted_batches([header for _, header in headers], found.aborted or ())
        acquirer = Acquirer(
            self._effect.member, most, self._effect.batch_size, self._effect.is_strict
        )
        fetched = FetchedBatches(offset, batches, aborted)
        acquired = share.acquire(acquirer, fetched, shares.now())
        shares.flush(led)
        if not acquired:
            return None
        ranges = tuple((part.first, part.last, part.delivery_count) for part in acquired)
        return RecordsAcquired(ErrorCode.none, None, _slice(data, headers, acquired), ranges)

    def _read(self, led: LedShare, offset: Offset, size: int) -> FetchResult:
        owner = self._owner
        read = PartitionFetch(led.partition, offset, size)
        committed = is_read_committed(owner.shares.config_of(led.key.group))
        effect = FetchBatches([read], 1, size, 0, read_committed=committed)
        attempt = owner.fetches.partitions.attempt(effect)
        if attempt.cold:
            attempt = owner.fetches.waiting_if_evicted(attempt, effect, 0)
            owner.fetches.read_cold(attempt, self._conn, self.wake)
        owner.fetches.answering(effect, attempt)
        return attempt.results[0]


def _slice(
    data: memoryview, headers: list[tuple[int, BatchHeader]], acquired: list[AcquiredRecords]
) -> bytes:
    """The bytes of the batches from the first acquired record to the last one."""
    first, last = acquired[0].first, acquired[-1].last
    wanted = [
        (at, at + header.size)
        for at, header in headers
        if header.last_offset >= first and header.base_offset <= last
    ]
    return bytes(data[wanted[0][0] : wanted[-1][1]]) if wanted else b""


def _aborted_batches(
    headers: list[BatchHeader], aborted: tuple[AbortedTransaction, ...]
) -> tuple[OffsetRange, ...]:
    """The batches that belong to aborted transactions.

    A transaction begins at its first offset and ends with the next marker of its producer.
    """
    if not aborted:
        return ()
    upcoming = sorted(aborted, key=lambda one: one.first_offset)
    open_producers: set[int] = set()
    found: list[OffsetRange] = []
    for header in headers:
        while upcoming and upcoming[0].first_offset <= header.last_offset:
            open_producers.add(upcoming.pop(0).producer_id)
        if header.is_control:
            open_producers.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in open_producers:
            found.append(OffsetRange(header.base_offset, header.last_offset))
    return tuple(found)
