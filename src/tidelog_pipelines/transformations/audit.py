"""Classifies acknowledged records: lost, corrupted, reordered, duplicated, or in place.

`acknowledged` (topic, partition, offset, key, checksum, acked_at) comes from ledgers, `readable`
(replica, topic, partition, offset, checksum, timestamp) from a cluster or from its replicas' disks.
An acknowledged record is in place if a replica holds its checksum at its offset; otherwise it is
*missing*. A readable record that no ledger contains at its offset is a *stray*. Every fault is a
relation between missing records and strays, and in a correct log both are empty.
"""

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

    `found` is the checksum of a stray at that offset, `found_at` the stray's timestamp.
    """
    absent = acknowledged.join(readable, list(PLACED), "left_anti")
    there = strays(acknowledged, readable).groupBy(*RECORD)
    replaced = there.agg(
        f.min("checksum").alias("found"),
        f.min("timestamp").alias("found_at"),
    )
    return absent.join(replaced, list(RECORD), "left")


def strays(acknowledged: DataFrame, readable: DataFrame) -> DataFrame:
    """Readable records that no ledger contains at their offset, each once for all replicas."""
    once = readable.groupBy(*PLACED).agg(f.min("timestamp").alias("timestamp"))
    return once.join(acknowledged, list(PLACED), "left_anti")


def moved(missing: DataFrame, strays: DataFrame) -> DataFrame:
    """Missing records at another offset, each paired with one stray of the same content."""
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
    """The rank of a record among records of equal content, in this order."""
    return f.row_number().over(Window.partitionBy(*CONTENT).orderBy(*order))


def reordered(moved: DataFrame) -> DataFrame:
    """Records at another offset than the acknowledged one; the ledger must have an offset."""
    return moved.where("offset IS NOT NULL")


def without(records: DataFrame, known: DataFrame) -> DataFrame:
    """The records that are not among the known ones; null offsets compare as equal."""
    names = known.select(*RECORD, "checksum").alias("known")
    same = [f.col(f"r.{name}").eqNullSafe(f.col(f"known.{name}")) for name in names.columns]
    return records.alias("r").join(names, reduce(and_, same), "left_anti")


def below_start(unfound: DataFrame, starts: DataFrame) -> DataFrame:
    """Records below the log start offset, which retention has deleted since."""
    return (
        unfound.join(f.broadcast(starts), list(PARTITION))
        .where("offset < log_start_offset")
        .select(*RECORD, "key", "checksum", "acked_at", "log_start_offset")
    )


def corrupted(kept: DataFrame, damages: DataFrame) -> DataFrame:
    """Records whose offset holds other content that is not a later write, or an unreadable batch.

    Content with a timestamp after the acknowledgement was written later, by a leader that lacked
    the record: that is a loss, not a corruption.
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


def lost(unfound: DataFrame) -> DataFrame:
    """Records that exist nowhere, with the time at which their offset was written again, if any."""
    return unfound.select(
        *RECORD, "key", "checksum", "acked_at", f.col("found_at").alias("overwritten_at")
    )


def unplaced(strays: DataFrame, moved: DataFrame, corrupted: DataFrame) -> DataFrame:
    """Strays that are neither a moved record nor the content found at a corrupted offset."""
    at = moved.select("topic", f.col("found_partition").alias("partition"), "found_offset")
    taken = at.withColumnRenamed("found_offset", "offset").union(corrupted.select(*RECORD))
    return strays.join(taken, list(RECORD), "left_anti")


def duplicated(unplaced: DataFrame, acknowledged: DataFrame) -> DataFrame:
    """Strays with the content of a record that was acknowledged at another offset."""
    original = acknowledged.select(
        *CONTENT,
        f.struct("partition", "offset", "key").alias("original"),
    )
    # If the ledger is still being written, it may contain the stray itself by now.
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
    """Readable records that no ledger contains: written, but never acknowledged."""
    return unplaced.join(duplicated.select(*RECORD), list(RECORD), "left_anti")
