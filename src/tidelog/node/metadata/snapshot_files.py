"""Snapshots of the metadata log, in files with Kafka's names: `<end offset>-<epoch>.checkpoint`.

A snapshot consists of a header, the voters (KIP-853), batches of metadata records and a footer.
Header and footer are control records. A file without its footer was not written completely. A file
whose batches are not consecutive is damaged. Incomplete and damaged files are not used.
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, NamedTuple

from crc32c import crc32c
from kio.schema.snapshot_footer_record.v0.data import SnapshotFooterRecord
from kio.schema.snapshot_header_record.v0.data import SnapshotHeaderRecord

from tidelog.controller.image.apply import ImpossibleRecord, apply_all
from tidelog.controller.image.image import ClusterImage
from tidelog.controller.image.snapshot import records_of
from tidelog.model.disk import Disk
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC, LeaderEpoch, Millis, Offset
from tidelog.model.jobs import Steps, Work
from tidelog.node.metadata.metadata_mark import MetadataMark
from tidelog.node.quorum.voter_records import control_record, membership_in, membership_records
from tidelog.protocol.fetch import SnapshotId
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.metadata.codec import decode_record, encode_record
from tidelog.protocol.metadata.metadata_records import MetadataRecord
from tidelog.protocol.records.batch import check
from tidelog.protocol.records.records import (
    ControlType,
    Record,
    build_batch,
    control_type,
    read_records,
)
from tidelog.replication.quorum.voters import VoterMembership

DIRECTORY = f"{METADATA_TOPIC}-0"
RECORDS_PER_BATCH = 1000
_RECORDS_PER_STEP = 100
KEPT = 2
"""The number of snapshots to keep; a slow follower may still be downloading the older one."""

log = logging.getLogger(__name__)

BOOTSTRAP = SnapshotId(0, 0)
"""The snapshot that `format` writes: it holds only the first voters of a cluster."""

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


def name_of(snapshot: SnapshotId) -> str:
    return f"{snapshot.end_offset:020d}-{snapshot.epoch:010d}.checkpoint"


def path_of(snapshot: SnapshotId) -> str:
    return f"{DIRECTORY}/{name_of(snapshot)}"


class SnapshotContent(NamedTuple):
    image: ClusterImage
    membership: VoterMembership


def encode(image: ClusterImage, known: VoterMembership, now: Millis) -> bytes:
    """The complete content of a snapshot file for this image."""
    return _whole(_encoding(records_of(image), image.epoch, known, now))


def encode_bootstrap(known: VoterMembership, now: Millis) -> bytes:
    return _whole(_encoding(iter(()), BOOTSTRAP.epoch, known, now))


def _whole(steps: Steps[bytes]) -> bytes:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return bytes(done.value)


def _encoding(
    records: Iterator[MetadataRecord], epoch: LeaderEpoch, known: VoterMembership, now: Millis
) -> Steps[bytes]:
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=now)
    first = [
        control_record(ControlType.SNAPSHOT_HEADER, header, now),
        *membership_records(known, now),
    ]
    out = [_control(first, 0, epoch)]
    offset = len(first)
    while chunk := list(islice(records, RECORDS_PER_BATCH)):
        batch: list[Record] = []
        for number, record in enumerate(chunk, 1):
            batch.append(Record(None, encode_record(record), now))
            if not number % _RECORDS_PER_STEP:
                yield
        out.append(build_batch(batch, offset, leader_epoch=epoch))
        offset += len(chunk)
    footer = SnapshotFooterRecord(version=0)
    out.append(_control([control_record(ControlType.SNAPSHOT_FOOTER, footer, now)], offset, epoch))
    return b"".join(out)


def _control(records: list[Record], offset: Offset, epoch: LeaderEpoch) -> bytes:
    return build_batch(records, offset, leader_epoch=epoch, is_control=True)


def decode(snapshot: SnapshotId, content: bytes, cluster_id: str) -> SnapshotContent | None:
    """The image and the voters in a snapshot; None if it is incomplete or damaged."""
    try:
        return _decode(snapshot, memoryview(content), cluster_id)
    except (MalformedMessage, ImpossibleRecord):
        return None


def _decode(snapshot: SnapshotId, data: memoryview, cluster_id: str) -> SnapshotContent | None:
    records: list[MetadataRecord] = []
    known = VoterMembership()
    position = offset = 0
    is_whole = False
    while position < len(data):
        header = check(data, position)
        if is_whole or isinstance(header, ErrorCode):
            return None
        if header.base_offset != offset or header.leader_epoch != snapshot.epoch:
            return None  # a batch's checksum does not cover these two fields
        batch = read_records(data[position : position + header.size])
        position, offset = position + header.size, header.next_offset
        if header.is_control:
            known = membership_in(batch, known)
            is_whole = any(control_type(one) is ControlType.SNAPSHOT_FOOTER for one in batch)
        else:
            records += [decode_record(one.value) for one in batch if one.value is not None]
    if not is_whole:
        return None
    empty = ClusterImage(cluster_id=cluster_id)
    image = apply_all(empty, records, snapshot.end_offset - 1, snapshot.epoch)
    return SnapshotContent(image, known)


@dataclass(slots=True)
class WriteSnapshot:
    """The job that writes and syncs the snapshot of an image."""

    work: ClassVar[Work] = Work.LOAD
    disk: Disk
    image: ClusterImage
    known: VoterMembership
    now: Millis

    def run(self) -> Steps["Written"]:
        image = self.image
        content = yield from _encoding(records_of(image), image.epoch, self.known, self.now)
        yield
        snapshot = SnapshotId(image.offset + 1, image.epoch)
        self.disk.write_file(path_of(snapshot), content)
        return Written(snapshot, crc32c(content))


class Written(NamedTuple):
    snapshot: SnapshotId
    checksum: int
    """The checksum of the whole file."""


class Found(NamedTuple):
    """The newest valid snapshot, and the names of newer snapshots that are damaged."""

    snapshot: SnapshotId | None
    content: SnapshotContent | None
    damaged: list[str]


class Snapshots:
    """The snapshots in this node's metadata log directory."""

    def __init__(self, disk: Disk, cluster_id: str, mark: MetadataMark) -> None:
        self._disk = disk
        self._cluster_id = cluster_id
        self._mark = mark
        self._known = sorted(self._found())

    @property
    def newest(self) -> SnapshotId | None:
        return self._known[-1] if self._known else None

    def missing(self) -> list[str]:
        """The names of snapshots that the mark lists but whose files are missing."""
        return [name_of(one) for one, _ in self._mark.now.snapshots if one not in self._known]

    def load_newest(self) -> Found:
        """Load the newest valid snapshot, and remove newer, damaged snapshots from the list."""
        damaged: list[str] = []
        while self._known:
            newest = self._known[-1]
            content = self._load(newest)
            if content is not None:
                return Found(newest, content, damaged)
            self._known.pop()
            damaged.append(name_of(newest))
        return Found(None, None, damaged)

    def list_unlisted(self) -> None:
        """Add valid snapshots that the mark does not list, because the mark was lost or is older.

        If an added snapshot is lost later, the next start notices the loss.
        """
        listed = dict(self._mark.now.snapshots)
        for snapshot in self._known:
            if snapshot in listed:
                continue
            try:
                content = self._disk.read_file(path_of(snapshot))
            except OSError as failure:
                # The node can start without this snapshot, because a newer snapshot was loaded.
                log.warning("the snapshot %s cannot be read: %s", path_of(snapshot), failure)
                continue
            if decode(snapshot, content, self._cluster_id) is not None:
                listed[snapshot] = crc32c(content)
        self._mark.kept(tuple(sorted(listed.items())))

    def writing(self, image: ClusterImage, known: VoterMembership, now: Millis) -> WriteSnapshot:
        """The job that writes an image's snapshot; the caller passes its result to `written`."""
        self._note_others(SnapshotId(image.offset + 1, image.epoch))
        return WriteSnapshot(self._disk, image, known, now)

    def keep(self, snapshot: SnapshotId, content: bytes) -> SnapshotId:
        """Store a leader's snapshot durably."""
        self._note_others(snapshot)
        self._disk.write_file(path_of(snapshot), content)
        return self.written(Written(snapshot, crc32c(content)))

    def written(self, one: Written) -> SnapshotId:
        """Add a new snapshot to the list, and delete all but the `KEPT` newest ones."""
        snapshot = one.snapshot
        if snapshot not in self._known:
            self._known.append(snapshot)
            self._known.sort()
        gone, self._known = self._known[:-KEPT], self._known[-KEPT:]
        checksums = {**dict(self._mark.now.snapshots), snapshot: one.checksum}
        self._mark.kept(tuple((id_, checksums[id_]) for id_ in self._known if id_ in checksums))
        for old in gone:
            self._disk.remove(path_of(old))
        return snapshot

    def _note_others(self, snapshot: SnapshotId) -> None:
        """Remove this snapshot's checksum from the mark, because its file is about to change."""
        self._mark.kept(tuple(one for one in self._mark.now.snapshots if one[0] != snapshot))

    def read(self, snapshot: SnapshotId, position: int, length: int) -> tuple[bytes, int] | None:
        """The bytes from `position` on, and the file size; None if the snapshot is not listed."""
        if snapshot not in self._known:
            return None
        file = self._disk.open(path_of(snapshot))
        if not 0 <= position < file.size:
            return b"", file.size
        return file.read(position, length), file.size

    def _load(self, snapshot: SnapshotId) -> SnapshotContent | None:
        try:
            content = self._disk.read_file(path_of(snapshot))
        except FileNotFoundError:
            return None
        # The file may be another valid snapshot that was renamed by mistake, so compare its
        # checksum with the mark.
        if dict(self._mark.now.snapshots).get(snapshot, crc := crc32c(content)) != crc:
            return None
        return decode(snapshot, content, self._cluster_id)

    def _found(self) -> Iterator[SnapshotId]:
        for name in self._disk.list(DIRECTORY):
            match = _NAME.fullmatch(name)
            if match is not None:
                yield SnapshotId(int(match[1]), int(match[2]))
