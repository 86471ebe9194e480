"""Takes a snapshot of the metadata, in a job, when the log has grown enough or after some time.

An image is immutable, so a job can encode it while the node continues to run. Log records are
deleted only if a durable snapshot covers them.
"""

from collections.abc import Callable
from typing import NamedTuple

from tidelog.controller.image.image import ClusterImage
from tidelog.model.ids import Millis
from tidelog.node.clock import Clock
from tidelog.node.jobs import Jobs
from tidelog.node.metadata.metadata_log import MetadataLog
from tidelog.node.metadata.snapshot_files import Written


class SnapshotLimits(NamedTuple):
    """Kafka's metadata.log.* keys."""

    snapshot_bytes: int
    snapshot_interval_ms: Millis
    retention_bytes: int


class SnapshotTaking:
    def __init__(
        self,
        log: MetadataLog,
        limits: SnapshotLimits,
        clock: Clock,
        jobs: Jobs,
        fail: Callable[[str], None],
    ) -> None:
        self._log = log
        self._limits = limits
        self._clock = clock
        self._jobs = jobs
        self._fail = fail
        self._is_under_way = False
        self._taken_at: tuple[int, Millis] = (0, 0)
        """The log's size and the time when the last snapshot was taken."""

    def restart(self) -> None:
        """Start to measure the log's growth and the time until the next snapshot."""
        self._taken_at = (self._log.log.size, self._clock.now)

    def image_changed(self, image: ClusterImage) -> None:
        """Take a snapshot if one is due and the image has changed since the last one."""
        if not self._is_under_way and self._is_due(image):
            self._is_under_way = True
            job = self._log.writing_snapshot(image, self._clock.now)
            self._jobs.start(job, self._written, self._failed)

    def _is_due(self, image: ClusterImage) -> bool:
        limits = self._limits
        size, taken_at = self._taken_at
        grown = self._log.log.size - size
        if grown < limits.snapshot_bytes:
            age = self._clock.now - taken_at
            if not 0 < limits.snapshot_interval_ms <= age:
                return False
        newest = self._log.snapshots.newest
        is_news = newest is None or newest.end_offset <= image.offset
        return is_news and image.before_transaction is None

    def _written(self, written: Written) -> None:
        self._is_under_way = False
        self._log.snapshots.written(written)
        self._log.drop_covered(self._limits.retention_bytes, self._clock.now)
        self.restart()

    def _failed(self, error: Exception) -> None:
        self._fail(f"the metadata log has failed: {error}")
