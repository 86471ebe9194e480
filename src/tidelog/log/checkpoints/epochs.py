"""The start offset of each leader epoch in this log (`leader-epoch-checkpoint`).

Invariant: epochs and start offsets both increase from entry to entry. An epoch without records is
replaced by the next epoch, which starts at the same offset. The file is written without an fsync.
After power loss the file may be old or torn, so loading compares it with the batches. Loading drops
epochs without records, so the file is written only when an epoch gets its first record.
"""

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

from tidelog.log import names
from tidelog.log.checkpoints import checkpoints
from tidelog.model.disk import Disk, File
from tidelog.model.effects import EpochEnd
from tidelog.model.ids import NO_EPOCH, NO_OFFSET, LeaderEpoch, Offset


class EpochStart(NamedTuple):
    epoch: LeaderEpoch
    start_offset: Offset


_by_epoch = attrgetter("epoch")
_by_start = attrgetter("start_offset")


class LeaderEpochs:
    __slots__ = ("_disk", "_entries", "_path", "is_written", "latest", "was_sound")

    def __init__(self, disk: Disk, directory: str, *, is_on_disk: bool) -> None:
        self._disk = disk
        self._path = f"{directory}/{names.LEADER_EPOCH_CHECKPOINT}"
        self._entries: list[EpochStart] = []
        self.latest: LeaderEpoch = NO_EPOCH
        self.was_sound = True
        self.is_written = True
        """Whether the file holds every known entry."""
        if is_on_disk:
            pairs, self.was_sound = checkpoints.read_epochs(disk, self._path)
            for epoch, start in pairs:
                self._assign(epoch, start)

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    def assign(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """Record the start of an epoch; write the file if the entries changed."""
        if self._assign(epoch, start_offset):
            self.write()

    def announce(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """Record the start of an epoch that has no records yet.

        The first append of the epoch writes the file.
        """
        if self._assign(epoch, start_offset):
            self.is_written = False

    def learn(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """Record the start of an epoch in memory only.

        The caller writes the file once, after its last call.
        """
        self._assign(epoch, start_offset)

    def end(self, requested: LeaderEpoch, log_end_offset: Offset) -> EpochEnd:
        """The largest known epoch up to `requested`, and the end offset of that epoch."""
        if requested == NO_EPOCH:
            return EpochEnd(NO_EPOCH, NO_OFFSET)
        if requested == self.latest:
            return EpochEnd(requested, log_end_offset)
        above = bisect_right(self._entries, requested, key=_by_epoch)
        if above == len(self._entries):
            return EpochEnd(NO_EPOCH, NO_OFFSET)
        end = self._entries[above].start_offset
        if above == 0:
            # The records of this old epoch are deleted. Its end is the start of the first known
            # epoch.
            return EpochEnd(requested, end)
        return EpochEnd(self._entries[above - 1].epoch, end)

    def at(self, offset: Offset) -> LeaderEpoch:
        entries = self._entries
        if entries and offset >= entries[-1].start_offset:
            return entries[-1].epoch
        above = bisect_right(entries, offset, key=_by_start)
        return entries[above - 1].epoch if above else NO_EPOCH

    def truncate_from_end(self, end_offset: Offset) -> None:
        """Drop epochs that begin at or past the new log end offset."""
        kept = [entry for entry in self._entries if entry.start_offset < end_offset]
        if len(kept) < len(self._entries):
            self._replace(kept)

    def truncate_from_start(self, start_offset: Offset) -> None:
        """Drop epochs before the new log start, and let the first remaining epoch begin there."""
        above = bisect_right(self._entries, start_offset, key=_by_start)
        if above == 0 or (above == 1 and self._entries[0].start_offset == start_offset):
            return
        first = EpochStart(self._entries[above - 1].epoch, start_offset)
        self._replace([first, *self._entries[above:]])

    def clear(self) -> None:
        if self._entries:
            self._replace([])

    def forget(self) -> None:
        """Drop all entries; the caller then calls `learn` for every epoch and writes the file."""
        self._entries, self.latest = [], NO_EPOCH

    def write(self, *, durable: bool = False) -> None:
        content = checkpoints.encode_epochs(self._entries)
        self._disk.write_file(self._path, content, durable=durable)
        self.is_written = True

    def close(self, end_offset: Offset) -> File:
        """Write the epochs that have records, and return the file, which the caller must fsync."""
        self._entries = [entry for entry in self._entries if entry.start_offset < end_offset]
        self.write()
        return self._disk.open(self._path)

    def _replace(self, entries: list[EpochStart]) -> None:
        self._entries = entries
        self.latest = entries[-1].epoch if entries else NO_EPOCH
        self.write()

    def _assign(self, epoch: LeaderEpoch, start_offset: Offset) -> bool:
        assert epoch >= 0, epoch
        assert start_offset >= 0, start_offset
        entries = self._entries
        if entries and epoch == entries[-1].epoch and start_offset >= entries[-1].start_offset:
            return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochStart(epoch, start_offset))
        self.latest = epoch
        return True
