"""Finds offsets at which the replicas of a partition hold different records.

A record counts as missing only if its offset lies between the start and the end of the replica's
own log. Records before the start, which retention may have deleted, are not reported. Records past
the end are reported as behind.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tidelog_pipelines.transformations.range_digests import PARTITION

BEHIND, MISSING, DIFFERENT = "behind", "missing", "different"


def extents(readable_digests: DataFrame) -> DataFrame:
    """The first and last offset of each replica's log, including damaged batches."""
    return readable_digests.groupBy("replica", *PARTITION).agg(
        f.min("first_offset").alias("start"), f.max("last_offset").alias("end")
    )


def differences(readable: DataFrame, extents: DataFrame) -> DataFrame:
    """One row per replica and kind of difference: the number of records, first and last offset.

    The caller may restrict `readable` to the ranges in which replicas differ.
    """
    held = readable.groupBy(*PARTITION, "offset").agg(
        f.count_distinct("checksum").alias("contents"), f.collect_set("replica").alias("holders")
    )
    compared = held.join(f.broadcast(extents), list(PARTITION))
    kind = (
        f.when((f.col("contents") > 1) & _holds(), f.lit(DIFFERENT))
        .when(_holds() | (f.col("offset") < f.col("start")), f.lit(None))
        .when(f.col("offset") > f.col("end"), f.lit(BEHIND))
        .otherwise(f.lit(MISSING))
    )
    return (
        compared.withColumn("kind", kind)
        .where("kind IS NOT NULL")
        .groupBy(*PARTITION, "replica", "kind")
        .agg(
            f.count("*").alias("records"),
            f.min("offset").alias("first_offset"),
            f.max("offset").alias("last_offset"),
        )
    )


def _holds() -> Column:
    return f.array_contains(f.col("holders"), f.col("replica"))
