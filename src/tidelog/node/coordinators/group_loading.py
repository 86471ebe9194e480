"""Loads a group coordinator in jobs, which read and replay its log, a few batches per job.

The loaded groups form a shard, which no other part uses until the load is complete. The replay of a
large log takes seconds, and the node serves other requests during that time.
"""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import ClassVar

from tidelog.coordination.record_codec import RecordFormatError
from tidelog.coordination.shard import GroupShard
from tidelog.model.disk import FileSlice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, Offset, TopicPartition
from tidelog.model.jobs import Steps, Work
from tidelog.node.jobs import Jobs
from tidelog.node.partitions.replica import Replica
from tidelog.protocol.records.batch import is_valid_crc, iterate
from tidelog.protocol.records.records import UnreadableRecords, iterate_records

READ_BYTES = 1 << 20
_RECORDS_PER_STEP = 100

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ReplayGroups:
    """Replays the batches in a slice of the log; returns the offset after the last valid batch."""

    work: ClassVar[Work] = Work.LOAD
    shard: GroupShard
    batches: FileSlice
    offset: Offset
    partition: TopicPartition
    now: Millis

    def run(self) -> Steps[Offset]:
        file, position, length = self.batches
        data = memoryview(file.read(position, length))
        offset = self.offset
        for at, header in iterate(data):
            if not is_valid_crc(data, at, header):
                break
            if not header.is_control and header.next_offset > offset:
                try:
                    yield from self._replay(data[at : at + header.size])
                except UnreadableRecords:
                    break
            offset = header.next_offset
        return offset

    def _replay(self, batch: memoryview) -> Steps[None]:
        for number, record in enumerate(iterate_records(batch), 1):
            if record.key:
                try:
                    self.shard.replay(record.key, record.value, self.now)
                except RecordFormatError as bad:
                    log.warning("%s: a record was skipped: %s", self.partition, bad)
            if not number % _RECORDS_PER_STEP:
                yield


class GroupLoading:
    """The load of one coordinator; `done` gets its shard, or None if the load fails."""

    def __init__(
        self,
        replica: Replica,
        shard: GroupShard,
        jobs: Jobs,
        now: Millis,
        done: Callable[[GroupShard | None], None],
    ) -> None:
        self._replica = replica
        self._shard = shard
        self._jobs = jobs
        self._now = now
        self._done = done
        self._end = replica.log.log_end_offset
        self._token = 0
        self.deleted: list[Collection[TopicPartition]] = []
        """Partitions that were deleted during the load."""

    def begin(self) -> None:
        self._go_on(self._replica.log.log_start_offset)

    def cancel(self) -> None:
        self._jobs.cancel(self._token)

    def _go_on(self, offset: Offset) -> None:
        if offset >= self._end:
            self._done(self._shard)
            return
        batches = _slice_at(self._replica, offset, self._end)
        if batches is None:
            self._fail(offset)
            return
        job = ReplayGroups(self._shard, batches, offset, self._replica.partition, self._now)

        def replayed(up_to: Offset) -> None:
            if up_to > offset:
                self._go_on(up_to)
            else:
                self._fail(offset)

        def failed(error: Exception) -> None:
            log.error("%s: %s", self._replica.partition, error)
            self._fail(offset)

        self._token = self._jobs.start(job, replayed, failed)

    def _fail(self, offset: Offset) -> None:
        # Some committed offsets cannot be read. Clients would not notice missing offsets, so the
        # groups are not served. Without a shard, requests for these groups get NOT_COORDINATOR.
        log.error(
            "%s: its groups are not served: no valid batch at offset %d",
            self._replica.partition,
            offset,
        )
        self._done(None)


def _slice_at(replica: Replica, offset: Offset, end: Offset) -> FileSlice | None:
    """The location of the next batches from `offset` on; None if they cannot be read."""
    try:
        found = replica.log.read(offset, READ_BYTES, end, at_least_one=True)
    except OSError as failure:
        log.error("%s: %s", replica.partition, failure)
        return None
    return None if isinstance(found, ErrorCode) else found.slice
