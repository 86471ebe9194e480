"""`maintain`: compacts the tables of an ingest, and removes expired rows and unused files.

The job may run at the same time as an ingest. The two jobs take turns, so they never change a table
at the same time.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import SparkSession

from tidelog_pipelines import failures
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.session import spark_session
from tidelog_pipelines.settings import SparkSettings, clustering, located, pairs, parse, setting
from tidelog_pipelines.sinks import deletes
from tidelog_pipelines.sinks.claims import require_directory, turn
from tidelog_pipelines.sinks.destinations import shown
from tidelog_pipelines.sinks.identities import destinations
from tidelog_pipelines.sinks.quarantine import QUARANTINE
from tidelog_pipelines.sinks.stored_formats import StoredFormats, needs_iceberg
from tidelog_pipelines.sinks.table_formats.formats import CHANGING, ICEBERG
from tidelog_pipelines.sinks.tables import ChangingTables, Compaction

ABOUT = """\
Compact the small files of the tables of an --out directory, delete expired rows, and remove files
that no version of the last days uses. Ingest may run meanwhile: the two take turns.
"""
SAFE_HOURS = 168
CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


@dataclass(frozen=True, kw_only=True)
class MaintainSettings(SparkSettings):
    out: str = setting(metavar="DIR", meaning="the --out directory of ingest")
    format: str = setting("delta", choices=tuple(CHANGING), meaning="the format of the tables")
    topics: str = setting(
        "",
        metavar="NAME,...",
        meaning="only the tables of these topics; all tables and the quarantine, if left out",
    )
    retain: int = setting(
        0,
        metavar="DAYS",
        meaning="delete rows whose date is more than DAYS days ago, also in quarantine; 0: none",
    )
    zorder: str = setting(
        "",
        metavar="COLUMN,...",
        meaning="sort the compacted files by these columns, so that filters on them read less",
    )
    cluster_by: str = setting(
        "",
        metavar="COLUMN,...",
        meaning="cluster the tables by these columns from now on; not for partitioned tables",
    )
    vacuum_hours: int = setting(
        SAFE_HOURS,
        metavar="N",
        meaning="remove files that no version of the last N hours uses; at least 168",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.retain < 0:
            raise ValueError("--retain is a number of days, or 0")
        if self.format == ICEBERG and (self.zorder or self.cluster_by):
            raise ValueError("--zorder and --cluster-by need --format delta")
        if self.zorder and self.cluster_by:
            raise ValueError("give either --zorder or --cluster-by")
        clustering(self.cluster_by)
        is_checked = f"{CHECK}=false" not in self.conf
        if self.vacuum_hours < 0 or (self.vacuum_hours < SAFE_HOURS and is_checked):
            raise ValueError(
                f"--vacuum-hours is at least {SAFE_HOURS}, because a reader of an older version "
                f"would fail; --conf {CHECK}=false allows less"
            )


class Maintained(NamedTuple):
    """What was done to one table."""

    table: str
    expired: int
    work: Compaction
    removed: int

    def sentence(self) -> str:
        return (
            f"{self.table}: {self.expired:,} rows expired, {self.work.removed:,} files compacted "
            f"to {self.work.added:,}, {self.removed:,} old files removed"
        )


def main(arguments: list[str] | None = None) -> int:
    return failures.run(lambda: maintain(parsed(sys.argv[1:] if arguments is None else arguments)))


def parsed(arguments: list[str]) -> MaintainSettings:
    return parse(MaintainSettings, "maintain", arguments, ABOUT)


def maintain(settings: MaintainSettings) -> int:
    """Run the job in its own session."""
    require_directory(settings.out)
    iceberg = settings.format == ICEBERG or needs_iceberg(located(settings.out))
    spark = spark_session(settings, "maintain", iceberg=iceberg)
    try:
        run(spark, settings)
    finally:
        spark.stop()
    return 0


def run(spark: SparkSession, settings: MaintainSettings) -> None:
    """Maintain one table after the other, and print what was done."""
    require_directory(settings.out)
    for key, value in pairs(settings.conf, "--conf").items():
        spark.conf.set(key, value)
    tables = StoredFormats(spark, located(settings.out), settings.format)
    for name in _names(tables, settings):
        with turn(located(settings.out)):
            print(_maintained(tables.of(name), name, settings).sentence(), flush=True)


def _names(tables: StoredFormats, settings: MaintainSettings) -> Iterator[str]:
    known = destinations(tables.own)
    if known is None:
        raise JobFailed(f"there are no tables of format {settings.format} in {settings.out}.")
    chosen = list(filter(None, settings.topics.split(",")))
    if missing := [topic for topic in chosen if topic not in known]:
        raise JobFailed(
            f"there is no table of topic {missing[0]} in {settings.out}; there are "
            f"{', '.join(known)}."
        )
    names = list(dict.fromkeys(known[topic].table for topic in chosen or known))
    names += [deletes.name_of(topic) for topic in chosen or known]
    for name in names if chosen else [*names, QUARANTINE]:
        if tables.of(name).rows(name) is not None:
            yield name


def _maintained(tables: ChangingTables, name: str, settings: MaintainSettings) -> Maintained:
    is_forever = name.startswith(deletes.DIRECTORY)  # deletes must be remembered forever
    expires = settings.retain and not is_forever
    expired = tables.expire(name, settings.retain) if expires else 0
    sorted_by: tuple[str, ...] = ()
    if name != QUARANTINE and not is_forever:
        sorted_by = tuple(filter(None, settings.zorder.split(",")))
        columns = clustering(settings.cluster_by)
        if columns and not tables.cluster(name, columns):
            raise JobFailed(
                f"--cluster-by: {shown(name)} does not have all of the columns "
                f"{', '.join(columns)}; choose its tables with --topics."
            )
    work = tables.optimize(name, sorted_by)
    return Maintained(shown(name), expired, work, tables.vacuum(name, settings.vacuum_hours))


if __name__ == "__main__":
    sys.exit(main())
