"""Finds the valid part of the metadata log before the log is opened.

Each batch must have the right checksum and must start where the previous batch ended. Each epoch
must start with a LeaderChange record. The checks of offsets and epochs are needed because a batch's
checksum does not cover these two fields. A damaged file is renamed and kept. Damaged files are
never applied and never deleted (F57).
"""

from collections.abc import Iterator
from typing import NamedTuple

from tidelog.log import names
from tidelog.log.checkpoints import checkpoints
from tidelog.log.segments import scan
from tidelog.log.segments.scan import BrokenChainError
from tidelog.model.disk import Disk, File
from tidelog.model.ids import NO_EPOCH, LeaderEpoch, Offset
from tidelog.node.metadata.snapshot_files import DIRECTORY, SnapshotContent, Snapshots
from tidelog.protocol.fetch import SnapshotId
from tidelog.protocol.records.batch import BatchHeader
from tidelog.protocol.records.records import (
    ControlType,
    UnreadableRecords,
    control_type,
    read_records,
)
from tidelog.replication.quorum.state import LogEnd

DAMAGED = ".damaged"


class Segments(NamedTuple):
    """The valid part of the log, from its first batch on."""

    start: Offset
    end: LogEnd
    epochs: list[tuple[LeaderEpoch, Offset]]
    """The start offset of each epoch."""
    broken: str
    """A description of the damage after the valid part; empty if there is none."""
    has_more: bool
    """Whether valid batches follow the damage. If so, the damage does not come from a crash,
    because a crash tears only the last batches of a log.
    """

    def epoch_at(self, offset: Offset) -> LeaderEpoch | None:
        """The epoch of an offset; None outside of the valid part."""
        inside = self.start <= offset < self.end.offset
        return _epoch_at(self.epochs, offset) if inside else None


class Examined(NamedTuple):
    snapshot: SnapshotId | None
    content: SnapshotContent | None
    segments: Segments
    bad_snapshots: list[str]

    @property
    def snapshot_end(self) -> LogEnd:
        one = self.snapshot
        return LogEnd(NO_EPOCH, 0) if one is None else LogEnd(one.epoch, one.end_offset)

    @property
    def end(self) -> LogEnd:
        """The end of the snapshot or the end of the log, whichever is later.

        If records are missing between the snapshot and the log, the log is ignored.
        """
        if self.gap:
            return self.snapshot_end
        return max(self.snapshot_end, self.segments.end)

    @property
    def gap(self) -> bool:
        """Whether records are missing between the newest snapshot and the start of the log."""
        return self.segments.start > self.snapshot_end.offset


def examine(disk: Disk, snapshots: Snapshots) -> Examined:
    newest, content, bad = snapshots.load_newest()
    return Examined(newest, content, _segments(disk), bad)


def set_aside(disk: Disk, unique: str, *, snapshots: list[str], log: bool) -> list[str]:
    """Rename damaged files, so that they are not read again; returns their new names."""
    aside = list(snapshots)
    if log:
        aside += [
            name
            for name in disk.list(DIRECTORY)
            if name == names.LEADER_EPOCH_CHECKPOINT
            or names.segment_file(name) is not None
            or names.offset_of(name, names.SNAPSHOT) is not None
        ]
    renamed = []
    for name in aside:
        new = f"{name}.{unique}{DAMAGED}"
        disk.rename(f"{DIRECTORY}/{name}", f"{DIRECTORY}/{new}")
        renamed.append(new)
    if renamed:
        disk.sync_directory(DIRECTORY)
    return renamed


