"""Compares two sets of records of any size by digests of their offset ranges.

Each range of 64 Ki offsets is reduced to three numbers before the shuffle. Only the records of
ranges whose numbers differ are compared. A log of a hundred million records has 1,526 ranges. If
the log is damaged, the additional cost is proportional to the number of damaged ranges.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

RANGE = 65_536
PARTITION = ("topic", "partition")
RANGES = (*PARTITION, "range")
DIGEST = ("records", "mixed", "summed")

_LOW_BITS = 0xFFFF_FFFF


class Stretch(NamedTuple):
    """Consecutive ranges: the offsets of a partition in [first, end)."""

    topic: str
    partition: int
    first: int
    end: int


def stretches(ranges: Iterable[Any]) -> list[Stretch]:
    """Merge consecutive ranges into stretches. The range of unknown offsets is left out."""
    found: list[Stretch] = []
    for topic, partition, first in sorted(tuple(row) for row in ranges if row["range"] is not None):
        last = found[-1] if found else None
        if last is not None and (topic, partition, first) == (last.topic, last.partition, last.end):
            found[-1] = last._replace(end=first + RANGE)
        else:
            found.append(Stretch(topic, partition, first, first + RANGE))
    return found


def lies_in(chosen: Sequence[Stretch]) -> Column:
    """Whether a record lies in a stretch. A source can use this condition to skip files."""
    inside = [
        (f.col("topic") == one.topic)
        & (f.col("partition") == one.partition)
        & (f.col("offset") >= one.first)
        & (f.col("offset") < one.end)
        for one in chosen
    ]
    return reduce(or_, inside, f.lit(False))


def range_of(offset: Column) -> Column:
    """The first offset of the range that contains an offset."""
    return offset - offset % RANGE


def digests(records: DataFrame, *by: str) -> DataFrame:
    """One row per range: the number of records, and two digests that do not depend on their order.

    Records with an unknown offset form a range of their own. This range never equals another range.
    """
    mixed = f.xxhash64("offset", "checksum")
    return (
        records.select(
            *by, *PARTITION, range_of(f.col("offset")).alias("range"), "offset", mixed.alias("h")
        )
        .groupBy(*by, *RANGES)
        .agg(
            f.count("*").alias("records"),
            f.bit_xor("h").alias("mixed"),
            # Sum only the low half of each hash, because a sum of whole hashes would overflow.
            f.sum(f.col("h").bitwiseAND(f.lit(_LOW_BITS))).alias("summed"),
            f.min("offset").alias("first_offset"),
            f.max("offset").alias("last_offset"),
        )
    )


def ranges_unlike(acknowledged: DataFrame, readable: DataFrame) -> DataFrame:
    """The ranges in which no replica holds exactly the acknowledged records."""
    mine = acknowledged.select(*RANGES, *DIGEST).alias("mine")
    same = readable.select(*RANGES, *DIGEST).dropDuplicates()
    agreeing = mine.join(same, [*RANGES, *DIGEST], "left_semi").select(*RANGES)
    everywhere = mine.select(*RANGES).union(readable.select(*RANGES)).dropDuplicates()
    return everywhere.join(agreeing, list(RANGES), "left_anti")


def ranges_that_replicas_hold_differently(readable: DataFrame) -> DataFrame:
    """The ranges in which the replicas of a partition hold different records."""
    replicas = readable.groupBy(*PARTITION).agg(f.count_distinct("replica").alias("replicas"))
    return (
        readable.groupBy(*RANGES)
        .agg(f.count("*").alias("holders"), f.count_distinct(f.struct(*DIGEST)).alias("kinds"))
        .join(f.broadcast(replicas), list(PARTITION))
        .where("kinds > 1 OR holders < replicas")
        .select(*RANGES)
    )


def within(records: DataFrame, ranges: DataFrame) -> DataFrame:
    """The records in these ranges. The ranges must be few, because all of them are broadcast."""
    inside = records.withColumn("range", range_of(f.col("offset")))
    return inside.join(f.broadcast(ranges), list(RANGES), "left_semi").drop("range")
