"""What became of acknowledged records: lost, corrupted, reordered, duplicated, or in their place.

`acknowledged` (topic, partition, offset, key, checksum, acked_at) comes from ledgers, `readable`
(replica, topic, partition, offset, checksum, timestamp) from a cluster or from its replicas' disks.
An acknowledged record is where it belongs if some replica holds its checksum at its offset;
the rest is *missing*. A readable record that no ledger places there is a *stray*. Everything that
can be wrong is a relation between the missing and the strays, and in a sound log both are empty.
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
    """Acknowledged records that are not at their offset on any replica, or whose offset is unknown.

    `found` is the checksum of a stray at that offset, `found_at` the time that it carries.
    """
    absent = acknowledged.join(readable, list(PLACED), "left_anti")
    there = strays(acknowledged, readable).groupBy(*RECORD)
    replaced = there.agg(
        f.min("checksum").alias("found"),
        f.min("timestamp").alias("found_at"),
    )
    return absent.join(replaced, list(RECORD), "left")


def strays(acknowledged: DataFrame, readable: DataFrame) -> DataFrame:
    """Readable records that no ledger places where they are, each once for all replicas."""
    once = readable.groupBy(*PLACED).agg(f.min("timestamp").alias("timestamp"))
    return once.join(acknowledged, list(PLACED), "left_anti")


def moved(missing: DataFrame, strays: DataFrame) -> DataFrame:
    """Missing records that are at another place, each paired with one stray of the same content."""
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
    """Records of equal content are told apart by nothing but their order."""
    return f.row_number().over(Window.partitionBy(*CONTENT).orderBy(*order))


def reordered(moved: DataFrame) -> DataFrame:
    """Records at another offset than was acknowledged; one without an offset is only found."""
    return moved.where("offset IS NOT NULL")


def without(records: DataFrame, known: DataFrame) -> DataFrame:
    """The records that are not among the known ones; an offset may be unknown on both sides."""
    names = known.select(*RECORD, "checksum").alias("known")
    same = [f.col(f"r.{name}").eqNullSafe(f.col(f"known.{name}")) for name in names.columns]
    return records.alias("r").join(names, reduce(and_, same), "left_anti")


def below_start(unfound: DataFrame, starts: DataFrame) -> DataFrame:
    """Records that retention has taken since: they lie before the first offset that is kept."""
    return (
        unfound.join(f.broadcast(starts), list(PARTITION))
        .where("offset < log_start_offset")
        .select(*RECORD, "key", "checksum", "acked_at", "log_start_offset")
    )


def corrupted(kept: DataFrame, damages: DataFrame) -> DataFrame:
    """Records whose place holds something else that is no later write, or a batch no one can read.

    What carries a later time than the acknowledgement was written afterwards, by a leader that
    did not know of the record: that is a loss, and no corruption.
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
        f.lit("another content is in its place").alias("error"),
    )
    return unreadable.unionByName(replaced).dropDuplicates([*RECORD, "checksum"])


def lost(unfound: DataFrame) -> DataFrame:
    """Records that are nowhere, with when something else was written in their place, if it was."""
    return unfound.select(
        *RECORD, "key", "checksum", "acked_at", f.col("found_at").alias("overwritten_at")
    )


def unplaced(strays: DataFrame, moved: DataFrame, corrupted: DataFrame) -> DataFrame:
    """Strays that are neither a moved record nor what is left of a corrupted one."""
    at = moved.select("topic", f.col("found_partition").alias("partition"), "found_offset")
    taken = at.withColumnRenamed("found_offset", "offset").union(corrupted.select(*RECORD))
    return strays.join(taken, list(RECORD), "left_anti")


def duplicated(unplaced: DataFrame, acknowledged: DataFrame) -> DataFrame:
    """Strays with the content of a record that was acknowledged elsewhere."""
    original = acknowledged.select(
        *CONTENT,
        f.struct("partition", "offset", "key").alias("original"),
    )
    # A ledger that is being written may have come to know of the stray itself meanwhile.
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
    """Readable records of which no ledger knows: written, but their acknowledgement never came."""
    return unplaced.join(duplicated.select(*RECORD), list(RECORD), "left_anti")
