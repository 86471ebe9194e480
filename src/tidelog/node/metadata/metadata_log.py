"""The log `__cluster_metadata` on this node: appends, reads and the synced end.

Invariant: the quorum sees this log only up to its synced end. Votes and commits therefore never
depend on records that are only in the page cache.
"""

from collections.abc import Callable, Iterator, Sequence

from kio.schema.leader_change_message.v0.data import LeaderChangeMessage, Voter

from tidelog.controller.image.apply import ImpossibleRecord, apply_steps
from tidelog.controller.image.image import ClusterImage
from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, AppendOrigin, AppendRefused
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_EPOCH, LeaderEpoch, Millis, NodeId, Offset
from tidelog.node.clock import Clock
from tidelog.node.jobs import Jobs
from tidelog.node.metadata.metadata_mark import MetadataMark
from tidelog.node.metadata.snapshot_files import SnapshotContent, Snapshots, WriteSnapshot
from tidelog.node.quorum.voter_records import (
    control_record,
    follow,
    membership_records,
    voters_record,
)
from tidelog.protocol.fetch import SnapshotId
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.metadata.codec import decode_record, encode_record
from tidelog.protocol.metadata.metadata_records import MetadataRecord
from tidelog.protocol.records.batch import BatchHeader, is_valid_crc, iterate
from tidelog.protocol.records.records import (
    ControlType,
    Record,
    build_batch,
    iterate_records,
    read_records,
)
from tidelog.protocol.slices import RECORDS_PER_SLICE, Steps
from tidelog.replication.quorum.state import LogEnd, VoterSet
from tidelog.replication.quorum.voters import DYNAMIC, VoterHistory, VoterMembership

READ_BYTES = 1 << 20


class UnusableMetadata(Exception):
    """The metadata on this node is damaged beyond repair; the message describes the damage."""


def applied(
    image: ClusterImage, records: Sequence[MetadataRecord], last: Offset, epoch: LeaderEpoch
) -> Steps[ClusterImage]:
    """The image after one more batch of the log; `last` is the last offset of the batch."""
    try:
        return (yield from apply_steps(image, records, last, epoch))
    except ImpossibleRecord as wrong:
        raise UnusableMetadata(
            f"the metadata log has a record in the batch that ends at offset {last} that does not "
            f"fit what comes before it: {wrong}"
        ) from None


