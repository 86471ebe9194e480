"""Explains each lost record by an election or a truncation among the replication events."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tidelog_pipelines.transformations.audit import RECORD
from tidelog_pipelines.transformations.events import PARTITION

SKEW_MS = 2_000
"""The largest accepted difference between the clocks of a producer and a broker."""

UNCLEAN, ELECTION, TRUNCATION, UNKNOWN = "unclean election", "election", "truncation", "unknown"


def explained(lost: DataFrame, events: DataFrame) -> DataFrame:
    """The lost records with the cause of the loss, its time, and a sentence about the cause."""
    with_election = _first_after(lost, _elections(events), "election")
    with_cut = _first_after(with_election, _cuts(events), "cut", _covers())
    cause = (
        f.when(f.col("election.unclean") | (f.col("cut.event") == "unclean_loss"), UNCLEAN)
        .when(f.col("election").isNotNull(), ELECTION)
        .when(f.col("cut").isNotNull(), TRUNCATION)
        .otherwise(UNKNOWN)
    )
    return with_cut.select(
        *lost.columns,
        cause.alias("cause"),
        f.coalesce("election.at", "cut.at").alias("cause_at"),
        f.col("election.leader_before").alias("leader_before"),
        f.col("election.leader").alias("leader"),
        f.col("election.leader_epoch").alias("leader_epoch"),
        _sentence().alias("explanation"),
    )


def _elections(events: DataFrame) -> DataFrame:
    is_change = "event = 'leader_elected' AND leader >= 0 AND reason <> 'created'"
    return events.where(is_change).select(
        *PARTITION,
        "ts",
        f.struct(
            "at",
            "leader",
            "leader_before",
            "leader_epoch",
            "reason",
            (~f.col("clean") | (f.col("reason") == "unclean")).alias("unclean"),
        ).alias("election"),
    )


def _cuts(events: DataFrame) -> DataFrame:
    return events.where("event IN ('truncated', 'unclean_loss')").select(
        *PARTITION,
        "ts",
        f.least("from_offset", "to_offset").alias("first"),
        f.greatest("from_offset", "to_offset").alias("end"),
        f.struct("at", "event", "node", "from_offset", "to_offset").alias("cut"),
    )


def _covers() -> Column:
    return (f.col("lost.offset") >= f.col("e.first")) & (f.col("lost.offset") < f.col("e.end"))


def _first_after(
    lost: DataFrame, events: DataFrame, name: str, condition: Column | None = None
) -> DataFrame:
    """Each lost record with the first matching event after its acknowledgement, or with null."""
    since = f.col("e.ts") >= f.unix_millis("lost.acked_at") - SKEW_MS
    same = (f.col("lost.topic") == f.col("e.topic")) & (
        f.col("lost.partition") == f.col("e.partition")
    )
    on = same & since if condition is None else same & since & condition
    candidates = lost.alias("lost").join(f.broadcast(events).alias("e"), on, "left")
    key = [f.col(f"lost.{column}") for column in (*RECORD, "checksum")]
    rest = [column for column in lost.columns if column not in (*RECORD, "checksum")]
    return candidates.groupBy(*key).agg(
        *[f.first(f"lost.{column}").alias(column) for column in rest],
        f.min_by(f.col(f"e.{name}"), f.col("e.ts")).alias(name),
    )


def _sentence() -> Column:
    elected = f.format_string(
        "broker %d led at the acknowledgement and lost the lead (%s); broker %d was elected %sat "
        "%s in epoch %d without the record",
        "election.leader_before",
        "election.reason",
        "election.leader",
        f.when(f.col("election.unclean"), f.lit("uncleanly ")).otherwise(f.lit("")),
        f.date_format("election.at", "HH:mm:ss.SSS"),
        "election.leader_epoch",
    )
    cut = f.format_string(
        "broker %d truncated its log from %d to %d at %s",
        "cut.node",
        f.greatest("cut.from_offset", "cut.to_offset"),
        f.least("cut.from_offset", "cut.to_offset"),
        f.date_format("cut.at", "HH:mm:ss.SSS"),
    )
    return f.coalesce(
        f.nullif(
            f.concat_ws(
                "; ",
                f.when(f.col("election").isNotNull(), elected),
                f.when(f.col("cut").isNotNull(), cut),
            ),
            f.lit(""),
        ),
        f.lit("no election and no truncation is recorded after its acknowledgement"),
    )
