"""Decides which records of a batch stay, and returns the batch to write.

A record stays if no later record of the covered range has its key. A tombstone stays until the
delete horizon of its batch has passed (F78). A batch in which nothing changes is copied whole. A
batch without records stays if it holds the last sequence number of an active producer (F81), or if
it is the last batch of the pass.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.log.cleaner.offset_map import OffsetMap
from tidelog.log.cleaner.record_spans import RecordSpan, record_spans, unpacked
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


@dataclass(slots=True)
class BatchFilter:
    """The rules of one pass. Batches must be given in the order of the log."""

    map: OffsetMap
    transactions: CleanedTransactions
    last_records: Mapping[ProducerId, LastRecord]
    pass_end: Offset
    """The first offset that the pass does not clean."""
    now: Millis
    delete_retention_ms: Millis
    stats: CleaningStats = field(default_factory=CleaningStats)

    def filtered(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        """The bytes to write in place of a batch; None if the batch is removed."""
        stats = self.stats
        stats.bytes_read += header.size
        horizon = delete_horizon(header)
        is_empty_transaction, is_discarded = False, False
        if header.is_control:
            is_empty_transaction = self.transactions.is_marker_discardable(header, batch)
            is_discarded = is_empty_transaction and is_expired(horizon, self.now)
        else:
            is_discarded = self.transactions.is_batch_discardable(header)
        keeps_empty = self._is_last_of_producer(header) or header.next_offset == self.pass_end
        if is_discarded and not keeps_empty:
            return None
        body = b"" if is_discarded else unpacked(header, batch)
        spans = [] if is_discarded else record_spans(body, header.record_count)
        stats.records_read += header.record_count
        kept = spans if header.is_control else self._kept(header, spans, horizon)
        if not kept:
            return self._written(without_records(header), 0) if keeps_empty else None
        needs_horizon = is_empty_transaction or not all(span.has_value for span in kept)
        if needs_horizon and horizon is None:
            horizon = self.now + self.delete_retention_ms
        elif len(kept) == len(spans):
            return self._written(batch, len(kept))
        return self._written(with_records(header, body, kept, horizon), len(kept))

    def _kept(
        self, header: BatchHeader, spans: list[RecordSpan], horizon: Millis | None
    ) -> list[RecordSpan]:
        base, latest, last_offset_of = header.base_offset, self.map.latest_offset, self.map.get
        keeps_tombstones = not is_expired(horizon, self.now)
        kept = []
        for span in spans:
            _, delta, key, has_value, _, _, _ = span
            offset = base + delta
            if offset > latest:
                kept.append(span)
            elif key is None:
                self.stats.invalid_records += 1
            elif (has_value or keeps_tombstones) and offset >= last_offset_of(key):
                kept.append(span)
        return kept

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self.last_records.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_data_offset is not None:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.epoch

    def _written(self, batch: Buffer, records: int) -> Buffer:
        self.stats.bytes_written += len(batch)
        self.stats.records_kept += records
        return batch
