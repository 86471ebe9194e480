"""Opens a node's metadata: sets damaged files aside and decides whether the node can start.

Invariant: damaged data is never applied. If a voter has lost part of its log, it fetches that part
again from another node. Until then, the voter votes only for a candidate that has all records that
the voter may have acknowledged. If there is no other node to fetch from, the node does not start
(F57).
"""

import logging
from typing import NamedTuple

from tidelog.config.settings import BrokerSettings
from tidelog.log.checkpoints.checkpoints import MetaProperties
from tidelog.log.directory import LogDirectory
from tidelog.log.partition import PartitionLog
from tidelog.model.dice import Dice
from tidelog.model.disk import Disk
from tidelog.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, NO_NODE, Millis, TopicPartition
from tidelog.node.metadata import metadata_check
from tidelog.node.metadata.metadata_check import Examined
from tidelog.node.metadata.metadata_log import UnusableMetadata
from tidelog.node.metadata.metadata_mark import MetadataMark
from tidelog.node.metadata.snapshot_files import DIRECTORY, SnapshotContent, Snapshots
from tidelog.node.quorum import quorum_state
from tidelog.node.quorum.quorum_state import PromisesRead
from tidelog.node.storage.opening import metadata_log_config, myself
from tidelog.node.storage.storage import Storage
from tidelog.replication.quorum.state import UNKNOWN, LogEnd, QuorumState, Voter

METADATA_PARTITION = TopicPartition(METADATA_TOPIC, 0)

log = logging.getLogger(__name__)


class OpenedMetadata(NamedTuple):
    mark: MetadataMark
    snapshots: Snapshots
    content: SnapshotContent | None
    """The content of the newest valid snapshot."""
    promises: QuorumState | None


def open_metadata(
    settings: BrokerSettings,
    meta: MetaProperties,
    disk: Disk,
    directory: LogDirectory,
    dice: Dice,
    storage: Storage,
) -> OpenedMetadata:
    opening = MetadataOpening(settings, myself(settings, meta), disk, directory, dice)
    return opening.open(meta.cluster_id, has_partitions=bool(storage.partitions()))


def open_metadata_log(
    settings: BrokerSettings, directory: LogDirectory, now: Millis
) -> PartitionLog:
    """Open the log and rebuild its indexes now, because no other part rebuilds them later."""
    opened = directory.open(
        METADATA_PARTITION, METADATA_TOPIC_ID, metadata_log_config(settings), now
    )
    while not opened.repair_indexes():
        pass
    for note in (*opened.recovery.notes, *opened.take_notes()):
        log.warning("%s", note)
    return opened


