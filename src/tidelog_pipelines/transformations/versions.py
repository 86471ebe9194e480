"""Orders the records of a key, and derives the key's row or history from this order.

Records of one partition are ordered by offset. If the number of partitions was raised, a key may
have records in two partitions. Records of different partitions are ordered by timestamp. The result
depends only on the set of records. It does not depend on how the records were cut into
micro-batches. There is one exception: an upsert of a key that has records in two partitions, if the
timestamps went backwards in one of them.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from tidelog_pipelines.transformations.values.python_decoding import DELETED

EVENT = ("key", "partition", "offset", "timestamp")
"""The columns that determine the order."""
VALID_FROM, VALID_TO, IS_CURRENT = "_valid_from", "_valid_to", "_is_current"
VALIDITY = (VALID_FROM, VALID_TO, IS_CURRENT)
_RANK = "_rank"


def is_newer(one: str, other: str) -> str:
    """An SQL condition, which is true if `one` is newer than `other`, of the same key."""
    return (
        f"(CASE WHEN {one}.`partition` = {other}.`partition` "
        f"THEN {one}.`offset` > {other}.`offset` "
        f"ELSE ({one}.`timestamp` > {other}.`timestamp` OR ({one}.`timestamp` = "
        f"{other}.`timestamp` AND {one}.`partition` > {other}.`partition`)) END)"
    )


def newest(records: DataFrame) -> DataFrame:
    """The newest record of each key."""
    in_partition = Window.partitionBy("key", "partition").orderBy(f.desc("offset"))
    of_all = Window.partitionBy("key").orderBy(f.desc("timestamp"), f.desc("partition"))
    found = records
    for order in (in_partition, of_all):
        found = found.withColumn(_RANK, f.row_number().over(order)).where(f.col(_RANK) == 1)
    return found.drop(_RANK)


def unless_deleted_later(records: DataFrame, deletes: DataFrame) -> DataFrame:
    """The records, without those whose key has a newer delete."""
    same = f.col("r.key") == f.col("d.key")
    later = f.expr(is_newer("d", "r"))
    return records.alias("r").join(deletes.alias("d"), same & later, "left_anti")


def with_validity(events: DataFrame) -> DataFrame:
    """The events, each with the start and the end of its validity.

    `events` has all events of a key. An event is valid from the largest timestamp that its key has
    had so far in its partition. This is usually the timestamp of the event itself. So the times
    never go backwards, and no two versions of a key overlap.
    """
    so_far = (
        Window.partitionBy("key", "partition")
        .orderBy("offset")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    timed = events.withColumn(VALID_FROM, f.max("timestamp").over(so_far))
    in_order = Window.partitionBy("key").orderBy(VALID_FROM, "partition", "offset")
    until = timed.withColumn(VALID_TO, f.lead(VALID_FROM).over(in_order))
    return until.withColumn(IS_CURRENT, f.col(VALID_TO).isNull())


def changed_versions(new: DataFrame, stored: DataFrame) -> DataFrame:
    """The rows to add to a history or to change in it.

    `new` are the records that the history does not have yet. `stored` are all earlier events of the
    same keys, with VALID_FROM and VALID_TO as in the table.
    """
    was_from, was_to, is_stored = "_was_from", "_was_to", "_is_stored"
    before = stored.withColumnsRenamed({VALID_FROM: was_from, VALID_TO: was_to}).withColumn(
        is_stored, f.lit(True)
    )
    timed = with_validity(new.unionByName(before, allowMissingColumns=True))
    is_same = f.col(was_from).eqNullSafe(f.col(VALID_FROM)) & f.col(was_to).eqNullSafe(
        f.col(VALID_TO)
    )
    changed = timed.where(~f.col(DELETED) & (f.col(is_stored).isNull() | ~is_same))
    return changed.drop(was_from, was_to, is_stored, DELETED)
