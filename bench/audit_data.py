"""Write segments and a ledger of any size for the audit, with planted faults.

Every record has a unique value. For offset o in partition p, it is p * 10**10 + o, in twelve digits
and padded to 96 bytes. Spark computes the ledger from the same numbers. A batch without a fault is
made from a template, by filling in the digits and the base offset.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from crc32c import crc32c
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from tidelog.protocol.records.records import Record, build_batch
from tidelog_pipelines.transformations.checksum import checksum

TOPIC = "audited"
PARTITIONS = 6
BATCH = 1000
"""The number of records in a batch."""
SEGMENT_BATCHES = 5000
PADDING = 84
DIGITS = 12
CREATED, ACKED = 1_700_000_000_000, 1_700_000_001_000

LOST, DUPLICATED, REORDERED, CORRUPTED = 7, 5, 3, 2
_CRC, _CRC_START = 17, 21


class Faults(NamedTuple):
    """The planted faults, each given by its partition and offset."""

    lost: frozenset[tuple[int, int]]
    duplicated: frozenset[tuple[int, int]]
    reordered: tuple[tuple[int, int], ...]
    """Offsets of one partition, each of which holds the record that belongs at the next offset."""
    corrupted: frozenset[tuple[int, int]]


NO_FAULTS = Faults(frozenset(), frozenset(), (), frozenset())


def plan(rows: int, seed: int = 7) -> Faults:
    """Choose the faults of each kind, but not among the first and last records of a partition."""
    dice = random.Random(seed)
    each = rows // PARTITIONS
    taken = LOST + DUPLICATED + CORRUPTED
    places = [(dice.randrange(PARTITIONS), one) for one in dice.sample(range(10, each - 10), taken)]
    free = next(n for n in range(each // 2, each) if all(abs(n - at) > 5 for _, at in places))
    return Faults(
        frozenset(places[:LOST]),
        frozenset(places[LOST : LOST + DUPLICATED]),
        tuple((0, free + step) for step in range(REORDERED)),
        frozenset(places[LOST + DUPLICATED :]),
    )


def number(partition: int, offset: int) -> int:
    return partition * 10**10 + offset


def value(content: int) -> bytes:
    return b"%0*d" % (DIGITS, content) + b"x" * PADDING


def write_segments(directory: Path, rows: int, faults: Faults = NO_FAULTS) -> None:
    """Write one replica's log: rows // PARTITIONS records per partition, and the duplicates."""
    for partition in range(PARTITIONS):
        home = directory / f"{TOPIC}-{partition}"
        home.mkdir(parents=True)
        each = rows // PARTITIONS
        for start in range(0, each, SEGMENT_BATCHES * BATCH):
            end = min(start + SEGMENT_BATCHES * BATCH, each)
            with (home / f"{start:020}.log").open("wb") as segment:
                for chunk in _batches(partition, start, end, faults):
                    segment.write(chunk)
                if end == each:
                    segment.write(_copies(partition, each, faults))


def _batches(partition: int, start: int, end: int, faults: Faults) -> Iterator[bytes]:
    """The batches that hold the offsets from `start` up to `end`, without `end`.

    A batch with a fault is built record by record. The other batches are made from the template.
    """
    marked = {
        offset // BATCH
        for one, offset in (*faults.lost, *faults.reordered, *faults.corrupted)
        if one == partition
    }
    template = _Template()
    for base in range(start, end, BATCH):
        count = min(BATCH, end - base)
        if count == BATCH and base // BATCH not in marked:
            yield template.fill(partition, base)
        else:
            yield _one_by_one(partition, base, count, faults)


class _Template:
    """A batch into which the values and the base offset are written later."""

    def __init__(self) -> None:
        records = [Record(None, value(0), CREATED, offset=n) for n in range(BATCH)]
        raw = build_batch(records)
        self._raw = np.frombuffer(raw, np.uint8).copy()
        at = [raw.index(value(0), 0)]
        while len(at) < BATCH:
            at.append(raw.index(value(0), at[-1] + DIGITS + PADDING))
        self._digits = np.array(at)[:, None] + np.arange(DIGITS)[None, :]
        self._powers = 10 ** np.arange(DIGITS - 1, -1, -1, dtype=np.int64)

    def fill(self, partition: int, base: int) -> bytes:
        numbers = number(partition, base) + np.arange(BATCH, dtype=np.int64)
        self._raw[self._digits] = numbers[:, None] // self._powers[None, :] % 10 + ord("0")
        raw = bytearray(self._raw.tobytes())
        raw[:8] = base.to_bytes(8, "big")
        raw[_CRC : _CRC + 4] = crc32c(memoryview(raw)[_CRC_START:]).to_bytes(4, "big")
        return bytes(raw)


def _one_by_one(partition: int, base: int, count: int, faults: Faults) -> bytes:
    moved = [offset for one, offset in faults.reordered if one == partition]
    records = []
    for offset in range(base, base + count):
        place, content = (partition, offset), value(number(partition, offset))
        if place in faults.lost:
            continue
        if offset in moved:
            other = moved[(moved.index(offset) + 1) % len(moved)]
            content = value(number(partition, other))
        if place in faults.corrupted:
            content = content[:-1] + b"?"
        records.append(Record(None, content, CREATED, offset=offset))
    return build_batch(records, base, last_offset_delta=count - 1)


def _copies(partition: int, end: int, faults: Faults) -> bytes:
    doubled = sorted(offset for one, offset in faults.duplicated if one == partition)
    records = [
        Record(None, value(number(partition, offset)), CREATED, offset=end + turn)
        for turn, offset in enumerate(doubled)
    ]
    return build_batch(records, end) if records else b""


def write_ledger(spark: SparkSession, path: str, rows: int) -> None:
    """Write the ledger, in which every record is acknowledged once, at its own offset."""
    each = rows // PARTITIONS
    digits = f.format_string(f"%0{DIGITS}d", f.col("partition") * 10**10 + f.col("offset"))
    content = f.concat(digits, f.lit("x" * PADDING)).cast("binary")
    no_key = f.lit(None).cast("binary")
    spark.range(each * PARTITIONS).select(
        f.lit(TOPIC).alias("topic"),
        f.floor(f.col("id") / each).cast("int").alias("partition"),
        (f.col("id") % each).alias("offset"),
    ).select(
        "topic",
        "partition",
        "offset",
        no_key.alias("key"),
        checksum(no_key, content).alias("checksum"),
        f.lit(ACKED).alias("acked_at"),
    ).write.mode("overwrite").parquet(path)
