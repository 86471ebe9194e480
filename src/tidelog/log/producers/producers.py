"""The state of idempotent and transactional producers in this log.

Invariant: the state follows from the batches below `end_offset`, except that idle producers expire.
The state is rebuilt after a truncation. Otherwise, the answer to a duplicate could name an offset
that no longer exists.
"""

from collections import deque
from typing import NamedTuple

from tidelog.log.producers.markers import EndTransactionMarker
from tidelog.log.results import AbortedTxn, AppendRefused, ProducerSequence
from tidelog.model.effects import ActiveProducer
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, NO_TIMESTAMP, Millis, Offset, ProducerId
from tidelog.protocol.records.batch import TRANSACTIONAL_MASK, BatchHeader

WINDOW = 5
"""The number of latest batches per producer that are kept to recognise duplicates.

A producer has at most this number of batches in flight.
"""

_MAX_SEQUENCE = (1 << 31) - 1
_NO_SEQUENCE = -1


class BatchSpan(NamedTuple):
    """One appended batch of a producer."""

    first_sequence: int
    last_sequence: int
    first_offset: Offset
    last_offset: Offset
    timestamp: Millis


class ProducerEntry:
    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "marker_offset",
        "transaction_first_offset",
        "verified_after",
    )

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_timestamp: Millis = NO_TIMESTAMP
        self.marker_offset: Offset = NO_OFFSET
        """The offset of the last marker; -1 if none was appended since the log was opened."""
        self.transaction_first_offset: Offset = NO_OFFSET
        self.verified_after: Offset = NO_OFFSET
        """The last marker when the coordinator confirmed the producer's next transaction."""
        self.batches: deque[BatchSpan] = deque(maxlen=WINDOW)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else _NO_SEQUENCE

    def enter_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class _Completed(NamedTuple):
    first_offset: Offset
    last_offset: Offset


