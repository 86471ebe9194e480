"""Chooses the records that stay for all records of a chunk at once, with numpy."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidelog.log.cleaner.record_choice import OpenBatch, PlainChoice, RecordChoice
from tidelog.log.cleaner.record_spans import RecordSpan, record_spans
from tidelog.log.cleaner.vectors.key_hashes import PADDING, Positions, key_hashes
from tidelog.log.cleaner.vectors.record_table import NotVectorizable, RecordTable, record_table
from tidelog.log.cleaner.vectors.vector_map import VectorMap
from tidelog.model.disk import Buffer
from tidelog.model.ids import NO_OFFSET, Offset

VECTOR_CHUNK_BYTES = 256 * 1024
"""The size of a chunk. Smaller chunks have fewer records per numpy call, and larger ones keep the
node's thread waiting for longer."""


class VectorChoice:
    __slots__ = ("_rows", "_table", "count", "has_tombstone", "invalid")

    def __init__(
        self, table: RecordTable, rows: Positions, count: int, invalid: int, *, has_tombstone: bool
    ) -> None:
        self._table = table
        self._rows = rows
        self.count = count
        self.has_tombstone = has_tombstone
        self.invalid = invalid

    def spans(self) -> tuple[Buffer, Sequence[RecordSpan]]:
        table, rows = self._table, self._rows
        fields = (table.timestamp_delta, table.offset_delta)
        positions = (table.start, table.attributes, table.rest, table.end)
        columns = [one[rows].tolist() for one in (*fields, *positions)]
        kept = [
            RecordSpan(timestamp, delta, None, True, start, attributes, rest, end)
            for timestamp, delta, start, attributes, rest, end in zip(*columns, strict=True)
        ]
        return table.data, kept


class VectorEngine:
    chunk_bytes = VECTOR_CHUNK_BYTES

    def __init__(self, slots: int, load_percent: int) -> None:
        self._map = VectorMap(slots, load_percent)
        self.latest_offset: Offset = NO_OFFSET

    def add(self, batches: Sequence[OpenBatch], first_dirty: Offset) -> int:
        if not batches:
            return 0
        try:
            table = record_table(batches)
        except NotVectorizable:
            return self._add_one_by_one(batches, first_dirty)
        rows = np.flatnonzero((table.key_size >= 0) & (table.offset >= first_dirty))
        first, second = key_hashes(table.data, table.key[rows], table.key_size[rows])
        if not self._map.has_space_for(first, second):
            return self._add_one_by_one(batches, first_dirty)
        self._map.put(first, second, table.offset[rows])
        return len(batches)

    def _add_one_by_one(self, batches: Sequence[OpenBatch], first_dirty: Offset) -> int:
        """Add each record on its own. Raises UnreadableRecords if a record is invalid."""
        for number, batch in enumerate(batches):
            for span in record_spans(batch.body, batch.record_count):
                offset = batch.base_offset + span.offset_delta
                if span.key is None or offset < first_dirty:
                    continue
                first, second = key_hashes(*_alone(span.key))
                if not self._map.has_space_for(first, second):
                    return number
                self._map.put(first, second, np.array([offset], np.int64))
        return len(batches)

    def choose(self, batches: Sequence[OpenBatch]) -> Sequence[RecordChoice]:
        if not batches:
            return ()
        try:
            table = record_table(batches)
        except NotVectorizable:
            return [self._chosen_one_by_one(batch) for batch in batches]
        counts = [batch.record_count for batch in batches]
        stays = self._stays(table, np.repeat([one.keeps_tombstones for one in batches], counts))
        firsts = table.first_rows
        kept = np.add.reduceat(stays, firsts, dtype=np.int64).tolist()
        tombstones = np.logical_or.reduceat(stays & ~table.has_value, firsts).tolist()
        is_invalid = (table.key_size < 0) & (table.offset <= self.latest_offset)
        invalid = np.add.reduceat(is_invalid, firsts, dtype=np.int64).tolist()
        rows = np.flatnonzero(stays)
        ends = np.cumsum(kept).tolist()
        return [
            VectorChoice(table, rows[end - count : end], count, wrong, has_tombstone=has_tombstone)
            for count, end, wrong, has_tombstone in zip(
                kept, ends, invalid, tombstones, strict=True
            )
        ]

    def _stays(self, table: RecordTable, keeps_tombstones: NDArray[np.bool_]) -> NDArray[np.bool_]:
        has_key = table.key_size >= 0
        stays: NDArray[np.bool_] = table.offset > self.latest_offset
        rows = np.flatnonzero(has_key & (table.has_value | keeps_tombstones) & ~stays)
        first, second = key_hashes(table.data, table.key[rows], table.key_size[rows])
        stays[rows] = table.offset[rows] >= self._map.last_offsets(first, second)
        return stays

    def _chosen_one_by_one(self, batch: OpenBatch) -> PlainChoice:
        body, kept, invalid = batch.body, [], 0
        for span in record_spans(body, batch.record_count):
            offset = batch.base_offset + span.offset_delta
            if offset > self.latest_offset:
                kept.append(span)
            elif span.key is None:
                invalid += 1
            elif span.has_value or batch.keeps_tombstones:
                [last] = self._map.last_offsets(*key_hashes(*_alone(span.key))).tolist()
                if offset >= last:
                    kept.append(span)
        return PlainChoice(body, kept, invalid)


def _alone(key: bytes) -> tuple[bytes, Positions, Positions]:
    """A key as a buffer that holds nothing else."""
    return key + bytes(PADDING), np.array([0], np.int64), np.array([len(key)], np.int64)