class MetadataOpening:
    """One pass over the files of the metadata log, before the log itself is opened."""

    def __init__(
        self, settings: BrokerSettings, me: Voter, disk: Disk, directory: LogDirectory, dice: Dice
    ) -> None:
        self._settings = settings
        self._me = me
        self._disk = disk
        self._directory = directory
        self._dice = dice
        self._mark = MetadataMark(disk)
        if self._mark.was_damaged:
            log.warning("metadata-log-mark is damaged and will be rewritten")

    def open(self, cluster_id: str, *, has_partitions: bool) -> OpenedMetadata:
        """Check all files and open the metadata. A node that has partitions is not new."""
        snapshots = Snapshots(self._disk, cluster_id, self._mark)
        for name in snapshots.missing():
            log.warning("the snapshot %s/%s is missing", DIRECTORY, name)
        found = metadata_check.examine(self._disk, snapshots)
        promises = quorum_state.load(self._disk)
        if self._mark.is_missing and found.end.offset > 0:
            log.warning("metadata-log-mark is missing and will be rewritten")
        damage = self._damage(found, promises)
        end = found.snapshot_end if damage else found.end
        needed = self._needed(damage, end, has_partitions=has_partitions)
        is_new = end.offset == 0 and self._is_new(has_partitions)
        if end < needed and not self._is_new(has_partitions):
            self._report_loss(damage, end, needed)
        self._set_aside(found, damage)
        if is_new:
            self._mark.lose(UNKNOWN, is_fresh=True)
        elif end < needed:
            self._mark.lose(needed)
        else:
            self._mark.reached(end)
        saved = self._promises(promises, end)
        snapshots.list_unlisted()
        return OpenedMetadata(self._mark, snapshots, found.content, saved)

    # -- detecting damage --------------------------------------------------------------------------

    def _damage(self, found: Examined, promises: PromisesRead) -> str:
        """A short description of the log's damage; empty if there is none."""
        segments, mark = found.segments, self._mark.found
        if found.gap:
            return (
                f"it begins at offset {segments.start}, and no sound snapshot goes further than "
                f"{found.snapshot_end.offset}"
            )
        if segments.broken and self._is_below_what_was_synced(found):
            return segments.broken
        if mark is None or not mark.end.epoch >= 0:
            return ""
        epoch = segments.epoch_at(mark.end.offset - 1)
        if mark.end != UNKNOWN and epoch not in (None, mark.end.epoch):
            return f"leader epoch {epoch} at offset {mark.end.offset - 1} was {mark.end.epoch}"
        known = max(mark.epoch, -1 if promises.state is None else promises.state.epoch)
        if segments.end.epoch > known >= 0:
            return f"leader epoch {segments.end.epoch} is newer than any this node has known"
        return ""

    def _is_below_what_was_synced(self, found: Examined) -> bool:
        """Whether the damaged part had been synced. If not, a crash tore the last write."""
        end, mark = found.segments.end, self._mark.found
        if end.offset < self._directory.recovery_point(METADATA_PARTITION):
            return True
        return found.segments.has_more if mark is None else end < mark.end

    def _is_new(self, has_partitions: bool) -> bool:
        """Whether this node may be new, so that it may never have held any metadata."""
        mark = self._mark.found
        if mark is not None:
            return mark.is_fresh
        was_used = self._directory.recovery_point(METADATA_PARTITION) > 0
        return not (self._mark.was_damaged or was_used or has_partitions)

    def _needed(self, damage: str, end: LogEnd, *, has_partitions: bool) -> LogEnd:
        """The log end that this node may have acknowledged."""
        if self._mark.found is not None:
            return self._mark.found.end
        is_short = end.offset < self._directory.recovery_point(METADATA_PARTITION)
        is_empty = end.offset == 0 and (has_partitions or self._mark.was_damaged)
        return UNKNOWN if damage or is_short or is_empty else end

    # -- handling damage ---------------------------------------------------------------------------

    def _report_loss(self, damage: str, end: LogEnd, needed: LogEnd) -> None:
        """Log the loss; raise if no other node can have the lost records."""
        what = f"the metadata log in {self._settings.metadata_log_dir}/{DIRECTORY} "
        if damage:
            what += f"is damaged: {damage}"
        elif end.offset == 0:
            what += "is gone"
        else:
            what += f"ends at offset {end.offset}"
        if needed != UNKNOWN:
            what += f"; it went to offset {needed.offset} in epoch {needed.epoch}"
        if not self._has_peers():
            raise UnusableMetadata(
                f"{what}. This node is the only controller, so no other one has it, and nothing "
                "was changed: restore the directory from a copy. Without a copy, prepare a new "
                "cluster in another directory, create the topics there, and move their partition "
                "directories to it with `tidelog stray restore`"
            )
        log.warning(
            "%s; this node fetches the missing records from the other controllers. Until then it "
            "does not stand for election and votes only for a controller that has it",
            what,
        )

    def _has_peers(self) -> bool:
        settings = self._settings
        if any(voter.id != settings.node_id for voter in settings.controller_quorum_voters):
            return True
        mine = {(host, port) for _, host, port in self._me.endpoints}
        return not settings.is_controller or any(
            server not in mine for server in settings.controller_quorum_bootstrap_servers
        )

    def _set_aside(self, found: Examined, damage: str) -> None:
        unique = self._dice.uuid().hex
        if damage or found.bad_snapshots:
            renamed = metadata_check.set_aside(
                self._disk, unique, snapshots=found.bad_snapshots, log=bool(damage)
            )
            for name in renamed:
                log.warning("a damaged metadata file was renamed to %s/%s", DIRECTORY, name)
        if damage:
            self._directory.forget(METADATA_PARTITION)
        elif metadata_check.drop_wrong_epochs(self._disk, found.segments):
            log.warning("the leader epochs of the metadata log were damaged and are rebuilt")

    def _promises(self, read: PromisesRead, end: LogEnd) -> QuorumState | None:
        """The saved vote state.

        If the saved state is lost, the result is a state that grants no vote up to the newest known
        epoch.
        """
        newest = max(self._mark.now.epoch, end.epoch, -1)
        state = read.state
        if state is not None and state.epoch >= newest:
            self._mark.voted_in(state.epoch)
            return state
        if state is None and not read.is_damaged and newest <= 0:
            # No vote can be lost, because votes start in epoch 1. Epoch 0 belongs to the snapshot
            # that `format` writes.
            return None
        log.warning(
            "quorum-state is missing or damaged: this node grants no vote up to epoch %d",
            max(newest, 0),
        )
        if self._mark.found is None and self._has_peers():
            # The node may have voted in later epochs too, so it must follow a leader before it
            # votes.
            self._mark.lose(UNKNOWN)
        return QuorumState(max(newest, 0), NO_NODE, self._me.key)