class ProducerStates:
    """All producers with state in this log, and their open transactions."""

    __slots__ = ("_completed", "_ongoing", "end_offset", "entries")

    def __init__(self, end_offset: Offset = 0) -> None:
        self.end_offset = end_offset
        """The state covers the batches below this offset."""
        self.entries: dict[ProducerId, ProducerEntry] = {}
        self._ongoing: dict[Offset, ProducerId] = {}  # by first offset, in ascending order
        self._completed: list[_Completed] = []  # in the order of their markers

    # -- before an append

    def duplicate_of(self, header: BatchHeader) -> BatchSpan | None:
        """The appended batch that this batch repeats; None if this batch is new."""
        entry = self.entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            return None
        first, last = header.base_sequence, last_sequence(header)
        for span in entry.batches:
            if span.first_sequence == first and span.last_sequence == last:
                return span
        return None

    def refusal(self, header: BatchHeader, *, check_sequence: bool) -> AppendRefused | None:
        """The refusal if a batch has an old epoch, a wrong sequence number or the wrong transaction
        state; None if the batch is valid.
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            # A new or expired producer has no state, so any first sequence number is valid.
            return None
        if header.producer_epoch < entry.epoch:
            return AppendRefused(
                ErrorCode.invalid_producer_epoch,
                f"Epoch of producer {header.producer_id} is {header.producer_epoch}, "
                f"which is smaller than the last seen epoch {entry.epoch}",
            )
        if (
            header.attributes & TRANSACTIONAL_MASK
            and entry.transaction_first_offset == NO_OFFSET
            and entry.verified_after != entry.marker_offset
        ):
            # A marker has ended the transaction since the coordinator confirmed it (KIP-890).
            return AppendRefused(
                ErrorCode.invalid_txn_state, "Record was not part of an ongoing transaction"
            )
        if check_sequence and not _is_next(entry, header):
            return AppendRefused(
                ErrorCode.out_of_order_sequence_number,
                f"Out of order sequence number for producer {header.producer_id}: "
                f"{header.base_sequence} (incoming), {entry.last_sequence} (last appended)",
            )
        if entry.transaction_first_offset != NO_OFFSET and not header.is_transactional:
            return AppendRefused(
                ErrorCode.invalid_txn_state,
                f"Expected transactional write from producer {header.producer_id}",
            )
        return None

    def marker_refusal(
        self, header: BatchHeader, marker: EndTransactionMarker, *, raises_epoch: bool = False
    ) -> AppendRefused | None:
        """The refusal if a marker has an old producer or coordinator epoch; None if it is valid.

        A marker that `raises_epoch` (transaction version 2) has a higher epoch than the records of
        its transaction. If it has the epoch of the open transaction, it belongs to the transaction
        before, and must not end this one (KIP-1228, F46). If no transaction is open, the marker is
        repeated, and it may be written again.
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return None
        is_open = entry.transaction_first_offset != NO_OFFSET
        lowest = entry.epoch + 1 if raises_epoch and is_open else entry.epoch
        if header.producer_epoch < lowest:
            return AppendRefused(
                ErrorCode.invalid_producer_epoch,
                f"Epoch of producer {header.producer_id} is {header.producer_epoch}, "
                f"but the last seen epoch is {entry.epoch}",
            )
        if marker.coordinator_epoch < entry.coordinator_epoch:
            return AppendRefused(
                ErrorCode.transaction_coordinator_fenced,
                f"Coordinator epoch {marker.coordinator_epoch} for producer {header.producer_id} "
                f"is older than {entry.coordinator_epoch}",
            )
        return None

    # -- after an append

    def appended(self, header: BatchHeader, base_offset: Offset, timestamp: Millis) -> None:
        """Update the state after a batch of this producer was appended."""
        entry = self.entries.get(header.producer_id)
        if entry is None:
            entry = self.entries[header.producer_id] = ProducerEntry(header.producer_epoch)
        elif entry.epoch != header.producer_epoch:
            entry.enter_epoch(header.producer_epoch)
        entry.batches.append(span_of(header, base_offset, timestamp))
        entry.last_timestamp = timestamp
        if header.attributes & TRANSACTIONAL_MASK and entry.transaction_first_offset == NO_OFFSET:
            entry.transaction_first_offset = base_offset
            self._ongoing[base_offset] = header.producer_id

    def ended(
        self, header: BatchHeader, marker: EndTransactionMarker, offset: Offset
    ) -> AbortedTxn | None:
        """Update the state after a marker was appended; returns the aborted transaction, if any."""
        entry = self.entries.get(header.producer_id)
        if entry is None:
            entry = self.entries[header.producer_id] = ProducerEntry(header.producer_epoch)
        entry.enter_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.marker_offset = offset
        entry.last_timestamp = header.max_timestamp
        first = entry.transaction_first_offset
        if first == NO_OFFSET:
            return None
        entry.transaction_first_offset = NO_OFFSET
        self._ongoing.pop(first, None)
        self._completed.append(_Completed(first, offset))
        if not marker.is_abort:
            return None
        stable = next(iter(self._ongoing), offset + 1)
        return AbortedTxn(header.producer_id, first, offset, stable)

    # -- queries

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """The first offset of the earliest transaction that is open or has no committed marker.

        If every transaction has a committed marker, the result is the high watermark.
        """
        if not self._ongoing and not self._completed:
            return high_watermark
        self.forget_completed(high_watermark)
        stable = min((c.first_offset for c in self._completed), default=high_watermark)
        return min(stable, next(iter(self._ongoing), high_watermark), high_watermark)

    def has_open_transaction(self, producer_id: ProducerId, epoch: int) -> bool:
        """Whether this log holds records of the producer's open transaction in this epoch."""
        entry = self.entries.get(producer_id)
        return (
            entry is not None
            and entry.epoch == epoch
            and entry.transaction_first_offset != NO_OFFSET
        )

    def marker_offset(self, producer_id: ProducerId) -> Offset:
        """The offset of the producer's last marker, or -1."""
        entry = self.entries.get(producer_id)
        return NO_OFFSET if entry is None else entry.marker_offset

    def verified(self, producer_id: ProducerId, marker_offset: Offset) -> None:
        """The coordinator has confirmed a transaction that begins after this marker."""
        entry = self.entries.get(producer_id)
        if entry is not None:
            entry.verified_after = marker_offset

    def active(self) -> tuple[ActiveProducer, ...]:
        """All producers that have written to this log and have not expired."""
        return tuple(
            ActiveProducer(
                id,
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
            for id, entry in self.entries.items()
        )

    def sequences_from(self, offset: Offset) -> list[ProducerSequence]:
        """For each producer, its first known batch that reaches `offset` or lies past it."""
        found = []
        for producer, entry in self.entries.items():
            for span in entry.batches:
                if span.last_offset >= offset and span.first_sequence != _NO_SEQUENCE:
                    found.append(ProducerSequence(producer, entry.epoch, span.first_sequence))
                    break
        return found

    # -- restoring and expiring

    def restore(self, entries: dict[ProducerId, ProducerEntry], end_offset: Offset) -> None:
        """Start from a snapshot taken at `end_offset`."""
        self.entries = entries
        self.end_offset = end_offset
        self._completed = []
        open_transactions = (
            (entry.transaction_first_offset, producer)
            for producer, entry in entries.items()
            if entry.transaction_first_offset != NO_OFFSET
        )
        self._ongoing = dict(sorted(open_transactions))

    def forget_completed(self, high_watermark: Offset) -> None:
        """Drop completed transactions whose marker lies below the high watermark."""
        if self._completed:
            self._completed = [c for c in self._completed if c.last_offset >= high_watermark]

    def expire(self, now: Millis, expiration_ms: Millis) -> None:
        """Drop producers that have been idle for too long and have no open transaction."""
        idle = [
            producer
            for producer, entry in self.entries.items()
            if entry.transaction_first_offset == NO_OFFSET
            and now - entry.last_timestamp >= expiration_ms
        ]
        for producer in idle:
            del self.entries[producer]


def span_of(header: BatchHeader, base_offset: Offset, timestamp: Millis) -> BatchSpan:
    return BatchSpan(
        header.base_sequence,
        last_sequence(header),
        base_offset,
        base_offset + header.last_offset_delta,
        timestamp,
    )


def last_sequence(header: BatchHeader) -> int:
    """The sequence number of the batch's last record; it wraps from 2^31 - 1 to 0."""
    if header.base_sequence == _NO_SEQUENCE:
        return _NO_SEQUENCE
    return (header.base_sequence + header.last_offset_delta) & _MAX_SEQUENCE


def _is_next(entry: ProducerEntry, header: BatchHeader) -> bool:
    if header.producer_epoch != entry.epoch:
        return header.base_sequence == 0
    if entry.last_sequence == _MAX_SEQUENCE:
        return header.base_sequence == 0
    return header.base_sequence == entry.last_sequence + 1
