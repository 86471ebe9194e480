"""Rebuilds the producer state, including open transactions, from the batches."""

from collections.abc import Iterable
from contextlib import suppress
from itertools import zip_longest

from tidelog.log.indexes.index_repair import StillIndexing
from tidelog.log.producers.markers import read_marker
from tidelog.log.producers.producer_snapshots import SnapshotFiles
from tidelog.log.producers.producers import BatchSpan, ProducerStates, span_of
from tidelog.log.recovery import next_sound_batch
from tidelog.log.results import AbortedTxn
from tidelog.log.segments.segment import Segment
from tidelog.model.ids import Millis, Offset, ProducerId
from tidelog.protocol.records.batch import BatchHeader

_REFILL_ENTRIES = 32
"""How many index entries to go back when looking for batches that a snapshot lacks. An index entry
covers one large batch or several small ones.
"""


def apply(
    producers: ProducerStates, header: BatchHeader, batch: memoryview | None
) -> AbortedTxn | None:
    """Apply a batch with final offsets; returns the transaction that it aborts, if any."""
    aborted = None
    if header.producer_id >= 0:
        if header.is_control:
            assert batch is not None
            marker = read_marker(batch)
            if marker is not None:
                aborted = producers.ended(header, marker, header.last_offset)
        else:
            producers.appended(header, header.base_offset, header.max_timestamp)
    producers.end_offset = header.next_offset
    return aborted


def rebuild_producers(
    segments: Iterable[Segment],
    snapshots: SnapshotFiles,
    log_start: Offset,
    end: Offset,
    expired_before: Millis,
) -> ProducerStates:
    """The state at `end`: the newest snapshot that fits this log, plus the batches after it.

    A snapshot may lack producers whose last batch is older than `expired_before`.
    """
    wanted = [segment for segment in segments if segment.base_offset < end]
    producers = ProducerStates(log_start)
    while (snapshot := snapshots.newest(log_start, end)) is not None:
        producers.restore(snapshot[1], snapshot[0])
        if _refill_windows(wanted, producers, expired_before):
            break
        snapshots.remove(snapshot[0])
        producers = ProducerStates(log_start)
    for segment, following in zip_longest(wanted, wanted[1:]):
        if (following.base_offset if following else end) > producers.end_offset:
            _replay(segment, producers, end)
    producers.end_offset = end
    return producers


def _refill_windows(
    segments: list[Segment], producers: ProducerStates, expired_before: Millis
) -> bool:
    """Add each producer's earlier batches, which a snapshot lacks but clients may repeat (F44).

    Returns False if the snapshot does not fit the last batches before its offset. In that case, the
    snapshot belongs to another offset or partition, although its checksum is right (F54).
    """
    end, entries = producers.end_offset, producers.entries
    if any(one.batches and one.batches[-1].last_offset >= end for one in entries.values()):
        return False
    for producer, (epoch, found) in _last_batches(segments, end).items():
        entry = entries.get(producer)
        if entry is None:
            if found[-1].timestamp >= expired_before:
                return False
            continue
        if epoch > entry.epoch:
            return False
        if epoch == entry.epoch and entry.batches:
            if entry.batches[-1].last_offset < found[-1].last_offset:
                return False
            if entry.batches[-1].last_offset == found[-1].last_offset:
                entry.batches.clear()
                entry.batches.extend(found)
    return True


def _last_batches(
    segments: list[Segment], end: Offset
) -> dict[ProducerId, tuple[int, list[BatchSpan]]]:
    """For each producer, its last epoch before `end`, and the batches of that epoch.

    Only the end of the last two segments is searched, so earlier batches may be missing.
    """
    spans: dict[ProducerId, tuple[int, list[BatchSpan]]] = {}
    for segment in [one for one in segments if one.base_offset < end][-2:]:
        with suppress(StillIndexing):
            for _, header in next_sound_batch.headers(segment, _some_way_before(segment, end), end):
                if header.producer_id < 0 or header.is_control:
                    continue
                epoch, found = spans.get(header.producer_id, (header.producer_epoch, []))
                if header.producer_epoch != epoch:
                    found = []
                found.append(span_of(header, header.base_offset, header.max_timestamp))
                spans[header.producer_id] = header.producer_epoch, found
    return spans


def _some_way_before(segment: Segment, end: Offset) -> int:
    """A batch boundary `_REFILL_ENTRIES` index entries before the offset."""
    before = segment.position_before(end)
    some = segment.offset_index.entries.some_before(before, _REFILL_ENTRIES)
    if some is None:
        return 0
    header = segment.header_at(some[1])
    is_sound = header is not None and header.last_offset == segment.base_offset + some[0]
    return some[1] if is_sound else before


def _replay(segment: Segment, producers: ProducerStates, end: Offset) -> None:
    """Apply the batches of one segment. Broken batches are skipped."""
    start = producers.end_offset
    for position, header in next_sound_batch.headers(segment, segment.position_before(start), end):
        if header.last_offset >= start:
            needs_body = header.is_control and header.producer_id >= 0
            apply(producers, header, segment.read(position, header.size) if needs_body else None)
