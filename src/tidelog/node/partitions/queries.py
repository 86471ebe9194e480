"""Executes effects that query a log or a directory, or that move a replica between directories."""

from tidelog.model.disk import FileSlice, NotCached
from tidelog.model.effects import (
    DescribedDirectory,
    DescribeDirectories,
    DescribeProducers,
    EpochFound,
    EpochQuery,
    FindEpochEnds,
    MoveReplicas,
    ProducersFound,
    ReplicaOnDisk,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ConnId, TopicPartition
from tidelog.node.partitions.cold_reads import ColdReads
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.storage.replica_moves import ReplicaMoves
from tidelog.node.storage.storage import Storage


class Queries:
    def __init__(
        self,
        partitions: Partitions,
        storage: Storage,
        paths: tuple[str, ...],
        moves: ReplicaMoves,
        cold_reads: ColdReads,
    ) -> None:
        self._partitions = partitions
        self._storage = storage
        self._paths = paths
        self._moves = moves
        self._cold_reads = cold_reads

    def find_epoch_ends(
        self, effect: FindEpochEnds, resume: Resume, conn: ConnId
    ) -> list[EpochFound] | Parked:
        """Look up the ends of epochs; the request waits if the needed bytes are not cached."""
        found: list[EpochFound] = []
        for query in effect.queries:
            try:
                found.append(self._find_epoch_end(query, waits=False))
            except NotCached as cold:
                if not self._cold_reads.was_just_read(cold.part):
                    self._find_later(cold.part, effect, resume, conn)
                    return PARKED
                found.append(self._find_epoch_end(query, waits=True))
        return found

    def _find_later(
        self, cold: FileSlice, effect: FindEpochEnds, resume: Resume, conn: ConnId
    ) -> None:
        def again() -> None:
            found = self.find_epoch_ends(effect, resume, conn)
            if found is not PARKED:
                resume(found)

        self._cold_reads.begin(cold, conn, again)

    def describe_producers(self, effect: DescribeProducers) -> list[ProducersFound]:
        return [self._describe_producers(partition) for partition in effect.partitions]

    def _describe_producers(self, partition: TopicPartition) -> ProducersFound:
        replica = self._partitions.hosted(partition)
        if isinstance(replica, ErrorCode):
            return ProducersFound(replica)
        return ProducersFound(ErrorCode.none, replica.log.active_producers())

    def describe_directories(self, effect: DescribeDirectories) -> list[DescribedDirectory]:
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

    def _describe(
        self, place: int, path: str, replicas: tuple[ReplicaOnDisk, ...]
    ) -> DescribedDirectory:
        if self._storage.is_offline(place):
            return DescribedDirectory(ErrorCode.kafka_storage_error, path, ())
        try:
            total, usable = self._storage.directory(place).space()
        except OSError:
            return DescribedDirectory(ErrorCode.kafka_storage_error, path, ())
        return DescribedDirectory(ErrorCode.none, path, replicas, total, usable)

    def _find_epoch_end(self, query: EpochQuery, *, waits: bool) -> EpochFound:
        replica = self._partitions.leading(query.partition, query.current_leader_epoch)
        if isinstance(replica, ErrorCode):
            return EpochFound(replica)
        end = replica.log.epoch_end(query.leader_epoch, waits=waits)
        return EpochFound(ErrorCode.none, end.epoch, end.end_offset)
