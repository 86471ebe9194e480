"""The lines of `dump-log` for the other files of a segment: indexes and producer snapshots.

This module reads the files without the log engine. A running broker may use the index, and the log
engine would truncate the preallocated zeros at its end.
"""

from collections.abc import Iterator
from struct import Struct

from tidelog.log.indexes.index import OffsetIndex, TimeIndex
from tidelog.log.producers.producer_snapshots import decode
from tidelog.model.ids import NO_OFFSET, Offset
from tidelog.model.user_error import UserError

_ABORTED = Struct(">hqqqq")


def _entries(content: bytes, entry: Struct) -> Iterator[tuple[int, int]]:
    """The complete entries, up to the zeros at the end of a preallocated file."""
    whole = len(content) - len(content) % entry.size
    for key, value in entry.iter_unpack(memoryview(content)[:whole]):
        if key == 0 and value == 0:
            return
        yield key, value


def offset_index_lines(content: bytes, base: Offset) -> Iterator[str]:
    for offset, position in _entries(content, OffsetIndex.ENTRY):
        yield f"offset: {base + offset} position: {position}"


def time_index_lines(content: bytes, base: Offset) -> Iterator[str]:
    for timestamp, offset in _entries(content, TimeIndex.ENTRY):
        yield f"timestamp: {timestamp} offset: {base + offset}"


def transaction_index_lines(content: bytes, base: Offset) -> Iterator[str]:
    whole = len(content) - len(content) % _ABORTED.size
    for version, producer, first, last, stable in _ABORTED.iter_unpack(content[:whole]):
        yield (
            f"version: {version} producerId: {producer} firstOffset: {first} "
            f"lastOffset: {last} lastStableOffset: {stable}"
        )


def producer_snapshot_lines(content: bytes, base: Offset) -> Iterator[str]:
    producers = decode(content)
    if producers is None:
        raise UserError("the producer snapshot is torn, or of another version.")
    for producer, entry in producers.items():
        first = entry.transaction_first_offset
        transaction = "OptionalLong.empty" if first == NO_OFFSET else f"OptionalLong[{first}]"
        line = (
            f"producerId: {producer} producerEpoch: {entry.epoch} "
            f"coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset: {transaction} "
            f"lastTimestamp: {entry.last_timestamp} "
        )
        if entry.batches:
            batch = entry.batches[0]
            line += (
                f"firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence} "
                f"lastOffset: {batch.last_offset} "
                f"offsetDelta: {batch.last_offset - batch.first_offset} "
                f"timestamp: {batch.timestamp}"
            )
        yield line
