"""The file `metadata-log-mark`: the log end that this node's metadata log has reached.

A metadata log that has lost its last batches looks like a log that never had them. The mark shows
how far the log once reached. If a voter has lost records that it may have acknowledged, its vote
must not elect a leader that lacks these records (F40, F57). The mark also contains the newest epoch
of `quorum-state` and the checksums of the snapshots. docs/adr/0018 has the rules.

Invariant: the mark never exceeds the furthest end up to which the log has been synced. The mark is
written after each sync of the log, but it is not synced itself. The mark is therefore exact after
kill -9 and may be out of date after power loss. Only `lose` and `settle` sync the mark.
"""

from dataclasses import dataclass, replace

from crc32c import crc32c

from tidelog.log import names
from tidelog.model.disk import Disk
from tidelog.model.ids import NO_EPOCH, LeaderEpoch
from tidelog.protocol.fetch import SnapshotId
from tidelog.replication.quorum.state import NOTHING, Held, LogEnd

PATH = names.METADATA_LOG_MARK


@dataclass(frozen=True, slots=True)
class MetadataLogState:
    end: LogEnd = NOTHING
    """The log end that this node may have acknowledged; its log may be shorter now."""
    is_fresh: bool = False
    """Whether the node may be new, so that its log may never have held a record."""
    epoch: LeaderEpoch = NO_EPOCH
    """The newest epoch in which the node may have voted."""
    snapshots: tuple[tuple[SnapshotId, int], ...] = ()
    """The checksum of each snapshot."""


def encode(mark: MetadataLogState) -> bytes:
    lines = [
        "version 0",
        f"end {mark.end.epoch} {mark.end.offset}",
        f"fresh {int(mark.is_fresh)}",
        f"epoch {mark.epoch}",
        *(f"snapshot {one.end_offset} {one.epoch} {crc}" for one, crc in mark.snapshots),
    ]
    body = "".join(f"{line}\n" for line in lines).encode()
    return body + f"checksum {crc32c(body):08x}\n".encode()


def decode(content: bytes) -> MetadataLogState | None:
    """The decoded mark; None if the checksum or the format is wrong."""
    body, separator, checksum = content.rpartition(b"checksum ")
    if not separator or checksum != f"{crc32c(body):08x}\n".encode():
        return None
    try:
        return _parsed(body.decode("ascii"))
    except (ValueError, TypeError, IndexError):
        return None


def _parsed(body: str) -> MetadataLogState:
    mark = MetadataLogState()
    for line in body.splitlines():
        word, *numbers = line.split(" ")
        values = [int(number) for number in numbers]
        if word == "end":
            mark = replace(mark, end=LogEnd(*values))
        elif word == "fresh":
            mark = replace(mark, is_fresh=bool(values[0]))
        elif word == "epoch":
            mark = replace(mark, epoch=values[0])
        elif word == "snapshot":
            one = SnapshotId(values[0], values[1]), values[2]
            mark = replace(mark, snapshots=(*mark.snapshots, one))
    return mark


class MetadataMark:
    """The mark on disk, updated with the log."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.was_damaged = False
        self.found = self._read()
        """The mark at the start; None if it was missing or damaged."""
        self.now = self.found or MetadataLogState()

    @property
    def is_missing(self) -> bool:
        """Whether there was no mark at the start."""
        return self.found is None and not self.was_damaged

    def _read(self) -> MetadataLogState | None:
        try:
            content = self._disk.read_file(PATH)
        except FileNotFoundError:
            return None
        mark = decode(content)
        self.was_damaged = mark is None
        return mark

    @property
    def held(self) -> Held:
        return Held(self.now.end, self.now.is_fresh)

    def lose(self, end: LogEnd, *, is_fresh: bool = False) -> None:
        """Record durably that this node lacks records before `end`."""
        self._change(replace(self.now, end=end, is_fresh=is_fresh), durable=True)

    def reached(self, end: LogEnd) -> None:
        """Record that the log is synced up to `end`, unless the mark is already higher."""
        if end >= self.now.end:
            self._change(replace(self.now, end=end, is_fresh=False))

    def settle(self, end: LogEnd) -> None:
        """Record that the log is complete and ends at `end`, even if the mark was higher before."""
        self._change(replace(self.now, end=end, is_fresh=False), durable=True)

    def voted_in(self, epoch: LeaderEpoch) -> None:
        if epoch > self.now.epoch:
            self._change(replace(self.now, epoch=epoch))

    def kept(self, snapshots: tuple[tuple[SnapshotId, int], ...]) -> None:
        self._change(replace(self.now, snapshots=snapshots))

    def _change(self, mark: MetadataLogState, *, durable: bool = False) -> None:
        if mark != self.now or durable:
            self.now = mark
            self._disk.write_file(PATH, encode(mark), durable=durable)
