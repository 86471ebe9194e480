"""The log directories of this node as one storage, which knows where each partition is.

A failed directory is out of use until the next start. No file in a failed directory is opened,
written or deleted. A partition that the failed directory may hold is not created again in another
directory.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias
from uuid import UUID

from tidelog.controller.image.image import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from tidelog.log.checkpoints.clean_shutdown import NO_BROKER_EPOCH
from tidelog.log.checkpoints.partition_metadata import Belonging
from tidelog.log.config import LogConfig
from tidelog.log.directory import LogDirectory
from tidelog.log.partition import PartitionLog
from tidelog.log.recovery.steps import OpeningSteps
from tidelog.model.ids import METADATA_TOPIC, BrokerEpoch, Millis, Offset, TopicId, TopicPartition
from tidelog.node.partitions.replica import Replica
from tidelog.node.storage.opening import OpenedDirectory

Place: TypeAlias = int
"""A directory, identified by its position in log.dirs."""

log = logging.getLogger(__name__)


class Storage:
    on_failure: Callable[[Place, OSError], None]
    """Called when a file of a directory cannot be written; set once by `assembly.build_node`."""

    def __init__(self, opened: Sequence[OpenedDirectory | None]) -> None:
        self._directories: dict[Place, LogDirectory] = {}
        self._ids: dict[Place, UUID] = {}
        self._offline: dict[Place, None] = {}
        for place, one in enumerate(opened):
            if one is None:
                self._offline[place] = None
            else:
                self._directories[place] = one.log_directory
                self._ids[place] = one.meta.directory_id
        self._places: dict[TopicPartition, Place] = {}
        self._counts = [0] * len(opened)
        for place, directory in self._directories.items():
            for partition in directory.partitions():
                self._found(partition, place)
            self._report(directory)

    def _found(self, partition: TopicPartition, place: Place) -> None:
        if partition.topic == METADATA_TOPIC:
            # The configuration defines the directory of the metadata log. A second metadata log in
            # another directory is ignored.
            self._places.setdefault(partition, place)
            return
        known = self._places.get(partition)
        if known is not None:
            # Two directories hold this partition. Either a move between them was interrupted after
            # the copy was renamed, or an operator has copied the partition. Use the copy with the
            # higher recovery point, because that copy was in use.
            held = self._directories[known].held(partition)
            poorer = known if self._directories[place].held(partition) > held else place
            name = self._directories[poorer].set_aside(partition)
            log.warning(
                "%s is in two log directories: the copy that is behind is renamed to %s",
                partition,
                name,
            )
            place = known + place - poorer
            self._counts[known] -= 1
        self._places[partition] = place
        self._counts[place] += 1

    @property
    def previous_broker_epoch(self) -> BrokerEpoch:
        """The epoch of the last clean shutdown; -1 if the directories have no common epoch."""
        epochs = {one.previous_broker_epoch for one in self._directories.values()}
        is_whole = len(self._directories) == len(self._counts)
        return epochs.pop() if is_whole and len(epochs) == 1 else NO_BROKER_EPOCH

    @property
    def interrupted_incarnation(self) -> UUID | None:
        """The incarnation id of the last run, if that run began to register but changed no log."""
        marks = (one.clean_mark.found for one in self._directories.values())
        return next((mark.incarnation for mark in marks if mark.incarnation is not None), None)

    def note_registration(self, previous: BrokerEpoch, incarnation: UUID) -> None:
        """Store this run's id, so that the proof of the last clean shutdown survives a crash."""
        self._each(
            lambda place: self._directories[place].clean_mark.note_registration(
                previous, incarnation
            )
        )

    def distrust(self) -> None:
        """Withdraw the proof of a clean shutdown, because a log has lost records."""
        self._each(lambda place: self._directories[place].clean_mark.withdraw())

    # -- the log directories -----------------------------------------------------------------------

    @property
    def online_ids(self) -> tuple[UUID, ...]:
        return tuple(self._ids[place] for place in self._online())

    @property
    def offline_ids(self) -> tuple[UUID, ...]:
        return tuple(self._ids[place] for place in self._offline if place in self._ids)

    def _online(self) -> list[Place]:
        return [place for place in self._directories if place not in self._offline]

    def directory(self, place: Place) -> LogDirectory:
        assert place not in self._offline
        return self._directories[place]

    def is_offline(self, place: Place) -> bool:
        return place in self._offline

    def take_offline(self, place: Place) -> list[TopicPartition]:
        """Stop using the directory; returns the partitions in it."""
        self._offline[place] = None
        return [partition for partition, held in self._places.items() if held == place]

    def place_of(self, partition: TopicPartition) -> Place:
        """The position in log.dirs of the directory that holds the partition."""
        return self._places[partition]

    def directory_id(self, partition: TopicPartition) -> UUID:
        """The id of the directory that holds the partition."""
        return self._ids[self._places[partition]]

    def is_out_of_reach(self, partition: TopicPartition, assigned: UUID) -> bool:
        """Whether the partition is, or may be, in a failed directory."""
        place = self._places.get(partition)
        if place is None:
            place = next((one for one, known in self._ids.items() if known == assigned), None)
        if place is not None:
            return place in self._offline
        return assigned not in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY) and bool(self._offline)

    # -- the partitions in the directories ---------------------------------------------------------

    def partitions(self) -> list[TopicPartition]:
        """Every partition on disk except the metadata log."""
        return [one for one in self._places if one.topic != METADATA_TOPIC]

    def topic_id(self, partition: TopicPartition) -> TopicId | None:
        """The topic id in the partition's directory, if it is known."""
        return self._directories[self._places[partition]].topic_id(partition)

    def belongs_to(
        self, partition: TopicPartition, topic_id: TopicId, *, had_namesake: bool = False
    ) -> Belonging:
        """Whether the partition's directory belongs to the topic with this id."""
        directory = self._directories[self._places[partition]]
        found = directory.belongs_to(partition, topic_id, had_namesake=had_namesake)
        self._report(directory)
        return found

    def adopt(self, partition: TopicPartition, topic_id: TopicId) -> None:
        """Assign the partition's directory to this topic, although its topic id is unreadable."""
        self._directories[self._places[partition]].write_topic_id(partition, topic_id)

    def hold(self, partition: TopicPartition) -> None:
        """Hold the directory until an operator has decided which topic it belongs to."""
        self._directories[self._places[partition]].hold(partition)

    @property
    def strays(self) -> int:
        """The number of directories that were set aside and are kept."""
        return sum(len(directory.strays) for directory in self._directories.values())

    def opening(
        self,
        partition: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        now: Millis,
        assigned: UUID,
    ) -> OpeningSteps[PartitionLog]:
        """Open the partition; a new one is created in the assigned or the emptiest directory."""
        place = self._places.get(partition)
        if place is not None and self.belongs_to(partition, topic_id) is not Belonging.YES:
            # The topic was deleted and created again while this node was down (F30).
            log.warning(
                "%s belongs to another topic; its directory was renamed to %s",
                partition,
                self.set_aside(partition),
            )
            place = None
        if place is None:
            place = self._place_for_new(assigned)
            self._places[partition] = place
            self._counts[place] += 1
        return (yield from self._directories[place].opening(partition, topic_id, config, now))

    def _place_for_new(self, assigned: UUID) -> Place:
        online = self._online()
        for place in online:
            if self._ids[place] == assigned:
                return place
        return min(online, key=lambda place: self._counts[place])

    def holds(self, partition: TopicPartition) -> bool:
        """Whether the partition has a directory here."""
        return partition in self._places

    def opened_all(self) -> None:
        """Notify each log directory that every partition assigned to this node is open."""
        for directory in self._directories.values():
            directory.opened_all()

    def high_watermark(self, partition: TopicPartition) -> Offset:
        """The last checkpointed high watermark; 0 for a new partition."""
        place = self._places.get(partition)
        return 0 if place is None else self._directories[place].high_watermark(partition)

    def delete(self, partition: TopicPartition, now: Millis, delay_ms: Millis) -> None:
        place = self._places.get(partition)
        if place is not None:
            if place not in self._offline:
                # Forget the location only after the deletion, because error handling needs the
                # location.
                self._directories[place].delete(partition, now, delay_ms)
            del self._places[partition]
            self._counts[place] -= 1

    def forget_offline(self, partition: TopicPartition) -> None:
        """Forget a partition in a failed directory."""
        place = self._places.get(partition)
        if place is not None and place in self._offline:
            del self._places[partition]
            self._counts[place] -= 1

    def set_aside(self, partition: TopicPartition) -> str:
        """Rename the partition's directory and keep it; returns its new name."""
        place = self._places.pop(partition)
        self._counts[place] -= 1
        return self._directories[place].set_aside(partition)

    # -- compaction --------------------------------------------------------------------------------

    def cleaned_to(self, partition: TopicPartition) -> Offset:
        """Where the last pass of the cleaner ended; 0 if there was none."""
        return self._directories[self._places[partition]].checkpoints.cleaned_to(partition)

    def note_cleaned_to(self, partition: TopicPartition, offset: Offset) -> None:
        """Record where a pass of the cleaner has ended."""
        place = self._places[partition]
        try:
            self._directories[place].checkpoints.note_cleaned_to(partition, offset)
        except OSError as failure:
            self.on_failure(place, failure)

    # -- moves between directories -----------------------------------------------------------------

    def open_future(
        self, partition: TopicPartition, place: Place, current: PartitionLog, now: Millis
    ) -> PartitionLog:
        """Open an empty log for a move, with the leader epoch of the current log's start."""
        start = current.log_start_offset
        future = self._directories[place].open_future(partition, current.config, start, now)
        for epoch, begins in current.epoch_starts:
            if begins <= start:
                future.assign_epoch(epoch, start)
        return future

    def drop_future(self, place: Place, future: PartitionLog) -> None:
        self._directories[place].drop_future(future)

    def swap(
        self,
        partition: TopicPartition,
        topic_id: TopicId,
        place: Place,
        future: PartitionLog,
        now: Millis,
    ) -> PartitionLog:
        """Replace the current log with the future log, delete the old one, return the new one."""
        old = self._places[partition]
        adopted = self._directories[place].adopt(partition, future, topic_id, now)
        self._places[partition] = place
        self._counts[place] += 1
        self._counts[old] -= 1
        if old not in self._offline:
            self._directories[old].delete(partition, now, future.config.file_delete_delay_ms)
        return adopted

    # -- all directories ---------------------------------------------------------------------------

    def purge(self, now: Millis) -> None:
        self._each(lambda place: self._directories[place].purge(now))

    def write_checkpoints(self, replicas: Iterable[Replica]) -> None:
        watermarks = self._watermarks(replicas)
        self._each(lambda place: self._directories[place].write_checkpoints(watermarks[place]))

    def close(self, replicas: Iterable[Replica], broker_epoch: BrokerEpoch) -> None:
        """Shut down cleanly, so that the next start can trust all directories that did not fail."""
        watermarks = self._watermarks(replicas)
        for place in self._online():
            try:
                self._directories[place].close(watermarks[place], broker_epoch)
            except OSError as failure:
                log.error("a log directory could not be closed cleanly: %s", failure)

    def _report(self, directory: LogDirectory) -> None:
        for note in directory.notes:
            log.warning("%s", note)
        directory.notes.clear()

    def _each(self, chore: Callable[[Place], None]) -> None:
        for place in self._online():
            try:
                chore(place)
            except OSError as failure:
                self.on_failure(place, failure)

    def _watermarks(self, replicas: Iterable[Replica]) -> list[dict[TopicPartition, Offset]]:
        watermarks: list[dict[TopicPartition, Offset]] = [{} for _ in self._counts]
        for replica in replicas:
            watermarks[self._places[replica.partition]][replica.partition] = replica.high_watermark
        return watermarks
