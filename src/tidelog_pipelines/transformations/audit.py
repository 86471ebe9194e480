"""Classifies acknowledged records: lost, corrupted, reordered, duplicated, or in place.

`acknowledged` (topic, partition, offset, key, checksum, acked_at) comes from ledgers. `readable`
(replica, topic, partition, offset, checksum, timestamp) comes from a cluster, or from the disks of
its replicas. An acknowledged record is in place if a replica holds its checksum at its offset.
Otherwise the record is *missing*. A readable record that no ledger contains at its offset is a
*stray*. Every fault is found by a comparison of missing records and strays. In a correct log, both
are rare.
"""

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from tidelog_pipelines.transformations.range_digests import PARTITION

RECORD = (*PARTITION, "offset")
PLACED = (*RECORD, "checksum")
CONTENT = ("topic", "checksum")


def missing(acknowledged: DataFrame, readable: DataFrame) -> DataFrame:
    """Acknowledged records that no replica holds at their offset, or whose offset is unknown.

    `found` is the checksum of a stray at that offset, and `found_at` is the stray's timestamp.
    """
    absent = acknowledged.join(readable, list(PLACED), "left_anti")
    there = strays(acknowledged, readable).groupBy(*RECORD)
    replaced = there.agg(
        f.min("checksum").alias("found"),
        f.min("timestamp").alias("found_at"),
    )
    return absent.join(replaced, list(RECORD), "left")


def strays(acknowledged: DataFrame, readable: DataFrame) -> DataFrame:
    """Readable records that no ledger contains at their offset. Copies of a record give one row."""
    once = readable.groupBy(*PLACED).agg(f.min("timestamp").alias("timestamp"))
    return once.join(acknowledged, list(PLACED), "left_anti")


def moved(missing: DataFrame, strays: DataFrame) -> DataFrame:
    """Missing records found at another offset, each paired with one stray of the same content."""
    wanted = missing.select(
        *RECORD, "checksum", "key", "acked_at", _turn("partition", "offset").alias("turn")
    )
    found = strays.select(
        *CONTENT,
        f.col("partition").alias("found_partition"),
        f.col("offset").alias("found_offset"),
        _turn("partition", "offset").alias("turn"),
    )
    return wanted.join(found, [*CONTENT, "turn"]).drop("turn")


def _turn(*order: str) -> Column:
    """The rank of a record among the records of equal content, in the order of these columns."""
    return f.row_number().over(Window.partitionBy(*CONTENT).orderBy(*order))


def reordered(moved: DataFrame) -> DataFrame:
    """Moved records whose acknowledged offset is known."""
    return moved.where("offset IS NOT NULL")


def without(records: DataFrame, known: DataFrame) -> DataFrame:
    """The records that are not among the known records. Two null offsets count as equal."""
    names = known.select(*RECORD, "checksum").alias("known")
    same = [f.col(f"r.{name}").eqNullSafe(f.col(f"known.{name}")) for name in names.columns]
    return records.alias("r").join(names, reduce(and_, same), "left_anti")


def below_start(unfound: DataFrame, starts: DataFrame) -> DataFrame:
    """Records below the log start offset. Retention has deleted these records."""
    return (
        unfound.join(f.broadcast(starts), list(PARTITION))
        .where("offset < log_start_offset")
        .select(*RECORD, "key", "checksum", "acked_at", "log_start_offset")
    )


