"""Statistics of a cluster's replication, from its events and the intervals between them."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from tidelog_pipelines.transformations.events import PARTITION

CHAIN_SECONDS = 60
"""The maximum time between a leader's fencing and the election that replaces the leader."""
FLAPPING_GAP = "10 minutes"
FLAPPING_LEAVES = 3
"""A replica flaps if it leaves the ISR at least this often, less than FLAPPING_GAP apart."""

PLANNED = ("preferred", "reassigned", "created")
HANDED_OVER = "shutting-down"
"""The reason of an election in a controlled shutdown, in which a leader is never missing."""
MINUTE = 60.0


# -- Under-replication -----------------------------------------------------------------------------


def under_replicated_partitions(judged: DataFrame) -> DataFrame:
    """For each partition, the minutes it was observed, under-replicated, unwritable, leaderless."""
    return judged.groupBy(*PARTITION).agg(
        _minutes(f.lit(True)).alias("watched_minutes"),
        _minutes(f.col("is_under_replicated")).alias("under_replicated_minutes"),
        _minutes(~f.col("is_writable")).alias("unwritable_minutes"),
        _minutes(~f.col("is_available")).alias("leaderless_minutes"),
        f.min("in_sync").alias("least_in_sync"),
    )


def under_replicated_brokers(judged: DataFrame) -> DataFrame:
    """For each broker, the number of partitions in which it was out of sync, and for how long."""
    out = judged.withColumn("broker", f.explode(f.array_except("replicas", "isr")))
    return out.groupBy("broker").agg(
        f.count_distinct(*PARTITION).alias("partitions"),
        f.round(f.sum("seconds") / MINUTE, 3).alias("partition_minutes"),
        f.round(f.max("seconds") / MINUTE, 3).alias("longest_minutes"),
    )


def _minutes(condition: Column) -> Column:
    seconds = f.when(condition, f.col("seconds")).otherwise(0.0)
    return f.round(f.sum(seconds) / MINUTE, 3)


# -- The in-sync set -------------------------------------------------------------------------------


def isr_changes(events: DataFrame) -> DataFrame:
    """One row for each replica that left an in-sync set or joined one."""
    where = [*PARTITION, "at", "leader", "leader_epoch"]
    left = events.where("event = 'isr_shrink'").select(*where, f.explode("left").alias("one"))
    joined = events.where("event = 'isr_expand'").select(*where, f.explode("joined").alias("one"))
    return left.select(
        *where, f.col("one.broker").alias("broker"), f.lit("left").alias("change"), "one.reason"
    ).unionByName(
        joined.select(
            *where,
            f.col("one").alias("broker"),
            f.lit("joined").alias("change"),
            f.lit(None).cast("string").alias("reason"),
        )
    )


def flapping(changes: DataFrame) -> DataFrame:
    """Replicas that left the ISR repeatedly: the time range, how often, and the usual reason."""
    return (
        changes.where("change = 'left'")
        .groupBy(*PARTITION, "broker", f.session_window("at", FLAPPING_GAP).alias("spell"))
        .agg(
            f.count("*").alias("leaves"),
            f.min("at").alias("began"),
            f.max("at").alias("ended"),
            f.mode("reason").alias("reason"),
        )
        .where(f.col("leaves") >= FLAPPING_LEAVES)
        .drop("spell")
    )


# -- The lag of followers --------------------------------------------------------------------------


def follower_states(events: DataFrame) -> DataFrame:
    """The states of followers that leaders reported, one row per follower and time."""
    followers = events.where("event = 'replica_state'").select(
        *PARTITION, "at", f.explode("followers").alias("follower")
    )
    return followers.select(*PARTITION, "at", "follower.*")


def lag(followers: DataFrame) -> DataFrame:
    """Percentiles of each follower's lag, in records and in time."""
    return followers.groupBy(*PARTITION, "broker").agg(
        f.count("*").alias("samples"),
        *[
            f.percentile_approx(column, percent / 100).alias(f"{column}_p{percent}")
            for column in ("lag", "lag_ms")
            for percent in (50, 95, 99)
        ],
        f.max("lag").alias("lag_max"),
        f.max("lag_ms").alias("lag_ms_max"),
    )


# -- Failover and availability ---------------------------------------------------------------------


