"""The work of the cleaner's jobs: builds the offset map, and copies the batches that stay.

Both work on chunks of batches, between which a job lets the node's thread run.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from tidelog.log.cleaner.filtering import BatchFilter, open_batch
from tidelog.log.cleaner.record_choice import OpenBatch, RecordEngine, new_engine
from tidelog.log.cleaner.transactions import CleanedTransactions
from tidelog.log.cleaner.writing import CleanedSegment
from tidelog.log.results import AbortedTxn
from tidelog.log.segments import scan
from tidelog.model.disk import File
from tidelog.model.ids import Offset
from tidelog.protocol.records.batch import BatchHeader


class SegmentSource(NamedTuple):
    """A segment as a job reads it."""

    file: File
    size: int
    base_offset: Offset
    end_offset: Offset
    aborted: tuple[AbortedTxn, ...]

    def batches(self) -> Iterator[tuple[BatchHeader, memoryview]]:
        """All batches; raises BrokenChainError at a damaged one."""
        for _, header, batch in scan.batches(self.file, 0, self.size, self.base_offset):
            yield header, batch


@dataclass(slots=True)
class PassMap:
    """The offset map of a pass, which its first job allocates."""

    slots: int
    load_percent: int
    is_large: bool
    engine: RecordEngine | None = None

    def allocated(self) -> RecordEngine:
        self.engine = new_engine(self.slots, self.load_percent, is_large=self.is_large)
        return self.engine


def build_map(
    map_: PassMap, sources: Sequence[SegmentSource], first_dirty: Offset, end: Offset
) -> Iterator[int]:
    """Add the keys of the dirty records; stops early when the map is full."""
    engine, transactions = map_.allocated(), CleanedTransactions()
    for source in sources:
        transactions.add_aborted(source.aborted)
        opened = (_opened(transactions, *one) for one in source.batches())
        for chunk in _chunks(opened, engine.chunk_bytes):
            keyed = [one.opened for one in chunk if one.opened is not None]
            added = engine.add(keyed, first_dirty)
            full_at = keyed[added].base_offset if added < len(keyed) else end
            covered = [one.header.last_offset for one in chunk if one.header.base_offset < full_at]
            if covered and covered[-1] >= first_dirty:
                engine.latest_offset = covered[-1]
            if added < len(keyed):
                return
            yield sum(one.header.size for one in chunk)
        # Later offsets of this segment were compacted away.
        engine.latest_offset = min(source.end_offset, end) - 1


def clean_group(
    batch_filter: BatchFilter, sources: Sequence[SegmentSource], new: CleanedSegment
) -> Iterator[int]:
    """Copy the batches that stay into the new segment, and sync it."""
    for source in sources:
        batch_filter.transactions.add_aborted(source.aborted)
        judged = (batch_filter.judged(*one) for one in source.batches())
        for chunk in _chunks(judged, batch_filter.engine.chunk_bytes):
            moved = sum(one.header.size for one in chunk)
            for written in batch_filter.filtered(chunk):
                new.add(written)
                moved += len(written)
            yield moved
    new.finish(batch_filter.transactions.take_kept())


class _Mapped(NamedTuple):
    header: BatchHeader
    opened: OpenBatch | None
    """None if the batch has no keys for the map."""


def _opened(transactions: CleanedTransactions, header: BatchHeader, batch: memoryview) -> _Mapped:
    """Open a batch, unless it has no records, control records or aborted records."""
    if header.is_control:
        transactions.is_marker_discardable(header, batch)
    elif not transactions.is_batch_discardable(header) and header.record_count:
        return _Mapped(header, open_batch(header, batch))
    return _Mapped(header, None)


class _Item(Protocol):
    @property
    def header(self) -> BatchHeader: ...

    @property
    def opened(self) -> OpenBatch | None: ...


Item = TypeVar("Item", bound=_Item)


def _chunks(items: Iterable[Item], limit: int) -> Iterator[list[Item]]:
    """Collect batches until their unpacked records have about `limit` bytes."""
    chunk: list[Item] = []
    size = 0
    for item in items:
        chunk.append(item)
        size += item.header.size if item.opened is None else len(item.opened.body)
        if size >= limit:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
