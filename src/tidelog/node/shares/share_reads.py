"""Reads the log for share groups, without waiting for the disk (F94).

A share fetch needs the bytes of the batches, because it looks at their headers and may send only
some of them. Bytes that are not in the page cache are read by a job, and the fetch is woken then.
"""

from collections.abc import Callable
from typing import NamedTuple

from tidelog.coordination.delivery.acquisition import (
    AcquiredRecords,
    FetchedBatches,
    OffsetRange,
)
from tidelog.model.disk import NotCached
from tidelog.model.effects import AbortedTransaction, FetchBatches, PartitionFetch
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ConnId, Offset, TopicPartition
from tidelog.node.partitions.cold_reads import Waiter
from tidelog.node.partitions.fetches import ROUNDS, Fetches
from tidelog.protocol.records.batch import BatchHeader, iterate

READ_BYTES = 1 << 20
"""How much one fetch reads of one partition. A member acquires few records at a time, so a read of
all bytes that its request allows would copy many bytes in vain."""


class ColdReader(NamedTuple):
    """A fetch that may have to wait for bytes."""

    conn: ConnId
    wake: Waiter
    rounds: int
    """How often the fetch has waited."""


class ReadBatches(NamedTuple):
    fetched: FetchedBatches
    data: memoryview
    headers: list[tuple[int, BatchHeader]]
    """The position of each batch in `data`, and its header."""

    def bytes_of(self, acquired: list[AcquiredRecords]) -> bytes:
        """The bytes of the batches from the first acquired record to the last one."""
        first, last = acquired[0].first, acquired[-1].last
        wanted = [
            (at, at + header.size)
            for at, header in self.headers
            if header.last_offset >= first and header.base_offset <= last
        ]
        return bytes(self.data[wanted[0][0] : wanted[-1][1]]) if wanted else b""


class ShareReads:
    def __init__(
        self, fetches: Fetches, storage_failed: Callable[[TopicPartition, OSError], None]
    ) -> None:
        self._fetches = fetches
        self._partitions = fetches.partitions
        self._storage_failed = storage_failed

    def read(
        self,
        partition: TopicPartition,
        offset: Offset,
        max_bytes: int,
        reader: ColdReader,
        *,
        read_committed: bool,
    ) -> ReadBatches | ErrorCode | None:
        """The batches from an offset on; None if there are none, or none in the page cache."""
        size = min(max_bytes, READ_BYTES)
        read = PartitionFetch(partition, offset, size)
        effect = FetchBatches([read], 1, size, 0, read_committed=read_committed)
        attempt = self._partitions.attempt(effect)
        if attempt.cold:
            attempt = self._fetches.waiting_if_evicted(attempt, effect, reader.rounds)
            self._fetches.read_cold(attempt, reader.conn, reader.wake)
        [found] = attempt.results
        if found.error is not ErrorCode.none:
            return found.error
        replica = self._partitions.get(partition)
        if found.records is None or replica is None:
            return None
        try:
            data = replica.log.bytes_of(found.records, waits=reader.rounds > ROUNDS)
        except NotCached as cold:
            missing = attempt._replace(cold=(cold.part,))
            self._fetches.read_cold(missing, reader.conn, reader.wake)
            return None
        except OSError as failure:
            self._storage_failed(partition, failure)
            return ErrorCode.kafka_storage_error
        return _batches(memoryview(data), offset, found.aborted or ())

    def sent(self, size: int) -> None:
        """Count bytes that a member gets."""
        self._fetches.sent_to_client(size)


def _batches(
    data: memoryview, offset: Offset, aborted: tuple[AbortedTransaction, ...]
) -> ReadBatches:
    headers = list(iterate(data))
    batches = tuple(OffsetRange(header.base_offset, header.last_offset) for _, header in headers)
    skipped = aborted_batches([header for _, header in headers], aborted)
    return ReadBatches(FetchedBatches(offset, batches, skipped), data, headers)


def aborted_batches(
    headers: list[BatchHeader], aborted: tuple[AbortedTransaction, ...]
) -> tuple[OffsetRange, ...]:
    """The batches that belong to aborted transactions.

    A transaction begins at its first offset and ends with the next marker of its producer.
    """
    if not aborted:
        return ()
    upcoming = sorted(aborted, key=lambda one: one.first_offset)
    open_producers: set[int] = set()
    found: list[OffsetRange] = []
    for header in headers:
        while upcoming and upcoming[0].first_offset <= header.last_offset:
            open_producers.add(upcoming.pop(0).producer_id)
        if header.is_control:
            open_producers.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in open_producers:
            found.append(OffsetRange(header.base_offset, header.last_offset))
    return tuple(found)
