"""`audit`: compares the acknowledged records with the content of a topic.

Both sides are compared by digests of offset ranges, and only the records of ranges that differ are
joined. The joins therefore grow with the damage, not with the topic. The exit status is 0 if no
fault is found, 1 if there is a fault, and 2 if the audit could not be completed.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from tidelog_pipelines.failures import JobFailed, run
from tidelog_pipelines.session import spark_session
from tidelog_pipelines.settings import KafkaSettings, pairs, parse, setting
from tidelog_pipelines.sources.contents import on_disks, readable
from tidelog_pipelines.sources.event_logs import recorded_events
from tidelog_pipelines.sources.ledgers import acknowledged
from tidelog_pipelines.sources.places import absolute
from tidelog_pipelines.sources.segment_files import NoSegments
from tidelog_pipelines.streams import say
from tidelog_pipelines.transformations import audit, explanations, replicas
from tidelog_pipelines.transformations.range_digests import (
    PARTITION,
    Stretch,
    digests,
    lies_in,
    ranges_that_replicas_hold_differently,
    ranges_unlike,
    stretches,
    within,
)
from tidelog_pipelines.transformations.verdict import MEANINGS, Verdict, counted

CLEAN, FAULTY, UNKNOWN, INTERRUPTED = 0, 1, 2, 130
SHOWN = 10
FEW = 1000
"""The maximum number of differing ranges that the driver collects and broadcasts."""
PUSHED = 50
"""The maximum number of stretches in the filter that is pushed down to the ledger's reader."""
KEPT = (
    *("lost", "duplicated", "reordered", "corrupted", "damaged", "replicas"),
    *("expired", "compacted", "unacknowledged"),
)
"""The names of the tables in --out. A table without findings is empty."""
TOLD = {
    "digests_acknowledged": "the ledger is read",
    "digests_readable": "the log is read",
    "ranges_unlike": "ledger and log are compared",
    "suspects_readable": "differing ranges are read again",
    "lost": "differences are explained",
    "replicas": "replicas are compared",
}


@dataclass(frozen=True, kw_only=True)
class AuditSettings(KafkaSettings):
    ledger: tuple[str, ...] = setting(
        metavar="PATH",
        meaning="the acknowledged records: JSON lines (tidelog produce --ledger) or Parquet, a "
        "file or a directory; may be given several times",
    )
    topic: tuple[str, ...] = setting(
        (), metavar="NAME", meaning="only this topic; every topic in the ledger, if left out"
    )
    compacted: tuple[str, ...] = setting(
        (),
        metavar="NAME",
        meaning="a topic with cleanup.policy=compact: only the last record of each key must be in "
        "the log; may be given several times",
    )
    replica: tuple[str, ...] = setting(
        (),
        metavar="ID=DIR[,DIR]",
        meaning="read a replica's segments from its log.dirs, instead of through the cluster; one "
        "for each broker",
    )
    events: str = setting(
        "auto",
        metavar="auto|none|PATH",
        meaning="replication events that explain a loss: the cluster's own topic, or JSON lines",
    )
    out: str = setting("", metavar="DIR", meaning="keep every table there, as Parquet")


Stage = Callable[[DataFrame, str], DataFrame]
Reread = Callable[[Sequence[Stretch]], DataFrame]


@dataclass(frozen=True)
class Inputs:
    acknowledged: DataFrame
    readable: DataFrame
    events: DataFrame
    has_replicas: bool = False
    digests: DataFrame | None = None
    """Digests of the acknowledged records, if they are known already."""
    reread: Reread | None = None
    """A function that reads the given stretches of the log without a full scan.

    It may also return other records.
    """
    compacted: tuple[str, ...] = ()
    """The topics of which compaction has removed records."""

    def is_compacted(self) -> Column:
        return f.col("topic").isin(*self.compacted)


def conduct(inputs: Inputs, stage: Stage) -> tuple[Verdict, dict[str, DataFrame]]:
    """The verdict, and a table for each kind of record that the verdict counts.

    `stage` writes an intermediate table, so that Spark knows its size before it is joined.
    """
    acked = inputs.digests
    if acked is None:
        acked = stage(digests(inputs.acknowledged), "digests_acknowledged")
    all_read = stage(digests(inputs.readable, "replica", "damage"), "digests_readable")
    read = all_read.where("damage IS NULL").drop("damage")
    damaged = all_read.where("damage IS NOT NULL").select("replica", *PARTITION, "damage.*")
    unlike = stage(ranges_unlike(acked, read), "ranges_unlike")
    tables = {"damaged": damaged}
    if found := unlike.limit(FEW + 1).collect():
        tables |= _faults(
            inputs,
            stage(_suspects(inputs, unlike, found), "suspects_acknowledged"),
            stage(within(_held(inputs, found), unlike), "suspects_readable"),
            _starts(read),
            damaged,
            stage,
        )
    if inputs.has_replicas:
        unequal = stage(ranges_that_replicas_hold_differently(read), "ranges_different")
        held = within(_held(inputs, unequal.limit(FEW + 1).collect()), unequal)
        held = held.where(~inputs.is_compacted())  # each replica compacts its log at another time
        differences = replicas.differences(held, replicas.extents(all_read))
        tables["replicas"] = stage(differences, "replicas")
    return _verdict(acked, read, tables), _with_empty_ones(tables, inputs, all_read)


