"""Decides which records of a batch stay, and returns the batch to write.

A record stays if no later record of the covered range has its key. A tombstone stays until the
delete horizon of its batch has passed (F78). A batch in which nothing changes is copied whole. A
batch without records stays if it holds the last sequence number of an active producer (F81), or if
it is the last batch of the pass.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.log.cleaner.record_choice import OpenBatch, RecordChoice, RecordEngine
from tidelog.log.cleaner.record_spans import record_spans, unpacked
from tidelog.log.cleaner.rewriting import delete_horizon, with_records, without_records
from tidelog.log.cleaner.transactions import CleanedTransactions
from tidelog.model.disk import Buffer
from tidelog.model.ids import Millis, Offset, ProducerId
from tidelog.protocol.records.batch import BatchHeader


class LastRecord(NamedTuple):
    """The last batch of an active producer."""

    last_data_offset: Offset | None
    """None if the producer's last batch is a transaction marker."""
    epoch: int


@dataclass(slots=True)
class CleaningStats:
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    invalid_records: int = 0
    """Records without a key. They cannot be compacted, so they are removed."""

    def add(self, other: "CleaningStats") -> None:
        self.bytes_read += other.bytes_read
        self.bytes_written += other.bytes_written
        self.records_read += other.records_read
        self.records_kept += other.records_kept
        self.invalid_records += other.invalid_records


def is_expired(horizon: Millis | None, now: Millis) -> bool:
    """Whether the delete horizon of a batch is known and has passed."""
    return horizon is not None and horizon <= now


class Judged(NamedTuple):
    """A batch, and what is known before its records are opened."""

    header: BatchHeader
    batch: memoryview
    horizon: Millis | None
    is_empty_transaction: bool
    """Whether this is a marker whose transaction has no batches."""
    is_discarded: bool
    keeps_empty: bool
    """Whether the batch stays even if no record stays."""
    opened: OpenBatch | None
    """The records; None if the batch is discarded, empty, or a marker."""


@dataclass(slots=True)
class BatchFilter:
    """The rules of one pass. Batches must be given in the order of the log."""

    engine: RecordEngine
    transactions: CleanedTransactions
    last_records: Mapping[ProducerId, LastRecord]
    pass_end: Offset
    """The first offset that the pass does not clean."""
    now: Millis
    delete_retention_ms: Millis
    stats: CleaningStats = field(default_factory=CleaningStats)

    def judged(self, header: BatchHeader, batch: memoryview) -> Judged:
        """Decide what does not depend on the records of the batch, and open it if necessary."""
        horizon = delete_horizon(header)
        is_empty_transaction = False
        if header.is_control:
            is_empty_transaction = self.transactions.is_marker_discardable(header, batch)
            is_discarded = is_empty_transaction and is_expired(horizon, self.now)
        else:
            is_discarded = self.transactions.is_batch_discardable(header)
        keeps_empty = self._is_last_of_producer(header) or header.next_offset == self.pass_end
        opened = None
        if not (is_discarded or header.is_control) and header.record_count:
            opened = open_batch(header, batch, not is_expired(horizon, self.now))
        return Judged(
            header, batch, horizon, is_empty_transaction, is_discarded, keeps_empty, opened
        )

    def filtered(self, chunk: Sequence[Judged]) -> Iterator[Buffer]:
        """The batches to write in place of these."""
        opened = [one.opened for one in chunk if one.opened is not None]
        choices = iter(self.engine.choose(opened))
        for one in chunk:
            self.stats.bytes_read += one.header.size
            written = self._written(one, next(choices) if one.opened is not None else None)
            if written is not None:
                self.stats.bytes_written += len(written)
                yield written

    def _written(self, one: Judged, choice: RecordChoice | None) -> Buffer | None:
        header, stats = one.header, self.stats
        if one.is_discarded and not one.keeps_empty:
            return None
        stats.records_read += header.record_count
        if choice is not None:
            stats.invalid_records += choice.invalid
        is_kept_marker = header.is_control and not one.is_discarded
        kept = header.record_count if is_kept_marker else 0 if choice is None else choice.count
        if not kept:
            return without_records(header) if one.keeps_empty else None
        stats.records_kept += kept
        horizon = one.horizon
        has_tombstone = choice is not None and choice.has_tombstone
        if horizon is None and (one.is_empty_transaction or has_tombstone):
            horizon = self.now + self.delete_retention_ms
        elif kept == header.record_count:
            return one.batch
        if choice is None:
            body = unpacked(header, one.batch)
            return with_records(header, body, record_spans(body, kept), horizon)
        return with_records(header, *choice.spans(), horizon)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self.last_records.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_data_offset is not None:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.epoch


def open_batch(header: BatchHeader, batch: memoryview, keeps_tombstones: bool = True) -> OpenBatch:
    count = header.record_count
    return OpenBatch(header.base_offset, count, unpacked(header, batch), keeps_tombstones)
