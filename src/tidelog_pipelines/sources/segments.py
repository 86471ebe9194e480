"""`format("segments")`: the records of a topic on the disks of its replicas.

Spark's executors read the files in parallel, without a broker. A row is a record or an unreadable
batch. For an unreadable batch, `error` is the reason, and offset..last_offset are the offsets that
the batch claims to hold. `load(path)` reads the log.dirs of one broker, separated by commas.
Options:

    topic      the topic; all topics, if left out
    replicas   in place of a path, the log.dirs of several brokers, as JSON by the broker's id:
               {"1": "/data/1", "2": "/data/2a,/data/2b"}
    values     "false" leaves out key and value, but keeps their checksum
    partBytes  how many bytes of a segment one task reads (64 MiB)
    stretches  JSON: {"0": [[0, 65536]]}, offset ranges by partition; batches without any of these
               offsets are left out
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import md5
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tidelog_pipelines.sources.record_columns import Batch, Columns, decode
from tidelog_pipelines.sources.segment_files import (
    Damage,
    Part,
    broker_of,
    find_parts,
    read_batches,
)

FORMAT = "segments"
PART_BYTES = 64 * 1024 * 1024
ROWS_AT_ONCE = 32 * 1024
BYTES_AT_ONCE = 16 * 1024 * 1024
CHECKSUM_DIGITS = 16

Stretches = dict[int, list[tuple[int, int]]]
"""The offset ranges to read, by partition. Each range is [first, end)."""

_PLACE = "replica INT, topic STRING, partition INT"
_RECORD = "offset BIGINT, last_offset BIGINT, timestamp_ms BIGINT, leader_epoch INT"
_ORIGIN = "segment BIGINT, position BIGINT, error STRING"


class _Replicated(InputPartition):
    """A part of a segment, which one Spark task reads."""

    def __init__(self, part: Part) -> None:
        super().__init__(tuple(part))


class SegmentsSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        content = "key BINARY, value BINARY, " if _wants_values(self.options) else ""
        return f"{_PLACE}, {_RECORD}, {content}checksum STRING, {_ORIGIN}"

    def reader(self, schema: StructType) -> "SegmentsReader":
        return SegmentsReader(dict(self.options), _wants_values(self.options))


class SegmentsReader(DataSourceReader):
    def __init__(self, options: dict[str, str], wants_values: bool) -> None:
        self._wants_values = wants_values
        self._topic = options.get("topic")
        self._replicas = _replicas(options)
        self._part_bytes = int(options.get("partbytes", options.get("partBytes", PART_BYTES)))
        chosen = json.loads(options.get("stretches", "null"))
        self._stretches: Stretches | None = None
        if chosen is not None:
            self._stretches = {int(partition): pairs for partition, pairs in chosen.items()}

    def partitions(self) -> Sequence[InputPartition]:
        parts = find_parts(self._replicas, self._topic, self._part_bytes)
        if self._stretches is not None:
            parts = [part for part in parts if part.partition in self._stretches]
        return [_Replicated(part) for part in parts]

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        if partition is None:  # Spark passes None if `partitions` is empty
            return
        part = Part(*partition.value)
        chosen = None if self._stretches is None else self._stretches[part.partition]
        yield from record_batches(part, self._wants_values, chosen)


def _replicas(options: Mapping[str, str]) -> dict[int, str]:
    """The data directories by broker."""
    path, several = options.get("path"), options.get("replicas")
    if (path is None) == (several is None):
        raise ValueError("give either the option replicas or a path: load('/data/1')")
    if path is not None:
        return {broker_of(path): path}
    try:
        found = {int(id): paths for id, paths in json.loads(several or "").items()}
    except (ValueError, AttributeError):
        raise ValueError(
            f'the option replicas is JSON such as {{"1": "/data/1"}}, not {several!r}'
        ) from None
    return found


def _wants_values(options: Any) -> bool:
    return str(options.get("values", "true")).lower() == "true"


# -- From batches to Arrow -------------------------------------------------------------------------


class _Rows(NamedTuple):
    """Makes the rows of one part."""

    part: Part
    wants_values: bool

    def of_records(self, batches: Sequence[Batch], columns: Columns) -> pa.RecordBatch:
        epochs = np.array([batch.header.leader_epoch for batch in batches], np.int32)
        positions = np.array([batch.position for batch in batches], np.int64)
        count = len(columns.offset)
        return self._arrow(
            count,
            offset=pa.array(columns.offset),
            last_offset=pa.array(columns.offset),
            timestamp_ms=pa.array(columns.timestamp_ms),
            leader_epoch=pa.array(epochs[columns.batch]),
            keys=columns.keys,
            values=columns.values,
            checksum=pa.array(checksums(columns.keys, columns.values), pa.string()),
            position=pa.array(positions[columns.batch]),
            error=pa.nulls(count, pa.string()),
        )

    def of_damages(self, damages: Sequence[Damage]) -> pa.RecordBatch:
        count = len(damages)
        return self._arrow(
            count,
            offset=pa.array([one.base_offset for one in damages], pa.int64()),
            last_offset=pa.array([one.last_offset for one in damages], pa.int64()),
            timestamp_ms=pa.nulls(count, pa.int64()),
            leader_epoch=pa.nulls(count, pa.int32()),
            keys=[None] * count,
            values=[None] * count,
            checksum=pa.nulls(count, pa.string()),
            position=pa.array([one.position for one in damages], pa.int64()),
            error=pa.array([one.reason for one in damages], pa.string()),
        )

    def _arrow(
        self,
        count: int,
        *,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        **arrays: Any,
    ) -> pa.RecordBatch:
        part = self.part
        fixed = {
            "replica": pa.scalar(part.replica, pa.int32()),
            "topic": pa.scalar(part.topic, pa.string()),
            "partition": pa.scalar(part.partition, pa.int32()),
            "segment": pa.scalar(part.base_offset, pa.int64()),
        }
        if self.wants_values:
            arrays |= {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
        arrays |= {name: pa.repeat(scalar, count) for name, scalar in fixed.items()}
        content = ["key", "value"] if self.wants_values else []
        names = [
            *("replica", "topic", "partition"),
            *("offset", "last_offset", "timestamp_ms", "leader_epoch"),
            *content,
            *("checksum", "segment", "position", "error"),
        ]
        return pa.RecordBatch.from_arrays([arrays[name] for name in names], names)


def record_batches(
    part: Part, wants_values: bool, stretches: Sequence[tuple[int, int]] | None = None
) -> Iterator[pa.RecordBatch]:
    """The records and unreadable batches of a part, as Arrow batches of many thousand rows."""
    rows = _Rows(part, wants_values)
    batches: list[Batch] = []
    damages: list[Damage] = []
    records = size = 0
    for found in read_batches(part, stretches):
        if isinstance(found, Damage):
            damages.append(found)
            continue
        batches.append(found)
        records += found.header.record_count
        size += len(found.records)
        if records >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield _decoded(rows, batches, damages)
            batches, records, size = [], 0, 0
    if batches:
        yield _decoded(rows, batches, damages)
    if damages:
        yield rows.of_damages(damages)


def _decoded(rows: _Rows, batches: list[Batch], damages: list[Damage]) -> pa.RecordBatch:
    columns, broken = decode(batches)
    for number, reason in broken.items():
        header, position, _ = batches[number]
        damages.append(Damage(header.base_offset, header.last_offset, position, reason))
    return rows.of_records(batches, columns)


def checksums(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> list[str]:
    """The checksum of each record, as in a ledger and as computed by `transformations.checksum`."""
    return [
        md5(
            b"%d:%b%d:%b" % (_size(key), key or b"", _size(value), value or b""),
            usedforsecurity=False,
        ).hexdigest()[:CHECKSUM_DIGITS]
        for key, value in zip(keys, values, strict=True)
    ]


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)