def corrupted(kept: DataFrame, damages: DataFrame) -> DataFrame:
    """Records whose offset lies in an unreadable batch, or holds other content that is not newer.

    If the timestamp of the other content is after the acknowledgement, a leader without the record
    wrote this content later. Then the record is lost, not corrupted.
    """
    damaged = damages.select(
        *PARTITION,
        f.col("offset").alias("first"),
        f.col("last_offset").alias("last"),
        f.col("error"),
    )
    covered = (
        (kept["topic"] == damaged["topic"])
        & (kept["partition"] == damaged["partition"])
        & kept["offset"].between(damaged["first"], damaged["last"])
    )
    unreadable = (
        kept.join(damaged, covered)
        .groupBy(*[kept[name] for name in RECORD], kept["checksum"])
        .agg(
            f.first(kept["key"]).alias("key"),
            f.first(kept["acked_at"]).alias("acked_at"),
            f.first(kept["found"]).alias("found"),
            f.min("error").alias("error"),
        )
    )
    replaced = kept.where("found IS NOT NULL AND found_at <= acked_at").select(
        *RECORD,
        "checksum",
        "key",
        "acked_at",
        "found",
        f.lit("the offset holds other content").alias("error"),
    )
    return unreadable.unionByName(replaced).dropDuplicates([*RECORD, "checksum"])


def replaced_by_later(rest: DataFrame, acknowledged: DataFrame, topics: Sequence[str]) -> DataFrame:
    """Records of compacted topics that compaction may have removed.

    Compaction keeps the last record of each key. It also removes a last record without a value (a
    tombstone) after delete.retention.ms. The ledger does not contain values, but the checksum of a
    tombstone depends only on its key.
    """
    is_keyed = f.col("topic").isin(*topics) & f.col("key").isNotNull()
    last = (
        acknowledged.where(is_keyed)
        .groupBy(*PARTITION, "key")
        .agg(f.max("offset").alias("last_offset"))
    )
    size = f.length("key").cast("string").cast("binary")
    content = f.concat(size, f.lit(b":"), f.col("key"), f.lit(b"-1:"))
    is_tombstone = f.col("checksum") == f.substring(f.md5(content), 1, 16)
    return (
        rest.join(last, [*PARTITION, "key"])
        .where((f.col("offset") < f.col("last_offset")) | is_tombstone)
        .select(*RECORD, "key", "checksum", "acked_at", "last_offset")
    )


def lost(unfound: DataFrame) -> DataFrame:
    """Records that exist nowhere. If the offset was written again, `overwritten_at` is the time."""
    return unfound.select(
        *RECORD, "key", "checksum", "acked_at", f.col("found_at").alias("overwritten_at")
    )


def unplaced(strays: DataFrame, moved: DataFrame, corrupted: DataFrame) -> DataFrame:
    """The strays, except for moved records and for the content at corrupted offsets."""
    at = moved.select("topic", f.col("found_partition").alias("partition"), "found_offset")
    taken = at.withColumnRenamed("found_offset", "offset").union(corrupted.select(*RECORD))
    return strays.join(taken, list(RECORD), "left_anti")


def duplicated(unplaced: DataFrame, acknowledged: DataFrame) -> DataFrame:
    """Strays with the content of a record that was acknowledged at another offset."""
    original = acknowledged.select(
        *CONTENT,
        f.struct("partition", "offset", "key").alias("original"),
    )
    # If the producer is still writing the ledger, the ledger may contain the stray by now.
    is_itself = (f.col("original.partition") == f.col("partition")) & (
        f.col("original.offset") == f.col("offset")
    )
    return (
        unplaced.join(original, list(CONTENT))
        .withColumn("is_itself", f.coalesce(is_itself, f.lit(False)))
        .groupBy(*RECORD, "checksum")
        .agg(f.min("original").alias("first"), f.bool_or("is_itself").alias("is_itself"))
        .where("NOT is_itself")
        .select(
            *RECORD,
            "checksum",
            f.col("first.partition").alias("first_partition"),
            f.col("first.offset").alias("first_offset"),
            f.col("first.key").alias("key"),
        )
    )


def unacknowledged(unplaced: DataFrame, duplicated: DataFrame) -> DataFrame:
    """Readable records that no ledger contains. They were written, but never acknowledged."""
    return unplaced.join(duplicated.select(*RECORD), list(RECORD), "left_anti")