class MetadataLog:
    def __init__(
        self,
        log: PartitionLog,
        clock: Clock,
        jobs: Jobs,
        stop: Callable[[str], None],
        snapshots: Snapshots,
        configured: VoterSet,
        mark: MetadataMark,
    ) -> None:
        self.log = log
        self.mark = mark
        self.voters = VoterHistory(configured)
        self.snapshots = snapshots
        self._clock = clock
        self._jobs = jobs
        self._stop = stop
        self._when_flushed: Callable[[Offset], None] = self.flushed
        self.is_flushing = False

    def subscribe(self, when_flushed: Callable[[Offset], None]) -> None:
        """Set the function to call when an fsync ends; it must pass the offset on to `flushed`."""
        self._when_flushed = when_flushed

    @property
    def end(self) -> LogEnd:
        return LogEnd(self.log.latest_epoch, self.log.log_end_offset)

    @property
    def synced_end(self) -> LogEnd:
        """The synced end of the log; votes and commits use only records before it."""
        point = self.log.recovery_point
        snapshot = self.snapshots.newest
        epoch = self.log.epoch_at(point - 1) if point > self.log.log_start_offset else NO_EPOCH
        if epoch == NO_EPOCH and snapshot is not None and snapshot.end_offset == point:
            epoch = snapshot.epoch
        return LogEnd(epoch, point)

    # -- writing records -------------------------------------------------------------------------

    def append_steps(
        self, records: Sequence[MetadataRecord], epoch: LeaderEpoch, now: Millis
    ) -> Steps[Offset]:
        """Encode the records in slices, and append them as one batch; returns the log end offset.

        Readers see either the whole batch or nothing of it.
        """
        encoded: list[Record] = []
        for record in records:
            encoded.append(Record(None, encode_record(record), now))
            if len(encoded) % RECORDS_PER_SLICE == 0:
                yield
        return self._write(build_batch(encoded), epoch, now)

    def append_leader_change(
        self,
        leader: NodeId,
        epoch: LeaderEpoch,
        voters: Sequence[NodeId],
        granted: Sequence[NodeId],
        now: Millis,
    ) -> Offset:
        """Append the first record of an epoch. Its commit also commits all earlier records."""
        # Kafka writes version 0 of this message at kraft.version 0, and its tools always read
        # version 0.
        message = LeaderChangeMessage(
            version=0,
            leader_id=leader,
            voters=tuple(Voter(voter_id=voter) for voter in voters),
            granting_voters=tuple(Voter(voter_id=voter) for voter in granted),
        )
        records = [control_record(ControlType.LEADER_CHANGE, message, now)]
        if self.voters.latest_offset < 0:
            # Also write the initial voters, because a node that was formatted without voters reads
            # the voters from the log.
            records += membership_records(self.voters.below(self.log.log_end_offset), now)
        self.log.assign_epoch(epoch, self.log.log_end_offset)
        return self._write_control(records, epoch, now)

    def append_voters(self, voters: VoterSet, epoch: LeaderEpoch, now: Millis) -> Offset:
        """Append a voter set, which takes effect at once.

        The first voter set also sets kraft.version.
        """
        if self.voters.kraft_version < DYNAMIC:
            records = membership_records(VoterMembership(DYNAMIC, voters), now)
        else:
            records = [voters_record(voters, now)]
        return self._write_control(records, epoch, now)

    def append_fetched(self, records: memoryview) -> None:
        """As a follower, append the leader's batches unchanged."""
        expected = self.log.log_end_offset
        is_empty = self.log.log_start_offset == expected
        for _, header in iterate(records):
            # A log that starts after a snapshot may start inside a batch.
            is_around = is_empty and header.base_offset < expected < header.next_offset
            if header.base_offset != expected and not is_around:
                raise MalformedMessage(f"a batch at {header.base_offset}, not at {expected}")
            expected, is_empty = header.next_offset, False
        outcome = self.log.append_as_follower(records)
        if isinstance(outcome, AppendRefused):
            raise MalformedMessage(outcome.message)
        for at, header in iterate(records):
            if header.is_control:
                batch = read_records(records[at : at + header.size])
                follow(self.voters, header.base_offset, batch)

    def truncate_to(self, end: Offset, now: Millis) -> None:
        """As a follower, remove the records that the leader does not have."""
        if self.mark.now.end <= self.synced_end:
            self.mark.settle(LogEnd(self.log.epoch_at(end - 1) if end else NO_EPOCH, end))
        self.log.truncate_to(end, now)
        self.voters.truncate(end)

    def _write_control(self, records: list[Record], epoch: LeaderEpoch, now: Millis) -> Offset:
        end = self._write(build_batch(records, is_control=True), epoch, now)
        follow(self.voters, end - len(records), records)
        return end

    def _write(self, batch: bytes, epoch: LeaderEpoch, now: Millis) -> Offset:
        outcome = self.log.append_as_leader(
            memoryview(bytearray(batch)), epoch, now, AppendOrigin.RAFT_LEADER
        )
        assert isinstance(outcome, Appended), outcome
        self.flush()
        return outcome.last_offset + 1

    def flush(self) -> None:
        """Start an fsync of all records appended so far, unless an fsync is running."""
        if not self.is_flushing and self.log.recovery_point < self.log.log_end_offset:
            self.is_flushing = True
            files, up_to = self.log.begin_flush(self._clock.now)
            self._jobs.sync(files, lambda: self._when_flushed(up_to), self._stop)

    def flushed(self, up_to: Offset) -> None:
        self.is_flushing = False
        self.log.flushed(up_to)
        self.mark.reached(self.synced_end)
        self.flush()

    def end_doubt(self) -> None:
        """Record that the log, which had lost records, holds all committed records again."""
        if self.mark.now.end > self.synced_end:
            self.mark.settle(self.synced_end)

    # -- loading and writing snapshots -----------------------------------------------------------

    def restore(self, content: SnapshotContent | None, now: Millis) -> None:
        """Load the voters from the snapshot and from the log.

        If the log ends before the snapshot does, the log is emptied and restarts at the snapshot's
        end.
        """
        start = 0 if content is None else content.image.offset + 1
        if start < self.log.log_start_offset:
            raise UnusableMetadata(
                f"the metadata log begins at offset {self.log.log_start_offset} and no sound "
                f"snapshot goes further than {start}"
            )
        if content is not None:
            if self.log.log_end_offset < start:
                self.log.truncate_fully_and_start_at(start, now)
            self.voters.restart(start, content.membership)
        for batch, header in self._batches(start, self.log.log_end_offset):
            if header.is_control:
                try:
                    follow(self.voters, header.base_offset, _records_in(batch, header))
                except MalformedMessage as wrong:
                    raise UnusableMetadata(_at(header.base_offset, wrong)) from None

    def start_at(self, snapshot: SnapshotId, content: SnapshotContent, now: Millis) -> None:
        """Replace the whole log with a leader's snapshot."""
        if self.mark.now.end <= self.synced_end:
            self.mark.settle(LogEnd(snapshot.epoch, snapshot.end_offset))
        self.log.truncate_fully_and_start_at(snapshot.end_offset, now)
        self.voters.restart(snapshot.end_offset, content.membership)
        self.mark.reached(self.synced_end)

    def writing_snapshot(self, image: ClusterImage, now: Millis) -> WriteSnapshot:
        """The job that writes a snapshot of the image and of the voters at the image's offset."""
        return self.snapshots.writing(image, self.voters.below(image.offset + 1), now)

    def drop_covered(self, limit_bytes: int, now: Millis) -> None:
        """If the log exceeds its size limit, delete the segments that a snapshot covers."""
        newest = self.snapshots.newest
        if newest is not None and self.log.size > limit_bytes:
            self.log.advance_log_start(newest.end_offset)
            self.log.apply_retention(now, newest.end_offset)

    # -- reading records -------------------------------------------------------------------------

    def read(
        self, start: Offset, end: Offset
    ) -> Iterator[tuple[Offset, LeaderEpoch, Iterator[MetadataRecord]]]:
        """Yield (last offset, epoch, records) of each batch; a control batch has no records.

        A record is decoded when the caller asks for it.
        """
        for batch, header in self._batches(start, end):
            records = iter(()) if header.is_control else _metadata_records(batch, header)
            yield header.last_offset, header.leader_epoch, records

    def _batches(self, start: Offset, end: Offset) -> Iterator[tuple[memoryview, BatchHeader]]:
        while start < end:
            found = self.log.read(start, READ_BYTES, end, at_least_one=True)
            if isinstance(found, ErrorCode) or found.slice is None:
                raise UnusableMetadata(f"the metadata log cannot be read at offset {start}")
            file, position, length = found.slice
            data = memoryview(file.read(position, length))
            for at, header in iterate(data):
                if header.next_offset > start:
                    if header.base_offset > start or not is_valid_crc(data, at, header):
                        raise UnusableMetadata(f"the metadata log is damaged at offset {start}")
                    yield data[at : at + header.size], header
                    start = header.next_offset


def _records_in(batch: memoryview, header: BatchHeader) -> list[Record]:
    try:
        return read_records(batch)
    except MalformedMessage as wrong:
        raise UnusableMetadata(_at(header.base_offset, wrong)) from None


def _metadata_records(batch: memoryview, header: BatchHeader) -> Iterator[MetadataRecord]:
    try:
        for record in iterate_records(batch):
            if record.value is not None:
                yield decode_record(record.value)
    except MalformedMessage as wrong:
        raise UnusableMetadata(_at(header.base_offset, wrong)) from None


def _at(offset: Offset, wrong: Exception) -> str:
    return (
        f"the metadata log has a record in the batch at offset {offset} that this version of "
        f"Tidelog cannot read, although its checksum is right: {wrong}"
    )