def failovers(events: DataFrame) -> DataFrame:
    """Every unplanned change of a leader: brokers, reason, and the time without a leader.

    The time without a leader begins with the old leader's last sign of life. If the last sign is
    unknown, the time begins with an election that found no leader. If there was no such election,
    it begins with the old leader's fencing, unless the fencing has the same time as the election.
    If none of these times is known, `duration_ms` is null.
    """
    in_order = Window.partitionBy(*PARTITION).orderBy("ts", "leader_epoch")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    led = f.when(f.col("leader") >= 0, f.col("leader"))
    elections = (
        events.where("event = 'leader_elected'")
        .withColumn("last_leader", f.last(led, ignorenulls=True).over(before))
        .withColumn("was_leaderless", f.lag("leader").over(in_order) < 0)
        .withColumn("leaderless_ts", f.when(f.col("was_leaderless"), f.lag("ts").over(in_order)))
        .withColumn("noticed_ts", f.coalesce("leaderless_ts", "ts"))
        .where((f.col("leader") >= 0) & ~f.col("reason").isin(*PLANNED))
        .withColumn("gone", f.coalesce("last_leader", "leader_before"))
        .where("gone <> leader OR was_leaderless")
    )
    fenced = events.where("event = 'broker_fenced'").select(
        f.col("broker").alias("fenced"),
        f.col("ts").alias("fenced_ts"),
        (f.col("ts") - f.col("silent_ms")).alias("last_sign_ts"),
    )
    noticed = f.col("noticed_ts")
    recent = f.col("fenced_ts").between(noticed - CHAIN_SECONDS * 1000, noticed)
    is_its_own = (f.col("gone") == f.col("fenced")) & (f.col("reason") != HANDED_OVER)
    with_sign = elections.join(f.broadcast(fenced), is_its_own & recent, "left")
    key = [*PARTITION, "ts", "at", "gone", "leader", "leader_epoch", "reason", "clean"]
    began = f.coalesce(
        f.max("last_sign_ts"),
        f.first("leaderless_ts"),
        f.max(f.when(f.col("fenced_ts") < f.col("ts"), f.col("fenced_ts"))),
    )
    return (
        with_sign.groupBy(*key)
        .agg(began.alias("began_ts"))
        .select(
            *PARTITION,
            f.coalesce(f.timestamp_millis("began_ts"), "at").alias("began"),
            f.col("at").alias("elected"),
            (f.col("ts") - f.col("began_ts")).alias("duration_ms"),
            f.col("gone").alias("leader_before"),
            "leader",
            "leader_epoch",
            "reason",
            "clean",
        )
    )


def availability(judged: DataFrame) -> DataFrame:
    """For each partition and day, the percentage of time available, writable, fully replicated."""
    days = judged.withColumn(
        "day",
        f.explode(
            f.sequence(
                f.to_date(f.timestamp_millis("start_ms")), f.to_date(f.timestamp_millis("end_ms"))
            )
        ),
    )
    midnight = f.unix_millis(f.col("day").cast("timestamp"))
    begin = f.greatest("start_ms", midnight)
    end = f.least("end_ms", midnight + 24 * 3_600_000)
    parts = days.withColumn("part", (end - begin) / 1000).where("part > 0")

    def percent(condition: Column) -> Column:
        kept = f.when(condition, f.col("part")).otherwise(0.0)
        return f.round(100 * f.sum(kept) / f.sum("part"), 4)

    return parts.groupBy(*PARTITION, "day").agg(
        f.round(f.sum("part") / MINUTE, 3).alias("watched_minutes"),
        percent(f.col("is_available")).alias("available_percent"),
        percent(f.col("is_writable")).alias("writable_percent"),
        percent(~f.col("is_under_replicated")).alias("fully_replicated_percent"),
    )


def causes(changes: DataFrame, failovers: DataFrame) -> DataFrame:
    """For each cause and broker, how often it occurred, in how many partitions, and when last."""
    left = changes.where("change = 'left'").select(
        f.concat(f.lit("left the in-sync set: "), f.coalesce("reason", f.lit("unknown"))).alias(
            "cause"
        ),
        "broker",
        "at",
        *PARTITION,
    )
    moved = failovers.select(
        f.concat(f.lit("lost the lead: "), f.col("reason")).alias("cause"),
        f.col("leader_before").alias("broker"),
        f.col("elected").alias("at"),
        *PARTITION,
    )
    return (
        left.unionByName(moved)
        .groupBy("cause", "broker")
        .agg(
            f.count("*").alias("times"),
            f.count_distinct(*PARTITION).alias("partitions"),
            f.max("at").alias("last"),
        )
    )
