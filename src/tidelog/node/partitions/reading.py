"""The parts of a fetch response other than records: divergence, errors, aborted transactions."""

from tidelog.log.partition import PartitionLog
from tidelog.log.results import ReadResult
from tidelog.model.effects import (
    AbortedTransaction,
    EpochEnd,
    FetchBatches,
    FetchResult,
    PartitionFetch,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_EPOCH, NO_OFFSET, Offset
from tidelog.node.partitions.replica import Replica
from tidelog.replication.divergence import diverging


def is_at_rest(effect: FetchBatches, replica: Replica) -> bool:
    """Whether a reader at the log end gets nothing new until the partition notifies its session."""
    leader = replica.leader
    return effect.replica < 0 or (leader is not None and leader.is_at_rest_with(effect.replica))


def start_for(effect: FetchBatches, replica: Replica) -> Offset:
    """The log start offset that a follower needs when its fetch is out of range."""
    return replica.log.log_start_offset if effect.replica >= 0 else NO_OFFSET


def without_records(replica: Replica) -> FetchResult:
    """The state of a partition, for a reader that gets none of its records."""
    stable, start = replica.last_stable_offset, replica.log.log_start_offset
    return FetchResult(ErrorCode.none, replica.high_watermark, stable, start)


def not_a_replica(read: PartitionFetch) -> ErrorCode:
    """The error for a follower fetch by a broker that is not a replica of the partition.

    The broker may know a newer image than this node, so it should retry. The broker gets no
    records, because a follower fetch would also return uncommitted records.
    """
    if read.current_leader_epoch == NO_EPOCH:
        return ErrorCode.not_leader_or_follower
    return ErrorCode.unknown_leader_epoch


def divergence_of(
    replica: Replica, read: PartitionFetch, *, waits: bool = True
) -> EpochEnd | ErrorCode | None:
    """The point at which the reader's log diverges.

    None if the logs agree, or if the fetch has no last epoch. Raises NotCached if `waits` is False
    and the look-up would wait for the disk.
    """
    last, log = read.last_fetched_epoch, replica.log
    if last == NO_EPOCH or log.continues(last, read.offset):
        return None
    end = log.epoch_end(last, waits=waits)
    if end.epoch == NO_EPOCH or read.offset < log.log_start_offset:
        # This log does not know where the reader's last epoch ends, or the point of divergence has
        # been deleted.
        return ErrorCode.offset_out_of_range
    return diverging(end, last, read.offset, log.log_start_offset)


def diverged(
    effect: FetchBatches, replica: Replica, divergence: EpochEnd | ErrorCode
) -> FetchResult:
    """The result for a reader whose log diverges."""
    if isinstance(divergence, ErrorCode):
        return FetchResult(divergence, log_start_offset=start_for(effect, replica))
    return without_records(replica)._replace(diverging=divergence)


def aborted(
    log: PartitionLog, read: PartitionFetch, found: ReadResult, *, is_all: bool, waits: bool
) -> tuple[AbortedTransaction, ...] | None:
    """The aborted transactions that a consumer skips; as in Kafka, None if no batch fits."""
    if found.slice is None:
        return () if is_all else None
    return tuple(
        AbortedTransaction(txn.producer_id, txn.first_offset)
        for txn in log.aborted_transactions(read.offset, found.end_offset, waits=waits)
    )