def drop_wrong_epochs(disk: Disk, found: Segments) -> bool:
    """Remove a leader-epoch-checkpoint that does not match the batches, so that it is rebuilt."""
    path = f"{DIRECTORY}/{names.LEADER_EPOCH_CHECKPOINT}"
    if names.LEADER_EPOCH_CHECKPOINT not in disk.list(DIRECTORY):
        return False
    starts, was_sound = checkpoints.read_epochs(disk, path)
    listed = [(epoch, start) for epoch, start in starts if start < found.end.offset]
    fits = was_sound and all(_epoch_at(listed, start) == epoch for epoch, start in found.epochs)
    if fits and all(_epoch_at(found.epochs, start) == epoch for epoch, start in listed[1:]):
        return False
    disk.remove(path)
    return True


def _epoch_at(starts: list[tuple[LeaderEpoch, Offset]], offset: Offset) -> LeaderEpoch:
    return max((epoch for epoch, start in starts if start <= offset), default=NO_EPOCH)


# -- the batches of the log ------------------------------------------------------------------------


def _segments(disk: Disk) -> Segments:
    bases = sorted(
        parsed[0]
        for name in disk.list(DIRECTORY)
        if (parsed := names.segment_file(name)) is not None and parsed[1] == names.LOG
    )
    start = bases[0] if bases else 0
    end, epochs = LogEnd(NO_EPOCH, start), list[tuple[LeaderEpoch, Offset]]()
    try:
        for header in _batches(disk, bases):
            if header.leader_epoch != end.epoch:
                epochs.append((header.leader_epoch, header.base_offset))
            end = LogEnd(header.leader_epoch, header.next_offset)
    except BrokenChainError as broken:
        return Segments(start, end, epochs, str(broken), _has_more(disk, bases, end.offset))
    return Segments(start, end, epochs, "", has_more=False)


def _batches(disk: Disk, bases: list[Offset]) -> Iterator[BatchHeader]:
    """Yield every batch in order; raises BrokenChainError at the first damaged batch."""
    expected, epoch = (bases[0] if bases else 0), NO_EPOCH
    for base in bases:
        name = names.offset_name(base, names.LOG)
        if base != expected:
            raise BrokenChainError(0, expected, f"{name} does not begin at offset {expected}")
        file = disk.open(f"{DIRECTORY}/{name}")
        for at, header, batch in scan.batches(file, 0, file.size, expected):
            reason = _objection(header, batch, expected, epoch)
            if reason:
                raise BrokenChainError(at, expected, f"{name} at offset {expected}: {reason}")
            expected, epoch = header.next_offset, header.leader_epoch
            yield header


def _objection(header: BatchHeader, batch: memoryview, expected: Offset, epoch: LeaderEpoch) -> str:
    """A description of damage to fields that no checksum covers; empty if there is none."""
    if header.base_offset != expected:
        return f"a batch says that it is at offset {header.base_offset}"
    if header.leader_epoch < max(epoch, 0):
        return f"leader epoch {header.leader_epoch} comes after {epoch}"
    if header.leader_epoch > epoch != NO_EPOCH and not _begins_epoch(header, batch):
        return f"leader epoch {header.leader_epoch} begins without a LeaderChange record"
    return ""


def _begins_epoch(header: BatchHeader, batch: memoryview) -> bool:
    if not header.is_control:
        return False
    try:
        first = next(iter(read_records(batch)), None)
    except UnreadableRecords:
        return False
    return first is not None and control_type(first) is ControlType.LEADER_CHANGE


def _has_more(disk: Disk, bases: list[Offset], end: Offset) -> bool:
    """Whether a valid batch follows anywhere after the valid part."""
    for number, base in enumerate(bases):
        following = bases[number + 1] if number + 1 < len(bases) else None
        if following is not None and following <= end:
            continue
        file = disk.open(f"{DIRECTORY}/{names.offset_name(base, names.LOG)}")
        if base > end and file.size and _is_sound_at_start(file, base):
            return True
        if scan.resume_after(file, 0, file.size, max(end, base) + 1) is not None:
            return True
    return False


def _is_sound_at_start(file: File, base: Offset) -> bool:
    try:
        next(scan.batches(file, 0, file.size, base))
    except (BrokenChainError, StopIteration):
        return False
    return True
