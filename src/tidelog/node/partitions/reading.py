"""What a fetch of one replica is answered with, apart from where its records lie."""

from tidelog.log.partition import PartitionLog
from tidelog.log.results import ReadResult
from tidelog.model.effects import AbortedTransaction, EpochEnd, FetchBatches, PartitionFetch
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_EPOCH, NO_OFFSET, Offset
from tidelog.node.partitions.replica import Replica
from tidelog.replication.divergence import diverging


def is_at_rest(effect: FetchBatches, replica: Replica) -> bool:
    """Whether a reader that has read all finds nothing until the partition tells its watch."""
    leader = replica.leader
    return effect.replica < 0 or (leader is not None and leader.is_at_rest_with(effect.replica))


def start_for(effect: FetchBatches, replica: Replica) -> Offset:
    """A follower out of range begins anew where the leader's log begins."""
    return replica.log.log_start_offset if effect.replica >= 0 else NO_OFFSET


def not_a_replica(read: PartitionFetch) -> ErrorCode:
    """A broker that holds none fetches as follower: it may know more of the partition than we do.

    As a follower it would read what is not committed.
    """
    if read.current_leader_epoch == NO_EPOCH:
        return ErrorCode.not_leader_or_follower
    return ErrorCode.unknown_leader_epoch


def parting(replica: Replica, read: PartitionFetch) -> EpochEnd | ErrorCode | None:
    """Where the reader's log and ours part, if it says in which epoch its last record was."""
    last, log = read.last_fetched_epoch, replica.log
    if last == NO_EPOCH:
        return None
    if last == log.latest_epoch and log.log_start_offset <= read.offset <= log.log_end_offset:
        return None  # as almost always
    end = log.epoch_end(last)
    if end.epoch == NO_EPOCH or read.offset < log.log_start_offset:
        # No leader has been in that epoch, or what it would part from is gone.
        return ErrorCode.offset_out_of_range
    return diverging(end, last, read.offset, log.log_start_offset)


def aborted(
    log: PartitionLog, read: PartitionFetch, found: ReadResult, *, is_all: bool
) -> tuple[AbortedTransaction, ...] | None:
    """What a reader of committed records is to skip; None, as in Kafka, if a batch did not fit."""
    if found.slice is None:
        return () if is_all else None
    return tuple(
        AbortedTransaction(txn.producer_id, txn.first_offset)
        for txn in log.aborted_transactions(read.offset, found.end_offset)
    )
