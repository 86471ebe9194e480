"""`query`: runs SQL on the tables that `ingest` writes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tidelog_pipelines import failures
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.session import spark_session
from tidelog_pipelines.settings import SparkSettings, has_scheme, located, parse, setting
from tidelog_pipelines.sinks.destinations import view_of
from tidelog_pipelines.sinks.identities import destinations
from tidelog_pipelines.sinks.quarantine import QUARANTINE
from tidelog_pipelines.sinks.stored_formats import needs_iceberg, stored_format
from tidelog_pipelines.sinks.table_formats.formats import CHANGING, FORMATS, ICEBERG
from tidelog_pipelines.sinks.tables import Tables, in_catalog

ABOUT = """\
Query the tables of an --out directory. Each topic is a table of its name (in backquotes, if it has
dots or dashes); topics that ingest has written to one --table are a table of that name. The table
`quarantine` holds the bad records; if a topic is named quarantine, they are in `$quarantine`. Names
are case-sensitive. Rows are printed with tabs between columns.
"""


CASE_SENSITIVE = "spark.sql.caseSensitive"
SMALL_BYTES = 256 << 20
"""Up to this size of all tables, a query is short."""


@dataclass(frozen=True, kw_only=True)
class QuerySettings(SparkSettings):
    out: str = setting(metavar="DIR", meaning="the --out directory of ingest")
    sql: str = setting(metavar="QUERY", meaning="the query, such as 'SELECT count(*) FROM t'")
    format: str = setting("delta", choices=tuple(FORMATS), meaning="the format of the tables")


def main(arguments: list[str] | None = None) -> int:
    return failures.run(lambda: query(parsed(sys.argv[1:] if arguments is None else arguments)))


def parsed(arguments: list[str]) -> QuerySettings:
    return parse(QuerySettings, "query", arguments, ABOUT)


def query(settings: QuerySettings) -> int:
    """Run the job in its own session."""
    size = size_of(located(settings.out))
    spark = spark_session(
        settings,
        "query",
        iceberg=settings.format == ICEBERG or needs_iceberg(located(settings.out)),
        is_short=size is not None and size <= SMALL_BYTES,
    )
    try:
        run(spark, settings)
    finally:
        spark.stop()
    return 0


def size_of(directory: str) -> int | None:
    """The bytes of all tables in a local directory. None if it is not local."""
    if has_scheme(directory):
        return None
    size = 0
    for file in Path(directory).rglob("*.parquet"):
        with suppress(FileNotFoundError):  # another job may remove files meanwhile
            size += file.stat().st_size
    return size


def run(spark: SparkSession, settings: QuerySettings) -> None:
    """Print the rows of the result."""
    with _case_sensitive(spark):
        for row in answer(spark, settings).toLocalIterator():
            print(*("" if value is None else value for value in row), sep="\t")


@contextmanager
def _case_sensitive(spark: SparkSession) -> Iterator[None]:
    """Make Spark distinguish tables of topics whose names differ only in case."""
    before = spark.conf.get(CASE_SENSITIVE)
    spark.conf.set(CASE_SENSITIVE, "true")
    try:
        yield
    finally:
        spark.conf.set(CASE_SENSITIVE, before or "false")


def answer(spark: SparkSession, settings: QuerySettings) -> DataFrame:
    tables = FORMATS[settings.format](spark, located(settings.out))
    tables.require()
    known = destinations(tables)
    if known is None:
        raise JobFailed(f"there are no tables of format {settings.format} in {settings.out}.")
    # Tables of catalogs need no view, because a query can name them directly.
    own = {at.table for at in known.values() if in_catalog(at.table) is None}
    names = {view_of(name): name for name in own}
    # A topic may be named quarantine, but no topic can be named $quarantine.
    names = {QUARANTINE: QUARANTINE, **names, f"${QUARANTINE}": QUARANTINE}
    # Spark reads the log of each table. A statement such as SHOW TABLES names none and needs all.
    named = {name: path for name, path in names.items() if name in settings.sql} or names
    for name, path in named.items():
        if (rows := _stored(spark, settings, path, tables).rows(path)) is not None:
            rows.createOrReplaceTempView(f"`{name}`")
    return spark.sql(settings.sql)


def _stored(spark: SparkSession, settings: QuerySettings, name: str, tables: Tables) -> Tables:
    """The tables of the format in which a table is stored; `tables run` may mix formats."""
    directory = located(settings.out)
    is_mixed = settings.format in CHANGING and in_catalog(name) is None
    found = stored_format(spark, f"{directory}/{name}") if is_mixed else None
    return tables if found in (None, settings.format) else CHANGING[found](spark, directory)


if __name__ == "__main__":
    sys.exit(main())
