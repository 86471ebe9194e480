"""Opens the log of one partition at a time, in steps between which the node serves requests (F98).

After an unclean stop, opening scans and fsyncs the end of the log, which takes seconds for a large
log. The scan goes on in turns, and the fsyncs are jobs. Until the log is open, the node has no
replica of the partition, and requests for it get a retriable error.
"""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from tidelog.log.config import LogConfig
from tidelog.log.partition import PartitionLog
from tidelog.log.recovery.steps import OpeningSteps
from tidelog.model.disk import File
from tidelog.model.ids import Millis, TopicId, TopicPartition
from tidelog.node.jobs import Jobs
from tidelog.node.storage.storage import Storage


class OpenedLog(NamedTuple):
    log: PartitionLog
    was_held: bool
    """Whether the partition had a directory before."""


class _Opening(NamedTuple):
    partition: TopicPartition
    topic_id: TopicId
    was_held: bool
    steps: OpeningSteps[PartitionLog]


class LogOpening:
    def __init__(self, jobs: Jobs, storage: Storage) -> None:
        self._jobs = jobs
        self._storage = storage
        self._opening: _Opening | None = None
        self._failure: OSError | None = None
        self.is_syncing = False
        """Whether the next step waits for an fsync. The caller must not take a step meanwhile."""

    def abandon(self) -> None:
        """Stop opening a log, because its partition is no longer assigned to this node."""
        assert not self.is_syncing
        if self._opening is not None:
            self._opening.steps.close()
        self._opening = self._failure = None

    def step(
        self,
        partition: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        now: Millis,
        assigned: UUID,
        go_on: Callable[[], None],
    ) -> OpenedLog | None:
        """Take a step. Returns the log if it is open; otherwise, call this method again.

        If the next step must wait for an fsync, `go_on` is called after the fsync. Raises OSError
        if the disk fails.
        """
        opening = self._opening
        if opening is None or (opening.partition, opening.topic_id) != (partition, topic_id):
            self.abandon()
            was_held = self._storage.holds(partition)
            steps = self._storage.opening(partition, topic_id, config, now, assigned)
            opening = self._opening = _Opening(partition, topic_id, was_held, steps)
        assert not self.is_syncing
        try:
            if self._failure is not None:
                raise self._failure
            files = next(opening.steps)
        except StopIteration as end:
            self._opening = None
            opened: PartitionLog = end.value
            opened.update_config(config)  # it may have changed since the first step
            return OpenedLog(opened, opening.was_held)
        except OSError:
            self.abandon()
            raise
        if files:
            self._sync(files, go_on)
        return None

    def _sync(self, files: tuple[File, ...], go_on: Callable[[], None]) -> None:
        def synced() -> None:
            self.is_syncing = False
            go_on()

        def failed(reason: str) -> None:
            self._failure = OSError(reason)
            synced()

        self.is_syncing = True
        self._jobs.sync(files, synced, failed)
