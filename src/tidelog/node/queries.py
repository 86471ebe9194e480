"""Effects that ask a partition's log or its directory a question, or move it between them."""

from collections.abc import Callable

from tidelog.log.results import TimestampOffset
from tidelog.model.effects import (
    DescribeDirectories,
    DescribeProducers,
    EpochFound,
    EpochQuery,
    FindEpochEnds,
    FindOffsets,
    LogDirectory,
    MoveReplicas,
    OffsetFound,
    OffsetQuery,
    ProducersFound,
    ReplicaOnDisk,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NO_OFFSET, NO_TIMESTAMP, NodeId, TopicPartition
from tidelog.node.partitions import Partitions
from tidelog.node.replica import Replica
from tidelog.node.replica_moves import ReplicaMoves
from tidelog.node.storage import Storage

_NEEDS_SETTLED_LEADER = (-1, -3)
_NOTHING = OffsetFound(ErrorCode.none)
_CONSUMER: NodeId = NO_NODE
_DEBUGGER: NodeId = -2
"""Who asks is a replica's id, or one of these; a debugger may ask a follower, too."""


def _is_settled(replica: Replica) -> bool:
    """Before that a new leader could name an end that lies before one a client has seen (F50)."""
    return replica.leader is not None and replica.leader.is_settled


class Queries:
    def __init__(
        self,
        partitions: Partitions,
        storage: Storage,
        paths: tuple[str, ...],
        storage_failed: Callable[[TopicPartition, OSError], None],
        moves: ReplicaMoves,
    ) -> None:
        self._partitions = partitions
        self._storage = storage
        self._paths = paths
        self._storage_failed = storage_failed
        self._moves = moves

    def find_offsets(self, effect: FindOffsets) -> list[OffsetFound]:
        return [self._find_offset(query, effect) for query in effect.queries]

    def find_epoch_ends(self, effect: FindEpochEnds) -> list[EpochFound]:
        return [self._find_epoch_end(query) for query in effect.queries]

    def describe_producers(self, effect: DescribeProducers) -> list[ProducersFound]:
        return [self._describe_producers(partition) for partition in effect.partitions]

    def _describe_producers(self, partition: TopicPartition) -> ProducersFound:
        replica = self._partitions.hosted(partition)
        if isinstance(replica, ErrorCode):
            return ProducersFound(replica)
        return ProducersFound(ErrorCode.none, replica.log.active_producers())

    def describe_directories(self, effect: DescribeDirectories) -> list[LogDirectory]:
        asked = effect.partitions
        rows: dict[int, list[ReplicaOnDisk]] = {}
        for replica in self._partitions:
            if asked is None or replica.partition in asked:
                lag = max(0, replica.high_watermark - replica.log.log_end_offset)
                rows.setdefault(self._storage.place_of(replica.partition), []).append(
                    ReplicaOnDisk(replica.partition, replica.log.size, lag)
                )
                moving = self._moves.future_of(replica.partition)
                if moving is not None:
                    place, future = moving
                    behind = max(0, replica.log.log_end_offset - future.log_end_offset)
                    rows.setdefault(place, []).append(
                        ReplicaOnDisk(replica.partition, future.size, behind, is_future=True)
                    )
        return [
            self._describe(place, path, tuple(rows.get(place, ())))
            for place, path in enumerate(self._paths)
        ]

    def move_replicas(self, effect: MoveReplicas) -> list[ErrorCode]:
        return [self._moves.begin(partition, path) for partition, path in effect.moves]

    def _describe(self, place: int, path: str, replicas: tuple[ReplicaOnDisk, ...]) -> LogDirectory:
        if self._storage.is_offline(place):
            return LogDirectory(ErrorCode.kafka_storage_error, path, ())
        try:
            total, usable = self._storage.directory(place).space()
        except OSError:
            return LogDirectory(ErrorCode.kafka_storage_error, path, ())
        return LogDirectory(ErrorCode.none, path, replicas, total, usable)

    def _find_offset(self, query: OffsetQuery, effect: FindOffsets) -> OffsetFound:
        replica: Replica | ErrorCode | None = None
        if effect.replica == _DEBUGGER:
            replica = self._partitions.get(query.partition)
        if replica is None:
            replica = self._partitions.leading(query.partition, query.current_leader_epoch)
        if isinstance(replica, ErrorCode):
            return OffsetFound(replica)
        limit = replica.log.log_end_offset
        if effect.replica == _CONSUMER:
            if query.timestamp in _NEEDS_SETTLED_LEADER and not _is_settled(replica):
                return OffsetFound(ErrorCode.offset_not_available)
            committed = effect.read_committed
            limit = replica.last_stable_offset if committed else replica.high_watermark
        try:
            found = _answer(replica, query.timestamp, limit)
        except OSError as failure:
            self._storage_failed(query.partition, failure)
            return OffsetFound(ErrorCode.kafka_storage_error)
        is_search = query.timestamp >= 0 and effect.replica == _CONSUMER
        if is_search and found == _NOTHING and not _is_settled(replica):
            # It may lie among what is committed and not yet known to be.
            return OffsetFound(ErrorCode.offset_not_available)
        return found

    def _find_epoch_end(self, query: EpochQuery) -> EpochFound:
        replica = self._partitions.leading(query.partition, query.current_leader_epoch)
        if isinstance(replica, ErrorCode):
            return EpochFound(replica)
        end = replica.log.epoch_end(query.leader_epoch)
        return EpochFound(ErrorCode.none, end.epoch, end.end_offset)


def _answer(replica: Replica, timestamp: int, limit: int) -> OffsetFound:
    log = replica.log
    match timestamp:
        case -1:
            return OffsetFound(ErrorCode.none, limit, NO_TIMESTAMP, log.latest_epoch)
        case -2 | -4:
            start = log.log_start_offset
            return OffsetFound(ErrorCode.none, start, NO_TIMESTAMP, log.epoch_at(start))
        case -3:
            return _found(log.max_timestamp_offset(limit))
        case -5:
            # Nothing is ever tiered here, which Kafka says with an unknown offset and epoch.
            return OffsetFound(ErrorCode.none, NO_OFFSET)
        case _ if timestamp < 0:
            return OffsetFound(ErrorCode.unsupported_version)
        case _:
            return _found(log.offset_for_timestamp(timestamp, limit))


def _found(found: TimestampOffset | ErrorCode | None) -> OffsetFound:
    if isinstance(found, ErrorCode):
        return OffsetFound(found)
    if found is None:
        return _NOTHING
    return OffsetFound(ErrorCode.none, found.offset, found.timestamp, found.leader_epoch)
