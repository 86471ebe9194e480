"""Holds this node's partitions, and carries out the effects that append to and fetch from logs.

Invariant: a client's request is served only while this node leads the partition. The exception is a
read of committed records, which a follower may serve (KIP-392).
"""

from collections.abc import Callable, Iterator

from tidelog.log.results import Appended, AppendOrigin, AppendRefused, ReadResult
from tidelog.log.validation.record_checks import RecordCheck
from tidelog.model.disk import FileSlice, NotCached
from tidelog.model.effects import (
    AbortedTransaction,
    AppendBatches,
    AppendResult,
    FetchBatches,
    FetchResult,
    PartitionFetch,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import (
    NO_EPOCH,
    NO_NODE,
    NO_OFFSET,
    ConnId,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    TopicId,
    TopicPartition,
)
from tidelog.node.clock import Clock
from tidelog.node.events.counters import Counters
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.partitions import reading
from tidelog.node.partitions.append_checks import UNCHECKED, AppendChecks, refusal
from tidelog.node.partitions.fetch_attempt import FetchAttempt
from tidelog.node.partitions.read_replicas import ReadReplicas
from tidelog.node.partitions.refused_sequences import TOO_EARLY, RefusedSequences
from tidelog.node.partitions.replica import Replica
from tidelog.node.partitions.throttles import Throttles
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.requests.pending import Pending
from tidelog.replication.isr.leader import FollowerFetched


class Partitions:
    def __init__(
        self,
        clock: Clock,
        current: CurrentImage,
        storage_failed: Callable[[TopicPartition, OSError], None],
        counters: Counters,
        read_replicas: ReadReplicas,
        throttles: Throttles,
        checks: AppendChecks,
    ) -> None:
        self.current = current
        self._replicas: dict[TopicPartition, Replica] = {}
        self.offline: dict[TopicPartition, TopicId] = {}
        """Partitions that this node holds in a log directory that has failed."""
        self.cut_off_for_ms: Millis | None = None
        """The broker session timeout, if no controller has answered for that long; else None."""
        self._clock = clock
        self._timers = clock.timers
        self._storage_failed = storage_failed
        self._read_replicas = read_replicas
        self._throttles = throttles
        self._counters = counters
        self._checks = checks
        self.refused = RefusedSequences()
        self._to_check: list[RecordCheck] = []
        """The record checks that the current call of `append` needs."""

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._replicas.values())

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._replicas

    def get(self, partition: TopicPartition) -> Replica | None:
        return self._replicas.get(partition)

    def add(self, replica: Replica) -> None:
        assert replica.partition not in self._replicas
        self._replicas[replica.partition] = replica

    def remove(self, partition: TopicPartition) -> Replica | None:
        return self._replicas.pop(partition, None)

    def hosted(self, partition: TopicPartition) -> Replica | ErrorCode:
        """The replica on this node, whether or not it leads."""
        return self._replicas.get(partition) or self._not_led(partition)

    def leading(
        self, partition: TopicPartition, epoch: LeaderEpoch = NO_EPOCH
    ) -> Replica | ErrorCode:
        """The replica, if this node leads it in the epoch that the client names (KIP-320)."""
        replica = self._replicas.get(partition)
        leader = replica.leader if replica is not None else None
        if replica is None or leader is None:
            return self._not_led(partition)
        if epoch != NO_EPOCH and epoch != leader.epoch:
            if epoch < leader.epoch:
                return ErrorCode.fenced_leader_epoch
            return ErrorCode.unknown_leader_epoch
        return replica

    def _not_led(self, partition: TopicPartition) -> ErrorCode:
        if self.current.image.partition(partition) is None:
            return ErrorCode.unknown_topic_or_partition
        if partition in self.offline:
            return ErrorCode.kafka_storage_error
        return ErrorCode.not_leader_or_follower

    # -- appending -------------------------------------------------------------------------------

    def append(
        self,
        effect: AppendBatches,
        resume: Resume,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        conn: ConnId = 0,
    ) -> list[AppendResult] | Parked:
        """Append each batch, and park the request until `acks` is satisfied for all of them."""
        acks, results = effect.acks, list[AppendResult]()
        grown, ends = list[Replica](), list[Offset]()
        for partition, records in effect.appends:
            replica = self._replicas.get(partition)
            result = self._append_one(partition, replica, records, acks, origin)
            if result[1] < 0:
                result = self.refused.judge(partition, records, result)
            results.append(result[0])
            ends.append(result[1])
            if replica is not None and result[1] >= 0:
                grown.append(replica)
        if len(grown) > 1:
            # The first call of `appended` may wake a fetch, which must see all of these appends.
            for replica in grown:
                replica.moved()
        for replica in grown:
            replica.appended()
        if self._to_check:
            checks, self._to_check = self._to_check, []
            resume = self._checks.begin(effect, results, checks, self, conn, resume)
            if acks == 0 or self._await_acks(effect, results, ends, resume) is not PARKED:
                resume(results)
            return PARKED
        if acks == 0 or not grown:
            return results
        return self._await_acks(effect, results, ends, resume)

    def append_own(
        self, replica: Replica, records: memoryview, origin: AppendOrigin
    ) -> tuple[AppendResult, Offset]:
        """Append a batch of this broker; returns the result, and the offset after it, or -1."""
        if self._replicas.get(replica.partition) is not replica:
            return AppendResult(ErrorCode.not_leader_or_follower), -1
        result, end = self._append_one(replica.partition, replica, records, -1, origin)
        if end >= 0:
            replica.appended()
        return result, end

    def _append_one(
        self,
        partition: TopicPartition,
        replica: Replica | None,
        records: memoryview | None,
        acks: int,
        origin: AppendOrigin,
    ) -> tuple[AppendResult, Offset]:
        """The result, and the offset after the batch, or -1 if there is no offset to wait for."""
        leader = replica.leader if replica is not None else None
        if replica is None or leader is None:
            return AppendResult(self._not_led(partition)), -1
        if acks == -1 and leader.is_below_min_isr:
            return AppendResult(ErrorCode.not_enough_replicas), -1
        if self._is_out_of_touch(replica):
            return AppendResult(ErrorCode.not_leader_or_follower), -1
        if records is None:
            return AppendResult(ErrorCode.invalid_record, message="No records were given."), -1
        if self.refused.missing and self.refused.precedes_first(partition, records, replica.log):
            return TOO_EARLY
        try:
            clock = self._clock
            outcome = replica.log.append_as_leader(
                records, leader.epoch, clock.now, origin, clock.ahead_ms
            )
        except OSError as failure:
            self._storage_failed(partition, failure)
            return AppendResult(ErrorCode.kafka_storage_error), -1
        if not isinstance(outcome, Appended):
            if isinstance(outcome, AppendRefused):
                return refusal(outcome, replica.log.log_start_offset), -1
            self._to_check.append(outcome)
            return UNCHECKED, -1
        self._counters.bytes_in += len(records)
        self._counters.messages_in += outcome.last_offset + 1 - outcome.base_offset
        return AppendResult(
            ErrorCode.none,
            outcome.base_offset,
            outcome.log_append_time,
            replica.log.log_start_offset,
        ), outcome.last_offset + 1

    def _await_acks(
        self,
        effect: AppendBatches,
        results: list[AppendResult],
        ends: list[Offset],
        resume: Resume,
    ) -> list[AppendResult] | Parked:
        pending: Pending[AppendResult] | None = None
        for index, end in enumerate(ends):
            if end < 0:
                continue
            replica = self._replicas[effect.appends[index].partition]
            if replica.has_acknowledged(effect.acks, end):
                continue
            if pending is None:
                pending = Pending(results, resume, AppendResult)
            pending.expect(index)
            replica.await_ack(effect.acks, end, pending, index)
        if pending is None:
            return results
        deadline = self._clock.now + max(0, effect.timeout_ms)
        pending.timer = self._timers.at(deadline, pending.time_out)
        return PARKED

    # -- fetching --------------------------------------------------------------------------------

    def prove(self, effect: FetchBatches, *, waits: bool = False) -> bool:
        """Record a follower's progress from its fetch.

        A fetch from offset N proves that the follower holds all records below N. Returns whether
        the fetch can wait without being read: the follower has everything, and its session watches
        all partitions. Raises NotCached if `waits` is False and a read would wait for the disk. In
        that case, the call may be repeated.
        """
        broker = self.current.image.brokers.get(effect.replica)
        if broker is not None and 0 <= effect.replica_epoch < broker.epoch:
            return False  # from an earlier run of the broker, which may have lost records (F15)
        if effect.session is not None:
            effect.session.fetched_at = self._clock.now
        is_eligible = (
            broker is not None and broker.is_active and effect.replica_epoch in (-1, broker.epoch)
        )
        may_wait = not self._read_replicas.are_in_use
        for read in effect.reads:
            replica = self.leading(read.partition, read.current_leader_epoch)
            if isinstance(replica, ErrorCode):
                may_wait = False
                continue
            leader, log = replica.leader, replica.log
            if reading.divergence_of(replica, read, waits=waits) is not None:
                may_wait = False
                continue
            assert leader is not None
            if not leader.has_replica(effect.replica):
                may_wait = False
                continue
            start, end = log.log_start_offset, log.log_end_offset
            is_watched = read.watch is not None and read.watch.watched_partition is replica
            if read.offset != end or read.log_start_offset != start or not is_watched:
                may_wait = False
            if start <= read.offset <= end:
                replica.follower_starts[effect.replica] = read.log_start_offset
                replica.follower_fetched(
                    FollowerFetched(effect.replica, read.offset, effect.replica_epoch, is_eligible)
                )
        return may_wait

    def attempt(self, effect: FetchBatches, *, waits: bool = False) -> FetchAttempt:
        """Read every partition of a fetch; without `waits`, read only bytes that are cached."""
        results: list[FetchResult] = []
        found, budget = 0, effect.max_bytes
        is_urgent, is_follower = False, effect.replica >= 0
        may_be_news = self._read_replicas.are_in_use
        cold: tuple[FileSlice, ...] = ()
        for read in effect.reads:
            max_bytes = read.max_bytes if read.max_bytes < budget else budget
            try:
                result = self._read_one(read, max_bytes, found == 0, effect, waits)
            except NotCached as missing:
                cold += (missing.part,)
                result = reading.without_records(self._replicas[read.partition])
            results.append(result)
            records = result.records
            if records is not None:
                found += records.length
                budget -= records.length
            elif result.error is not ErrorCode.none or result.diverging is not None:
                is_urgent = True
                continue
            elif result.preferred_read_replica != NO_NODE:
                is_urgent = True
            if is_follower:
                is_deleted = NO_OFFSET != read.log_start_offset < result.log_start_offset
                if is_deleted or (may_be_news and self._is_news(read, effect.replica)):
                    is_urgent = True  # DeleteRecords or a consumer may wait for this follower
        is_enough = is_urgent or found >= effect.min_bytes
        if cold and not found:
            is_enough = is_urgent
        if is_enough and is_follower and self._throttles.leader.is_on:
            for read, result in zip(effect.reads, results, strict=True):
                if result.records is not None:
                    sent_from = self._replicas[read.partition]
                    self._throttles.sent(sent_from, effect.replica, result.records.length)
        return FetchAttempt(results, is_enough, found, cold)

    def _is_news(self, read: PartitionFetch, follower: NodeId) -> bool:
        return self._read_replicas.is_news(self._replicas[read.partition], follower)

    def _is_out_of_touch(self, replica: Replica) -> bool:
        """Whether no controller answers and an in-sync follower has also stopped fetching."""
        return self.cut_off_for_ms is not None and replica.has_stuck_follower(self.cut_off_for_ms)

    def fail_blocked_writes(self, cut_off_for_ms: Millis | None) -> None:
        """Fail writes that cannot commit. `cut_off_for_ms` is None while a controller answers."""
        self.cut_off_for_ms = cut_off_for_ms
        if cut_off_for_ms is not None:
            for replica in list(self._replicas.values()):
                if self._is_out_of_touch(replica):
                    replica.give_up_acks()

    def _readable(self, read: PartitionFetch, effect: FetchBatches) -> Replica | ErrorCode:
        """The replica to read: the leader, or a follower if the consumer allows that."""
        replica, epoch = self._replicas.get(read.partition), read.current_leader_epoch
        if replica is None or replica.leader is not None or effect.reader is None:
            return self.leading(read.partition, epoch)
        placed = self.current.image.partition(read.partition)
        if placed is None or replica.topic_id not in self.current.image.topic_names:
            return self._not_led(read.partition)
        if epoch != NO_EPOCH and epoch != placed.leader_epoch:
            if epoch < placed.leader_epoch:
                return ErrorCode.fenced_leader_epoch
            return ErrorCode.unknown_leader_epoch
        return replica

    def _read_one(
        self,
        read: PartitionFetch,
        max_bytes: int,
        at_least_one: bool,
        effect: FetchBatches,
        waits: bool,
    ) -> FetchResult:
        if isinstance(replica := self._readable(read, effect), ErrorCode):
            return FetchResult(replica)
        if read.watch is not None and read.watch.session is not None:
            replica.watch(read.watch, is_follower=effect.replica >= 0)
        log, high_watermark = replica.log, replica.high_watermark
        stable, start = log.last_stable_offset(high_watermark), log.log_start_offset
        divergence = reading.divergence_of(replica, read, waits=waits)
        if divergence is not None:
            return reading.diverged(effect, replica, divergence)
        is_follower, reader = effect.replica >= 0, effect.reader
        if reader is not None and reader.rack and replica.leader is not None:
            preferred = self._read_replicas.choose(replica, read.offset, reader, self.current.image)
            if preferred is not None:
                return reading.without_records(replica)._replace(preferred_read_replica=preferred)
        if is_follower:
            if replica.leader is not None and not replica.leader.has_replica(effect.replica):
                return FetchResult(reading.not_a_replica(read))
            limit = log.log_end_offset
            if self._throttles.leader.is_on and self._throttles.holds_back(replica, effect.replica):
                return FetchResult(ErrorCode.none, high_watermark, stable, start)
        else:
            limit = stable if effect.read_committed else high_watermark
        aborted: tuple[AbortedTransaction, ...] | None = None
        try:
            found = log.read(
                read.offset,
                max_bytes,
                limit,
                at_least_one=at_least_one,
                checks_sums=is_follower,
                waits=waits,
            )
            if effect.read_committed and isinstance(found, ReadResult):
                is_all = read.offset >= limit or max_bytes <= 0
                aborted = reading.aborted(log, read, found, is_all=is_all, waits=waits)
        except OSError as failure:
            self._storage_failed(read.partition, failure)
            return FetchResult(ErrorCode.kafka_storage_error)
        if isinstance(found, ErrorCode):
            return FetchResult(found, log_start_offset=reading.start_for(effect, replica))
        if read.offset < limit:
            return FetchResult(
                ErrorCode.none, high_watermark, stable, start, found.slice, None, NO_NODE, aborted
            )
        if not is_follower and self._is_out_of_touch(replica):
            # A consumer at the end of an isolated leader's log should look for another leader.
            return FetchResult(ErrorCode.not_leader_or_follower)
        is_at_rest = reading.is_at_rest(effect, replica)
        return FetchResult(
            ErrorCode.none, high_watermark, stable, start, aborted=aborted, is_at_rest=is_at_rest
        )