def _starts(read: DataFrame) -> DataFrame:
    return read.groupBy(*PARTITION).agg(f.min("first_offset").alias("log_start_offset"))


def _with_empty_ones(
    tables: dict[str, DataFrame], inputs: Inputs, all_read: DataFrame
) -> dict[str, DataFrame]:
    """The tables, and an empty table for each kind without findings.

    An empty table has the columns that findings would have. These columns come from query plans,
    which are not run.
    """
    if tables.keys() >= set(KEPT):
        return tables
    held = inputs.readable.where("damage IS NULL")
    starts, damaged = _starts(all_read.drop("damage")), tables["damaged"]
    planned = _faults(inputs, inputs.acknowledged, held, starts, damaged, lambda table, _: table)
    planned["replicas"] = replicas.differences(held, replicas.extents(all_read))
    nothing = held.sparkSession.createDataFrame
    return {**{name: nothing([], table.schema) for name, table in planned.items()}, **tables}


def _suspects(inputs: Inputs, unlike: DataFrame, found: list[Row]) -> DataFrame:
    """The ledger's entries in these ranges, and the entries without an offset."""
    entries = inputs.acknowledged
    placeless = entries.where("offset IS NULL")
    if len(found) <= FEW and len(few := stretches(found)) <= PUSHED:
        entries = entries.where(lies_in(few))
    return within(entries, unlike).unionByName(placeless)


def _held(inputs: Inputs, found: list[Row]) -> DataFrame:
    """The readable records of these ranges, or of the whole log if there are many ranges."""
    if inputs.reread is None or len(found) > FEW:
        return inputs.readable.where("damage IS NULL")
    return inputs.reread(stretches(found)).where("damage IS NULL")


def _faults(
    inputs: Inputs,
    suspects: DataFrame,
    held: DataFrame,
    starts: DataFrame,
    damaged: DataFrame,
    stage: Stage,
) -> dict[str, DataFrame]:
    missing = stage(audit.missing(suspects, held), "missing")
    strays = stage(audit.strays(suspects, held), "strays")
    moved = stage(audit.moved(missing, strays), "moved")
    unfound = audit.without(missing, moved)
    # A compacted log also starts at offset 0 if its first records are gone.
    deleting = starts.where(~inputs.is_compacted())
    expired = stage(audit.below_start(unfound, deleting), "expired")
    kept = audit.without(unfound, expired)
    corrupted = stage(audit.corrupted(kept, damaged), "corrupted")
    rest = audit.without(kept, corrupted)
    later = audit.replaced_by_later(rest, inputs.acknowledged, inputs.compacted)
    compacted = stage(later, "compacted")
    lost = audit.lost(audit.without(rest, compacted))
    unplaced = stage(audit.unplaced(strays, moved, corrupted), "unplaced")
    duplicated = stage(audit.duplicated(unplaced, inputs.acknowledged), "duplicated")
    return {
        "lost": stage(explanations.explained(lost, inputs.events), "lost"),
        "duplicated": duplicated,
        "reordered": audit.reordered(moved),
        "corrupted": corrupted,
        "expired": expired,
        "compacted": compacted,
        "unacknowledged": audit.unacknowledged(unplaced, duplicated),
    }


def _verdict(acked: DataFrame, read: DataFrame, tables: dict[str, DataFrame]) -> Verdict:
    total = f.coalesce(f.sum("records"), f.lit(0))
    acknowledged = acked.agg(total.alias("n")).collect()[0]["n"]
    # Every replica should hold all records, so the total is the largest count of any replica.
    held = read.groupBy("replica").agg(total.alias("n")).agg(f.max("n").alias("n")).collect()
    rows = counted({name: table for name, table in tables.items() if name != "replicas"})
    if "replicas" in tables:
        for row in tables["replicas"].groupBy("kind").agg(total.alias("n")).collect():
            kind = "behind" if row["kind"] == replicas.BEHIND else "different"
            rows[kind] = rows.get(kind, 0) + row["n"]
    return Verdict(acknowledged, held[0]["n"] or 0, **rows)


