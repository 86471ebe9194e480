"""Handles a log directory whose disk fails, fills up or becomes read-only (F33).

As in Kafka, the directory is out of use until the next start, whatever the error was. A replica
that cannot write cannot stay in sync, and another replica can take over at once. Requests for the
replicas in the directory get KAFKA_STORAGE_ERROR, and the broker informs the controller. If a node
loses its last directory or the directory of the metadata log, the node stops. Other nodes notice at
once that its process has ended.

The code that detects a failure only sets a timer, and the failure is handled when the timer fires.
Therefore, no partition disappears in the middle of an append.
"""

import logging
from collections.abc import Callable

from tidelog.model.ids import METADATA_TOPIC, TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.storage.storage import Place, Storage

log = logging.getLogger(__name__)


def reason_of(failure: OSError) -> str:
    """A description of a failure, with the name of the file if it is known."""
    reason = failure.strerror or str(failure)
    return f"{failure.filename}: {reason}" if failure.filename else reason


def failed_part(failure: OSError) -> str:
    """The name of the failed part for a log line: "the metadata log", or "a file"."""
    is_other = failure.filename and METADATA_TOPIC not in str(failure.filename)
    return "a file" if is_other else "the metadata log"


def _nobody(*_: object) -> None:
    """Does nothing; used while a node is assembled, when no partition is open yet."""


class FailedDirectories:
    def __init__(
        self,
        clock: Clock,
        storage: Storage,
        paths: tuple[str, ...],
        home: Place,
        stop: Callable[[str], None],
    ) -> None:
        """`home` is the directory of the metadata log."""
        self._clock = clock
        self._timers = clock.timers
        self._storage = storage
        self._paths = paths
        self._home = home
        self._stop = stop
        self._take_offline: Callable[[TopicPartition], None] = _nobody
        self._report: Callable[[], None] = _nobody
        self._failing: dict[Place, None] = {}

    def subscribe(
        self, take_offline: Callable[[TopicPartition], None], report: Callable[[], None]
    ) -> None:
        """Set the callbacks for a failed directory: one per partition, then `report` once."""
        self._take_offline, self._report = take_offline, report

    def partition_failed(self, partition: TopicPartition, failure: OSError) -> None:
        """Handle a failed write or read of this partition's log."""
        self.directory_failed(self._storage.place_of(partition), failure)

    def directory_failed(self, place: Place, failure: OSError) -> None:
        self.out_of_use(place, reason_of(failure))

    def out_of_use(self, place: Place, reason: str) -> None:
        if place in self._failing or self._storage.is_offline(place):
            return
        self._failing[place] = None
        self._timers.at(self._clock.now, lambda: self._lose(place, reason))

    def _lose(self, place: Place, reason: str) -> None:
        path = self._paths[place]
        gone = self._storage.take_offline(place)
        if place == self._home:
            self._stop(
                f"the log directory {path}, which also holds the metadata log, has failed: {reason}"
            )
        elif not self._storage.online_ids:
            self._stop(f"the last log directory, {path}, has failed: {reason}")
        else:
            log.error("%s is out of use with its %d replicas: %s", path, len(gone), reason)
            for partition in gone:
                self._take_offline(partition)
            self._report()
