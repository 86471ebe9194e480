"""Loads a coordinator's machine in jobs, which read and replay its log, a few batches per job.

No other part uses the machine until the load is complete. The replay of a large log takes seconds,
and the node serves other requests during that time. Records of an open transaction are replayed
with their producer, and the transaction's marker ends it for the machine.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.record_codec import RecordFormatError
from tidelog.coordination.runtime.decision import ProducerIdAndEpoch, RecordOrigin
from tidelog.coordination.runtime.machine import CoordinatorMachine
from tidelog.log.producers.markers import read_marker
from tidelog.model.disk import FileSlice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset, TopicPartition
from tidelog.model.jobs import Steps, Work
from tidelog.node.jobs import Jobs
from tidelog.node.partitions.replica import Replica
from tidelog.protocol.records.batch import BatchHeader, is_valid_crc, iterate
from tidelog.protocol.records.records import UnreadableRecords, iterate_records

READ_BYTES = 1 << 20
_RECORDS_PER_STEP = 100

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ReplayRecords:
    """Replays the batches in a slice of the log; returns the offset after the last valid batch."""

    work: ClassVar[Work] = Work.LOAD
    machine: CoordinatorMachine[Any]
    batches: FileSlice
    offset: Offset
    partition: TopicPartition

    def run(self) -> Steps[Offset]:
        file, position, length = self.batches
        data = memoryview(file.read(position, length))
        offset = self.offset
        for at, header in iterate(data):
            if not is_valid_crc(data, at, header):
                break
            if header.next_offset > offset:
                batch = data[at : at + header.size]
                if header.is_control:
                    self._end_transaction(header, batch)
                else:
                    try:
                        yield from self._replay(header, batch)
                    except UnreadableRecords:
                        break
            offset = header.next_offset
        return offset

    def _end_transaction(self, header: BatchHeader, batch: memoryview) -> None:
        marker = read_marker(batch)
        if marker is not None:
            producer = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
            self.machine.transaction_ended(producer, committed=not marker.is_abort)

    def _replay(self, header: BatchHeader, batch: memoryview) -> Steps[None]:
        producer = None
        if header.is_transactional:
            producer = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
        for number, record in enumerate(iterate_records(batch), 1):
            if record.key:
                try:
                    decoded = self.machine.decode(record.key, record.value)
                    if decoded is not None:
                        self.machine.replay(decoded, RecordOrigin(record.offset, producer))
                except RecordFormatError as bad:
                    log.warning("%s: a record was skipped: %s", self.partition, bad)
            if not number % _RECORDS_PER_STEP:
                yield


class ShardLoading:
    """The load of one machine; `done` gets whether all records were replayed."""

    def __init__(
        self,
        replica: Replica,
        machine: CoordinatorMachine[Any],
        jobs: Jobs,
        image: ClusterImage,
        done: Callable[["ShardLoading", bool], None],
    ) -> None:
        self.replica = replica
        self.machine = machine
        self.image = image
        """The image at the start of the load."""
        self.end = replica.log.log_end_offset
        self._jobs = jobs
        self._done = done
        self._token = 0

    def begin(self) -> None:
        self._go_on(self.replica.log.log_start_offset)

    def cancel(self) -> None:
        self._jobs.cancel(self._token)

    def _go_on(self, offset: Offset) -> None:
        if offset >= self.end:
            self._done(self, True)
            return
        batches = _slice_at(self.replica, offset, self.end)
        if batches is None:
            self._fail(offset)
            return
        job = ReplayRecords(self.machine, batches, offset, self.replica.partition)

        def replayed(up_to: Offset) -> None:
            if up_to > offset:
                self._go_on(up_to)
            else:
                self._fail(offset)

        def failed(error: Exception) -> None:
            log.error("%s: %s", self.replica.partition, error)
            self._fail(offset)

        self._token = self._jobs.start(job, replayed, failed)

    def _fail(self, offset: Offset) -> None:
        # Some stored state cannot be read. Clients would not notice what is missing, so the shard
        # is not served. Its requests get NOT_COORDINATOR.
        log.error(
            "%s: its coordinator is not served: no valid batch at offset %d",
            self.replica.partition,
            offset,
        )
        self._done(self, False)


def _slice_at(replica: Replica, offset: Offset, end: Offset) -> FileSlice | None:
    """The location of the next batches from `offset` on; None if they cannot be read."""
    try:
        found = replica.log.read(offset, READ_BYTES, end, at_least_one=True)
    except OSError as failure:
        log.error("%s: %s", replica.partition, failure)
        return None
    return None if isinstance(found, ErrorCode) else found.slice