# -- The job ---------------------------------------------------------------------------------------


def replica_directories(settings: AuditSettings) -> dict[int, str]:
    given = pairs(settings.replica, "--replica")
    if wrong := [id for id in given if not id.isdecimal()]:
        raise JobFailed(f"--replica: {wrong[0]!r} is not a broker id.")
    return {
        int(id): ",".join(absolute(path) for path in paths.split(","))
        for id, paths in given.items()
    }


def inputs_of(spark: SparkSession, settings: AuditSettings, stage: Stage) -> Inputs:
    """The inputs of the comparison. The ledger is read only once."""
    entries = acknowledged(spark, settings.ledger)
    if settings.topic:
        entries = entries.where(f.col("topic").isin(*settings.topic))
    acked = stage(digests(entries), "digests_acknowledged")
    topics = sorted(row["topic"] for row in acked.select("topic").distinct().collect())
    if not topics:
        raise JobFailed(f"{', '.join(settings.ledger)} contains no acknowledged record.")
    dirs = replica_directories(settings)
    try:
        found = on_disks(spark, topics, dirs) if dirs else readable(spark, settings, topics)
    except NoSegments as error:
        raise JobFailed(f"{error}.") from None

    def reread(few: Sequence[Stretch]) -> DataFrame:
        return on_disks(spark, topics, dirs, few)

    return Inputs(
        entries,
        found,
        recorded_events(spark, settings, settings.events, dirs),
        has_replicas=len(dirs) > 1,
        digests=acked,
        reread=reread if dirs else None,
        compacted=settings.compacted,
    )


class Audited(NamedTuple):
    """The result of an audit."""

    verdict: Verdict
    tables: dict[str, DataFrame]
    """The findings by kind. A table without findings is empty."""


def audited(
    spark: SparkSession, settings: AuditSettings, scratch: str, report: Callable[[str], None]
) -> Audited:
    """Compare the ledger with the log.

    The returned tables are in --out or, without --out, in `scratch`.
    """
    began = time.monotonic()
    place = absolute(settings.out or scratch)

    def stage(table: DataFrame, name: str) -> DataFrame:
        path = f"{place}/steps/{name}"
        table.write.mode("overwrite").parquet(path)
        if name in TOLD:
            report(f"{time.monotonic() - began:6.1f} s  {TOLD[name]}")
        return spark.read.schema(table.schema).parquet(path)

    found = Audited(*conduct(inputs_of(spark, settings, stage), stage))
    if settings.out:
        for name in KEPT:
            found.tables[name].write.mode("overwrite").parquet(f"{place}/{name}")
    return found


def show(found: Audited) -> None:
    """Print the findings, then the verdict."""
    verdict = found.verdict
    for name, table in found.tables.items():
        if count := _count_of(name, verdict):
            print(f"\n{name}: {count:,} ({MEANINGS[name]})")
            _causes(table) if name == "lost" else _first_rows(table)
    print(verdict.sentence())


def _causes(lost: DataFrame) -> None:
    """Print one line for all records that were lost for the same reason."""
    causes = lost.groupBy(*PARTITION, "explanation").agg(
        f.count("*").alias("records"), f.min("offset").alias("first"), f.max("offset").alias("last")
    )
    for row in causes.orderBy(*PARTITION, "first").limit(SHOWN).collect():
        where = f"{row['topic']}-{row['partition']}, offsets {row['first']} to {row['last']}"
        print(f"  {where} ({row['records']:,}): {row['explanation']}")


def _first_rows(table: DataFrame) -> None:
    shown = table.drop("checksum")
    if "key" in table.columns:
        shown = shown.withColumn("key", f.col("key").cast("string"))
    order = [column for column in (*PARTITION, "offset") if column in table.columns]
    shown.orderBy(*order).show(SHOWN, truncate=40)


def _count_of(name: str, verdict: Verdict) -> int:
    if name == "replicas":
        return verdict.different + verdict.behind
    count: int = getattr(verdict, name)
    return count


def conclude(settings: AuditSettings) -> int:
    spark = spark_session(settings, "audit")
    with tempfile.TemporaryDirectory(prefix="tidelog-audit-") as scratch:
        found = audited(spark, settings, scratch, say)
        show(found)
    return CLEAN if found.verdict.is_clean else FAULTY


def main(arguments: list[str]) -> int:
    found: list[int] = []

    def job() -> int:
        found.append(conclude(parse(AuditSettings, "audit", arguments, __doc__ or "")))
        return CLEAN

    status = run(job)
    # If `run` has reported an error, there is no verdict. Then return neither 0 nor 1, because
    # these stand for verdicts.
    return found[0] if found else (status if status == INTERRUPTED else UNKNOWN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
