"""Moves replicas from one log directory of this broker to another (AlterReplicaLogDirs).

The future replica is a second log, in the new directory. The mover copies records to the future log
piece by piece, while the replica continues to lead or follow with its current log. When the future
log holds the same records and is synced, it replaces the current log in one step. Invariant: at the
replacement, both logs have the same records and the same leader epochs, including epochs without
records (F07).
"""

import logging
from collections.abc import Callable
from uuid import UUID

from tidelog.log.partition import PartitionLog
from tidelog.log.results import AppendRefused
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, Offset, TopicId, TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.jobs import Jobs
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.storage.storage import Place, Storage

CHUNK_BYTES = 1 << 20
PAUSE_MS: Millis = 1
WAIT_MS: Millis = 10

log = logging.getLogger(__name__)


class _Move:
    __slots__ = ("future", "has_flushed", "place", "replica")

    def __init__(self, replica: Replica, place: Place, future: PartitionLog) -> None:
        self.replica = replica
        self.place = place
        self.future = future
        self.has_flushed = False
        """Whether a job has synced nearly all of the future log."""


class ReplicaMoves:
    def __init__(
        self,
        clock: Clock,
        storage: Storage,
        partitions: Partitions,
        jobs: Jobs,
        paths: tuple[str, ...],
        located: Callable[[TopicId, int, UUID], None],
        directory_failed: Callable[[Place, OSError], None],
    ) -> None:
        self._clock = clock
        self._timers = clock.timers
        self._storage = storage
        self._partitions = partitions
        self._jobs = jobs
        self._paths = paths
        self._located = located
        self._directory_failed = directory_failed
        self._moves: dict[TopicPartition, _Move] = {}

    def begin(self, partition: TopicPartition, path: str) -> ErrorCode:
        """Move the replica to this directory; a running move to another directory is cancelled."""
        if path not in self._paths:
            return ErrorCode.log_dir_not_found
        place = self._paths.index(path)
        if self._storage.is_offline(place) or partition in self._partitions.offline:
            return ErrorCode.kafka_storage_error
        replica = self._partitions.get(partition)
        if replica is None:
            return ErrorCode.replica_not_available
        move = self._moves.get(partition)
        if move is not None and move.place == place:
            return ErrorCode.none
        self._give_up(partition)
        if self._storage.place_of(partition) != place:
            self._start(replica, place)
        return ErrorCode.none

    def future_of(self, partition: TopicPartition) -> tuple[Place, PartitionLog] | None:
        move = self._moves.get(partition)
        return None if move is None else (move.place, move.future)

    def _start(self, replica: Replica, place: Place) -> None:
        try:
            future = self._storage.open_future(
                replica.partition, place, replica.log, self._clock.now
            )
        except OSError as failure:
            self._directory_failed(place, failure)
            return
        move = self._moves[replica.partition] = _Move(replica, place, future)
        self._soon(move)

    def _give_up(self, partition: TopicPartition) -> None:
        move = self._moves.pop(partition, None)
        if move is not None and not self._storage.is_offline(move.place):
            self._storage.drop_future(move.place, move.future)

    def _soon(self, move: _Move, delay: Millis = PAUSE_MS) -> None:
        self._timers.at(self._clock.now + delay, lambda: self._go_on(move))

    def _go_on(self, move: _Move) -> None:
        partition = move.replica.partition
        if self._moves.get(partition) is not move:
            return
        if self._partitions.get(partition) is not move.replica or self._storage.is_offline(
            move.place
        ):
            self._give_up(partition)
            return
        try:
            self._take_a_step(move)
        except OSError as failure:
            self._moves.pop(partition, None)
            self._directory_failed(move.place, failure)

    def _take_a_step(self, move: _Move) -> None:
        current, future = move.replica.log, move.future
        if _diverge(current, future):
            # The current log was truncated, or its start was deleted, so the copy starts again.
            self._give_up(move.replica.partition)
            self._start(move.replica, move.place)
        elif future.log_end_offset < current.log_end_offset:
            self._copy(move)
        elif not move.has_flushed:
            self._flush(move)
        elif move.replica.flushing:
            self._soon(move, WAIT_MS)
        else:
            self._swap(move)

    def _copy(self, move: _Move) -> None:
        current, future = move.replica.log, move.future
        start, end = future.log_end_offset, current.log_end_offset
        try:
            batches = _read(current, start, end)
        except OSError as failure:
            # The failed directory holds the current log, not the future log.
            self._give_up(move.replica.partition)
            self._directory_failed(self._storage.place_of(move.replica.partition), failure)
            return
        if batches is None:
            log.error(
                "%s: cannot be read at offset %d; the move is cancelled", current.directory, start
            )
            self._give_up(move.replica.partition)
            return
        outcome = future.append_as_follower(batches)
        if isinstance(outcome, AppendRefused):
            log.error("%s: %s; the move is cancelled", current.directory, outcome.message)
            self._give_up(move.replica.partition)
            return
        self._soon(move)

    def _flush(self, move: _Move) -> None:
        files, up_to = move.future.begin_flush(self._clock.now)

        def done() -> None:
            move.future.flushed(up_to)
            move.has_flushed = True
            self._go_on(move)

        def failed(reason: str) -> None:
            if self._moves.get(move.replica.partition) is move:
                del self._moves[move.replica.partition]
                self._directory_failed(move.place, OSError(reason))

        self._jobs.sync(files, done, failed)

    def _swap(self, move: _Move) -> None:
        replica, future = move.replica, move.future
        del self._moves[replica.partition]
        epochs = replica.log.epoch_starts
        replica.log = self._storage.swap(
            replica.partition, replica.topic_id, move.place, future, self._clock.now
        )
        for epoch, start in epochs:
            # `swap` opens the log again, which drops epochs without records. Add these epochs
            # again.
            if epoch > replica.log.latest_epoch:
                replica.log.assign_epoch(epoch, start)
        log.info("%s: moved to %s", replica.partition, self._paths[move.place])
        directory = self._storage.directory_id(replica.partition)
        self._located(replica.topic_id, replica.partition.partition, directory)


def _read(log: PartitionLog, start: Offset, end: Offset) -> memoryview | None:
    """The next batches from `start` on; None if they cannot be read."""
    found = log.read(start, CHUNK_BYTES, end, at_least_one=True)
    if isinstance(found, ErrorCode) or found.slice is None:
        return None
    file, position, length = found.slice
    return memoryview(bytearray(file.read(position, length)))


def _diverge(current: PartitionLog, future: PartitionLog) -> bool:
    end = future.log_end_offset
    if future.log_start_offset < current.log_start_offset:
        if current.log_start_offset > end:
            return True
        future.advance_log_start(current.log_start_offset)
    if end > current.log_end_offset or future.log_start_offset != current.log_start_offset:
        return True
    return end > future.log_start_offset and current.epoch_at(end - 1) != future.epoch_at(end - 1)
