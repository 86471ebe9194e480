"""Tables of an ingest. Invariant: no batch and no record is written to a table twice.

A batch is identified by its query and its number. Each format has its own module, which describes
how a table of this format recognises a batch: delta_tables.py, iceberg_tables.py,
parquet_tables.py.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, StructType

from tidelog_pipelines.sources.checkpoint import Span
from tidelog_pipelines.transformations.fitting import quoted

RECORD = ("partition", "offset")
CATALOG = "catalog:"
"""The prefix of names of tables in a catalog. Other names are paths below the directory."""
Columns = Sequence[str]


class Batch(NamedTuple):
    """One micro-batch. If it is run again after a crash, it has the same number and records."""

    query_id: str
    number: int
    decoder: str = ""
    """A name of the decoder. With another decoder, the same records may give other rows."""


class Layout(NamedTuple):
    """How the files of a table are arranged."""

    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    """Columns whose close values share files. The field of a struct is given as `value.id`."""


BY_DATE = Layout(("date",))


class Tables(ABC):
    """The tables of one format, in one directory and in catalogs."""

    format: str
    can_widen: bool
    """Whether the type of a column can change to a wider type."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self._spark = spark
        self._directory = directory.rstrip("/")

    def require(self) -> None:  # noqa: B027
        """Raise if the session cannot use this format."""

    def path(self, name: str) -> str:
        """The path of a table in the directory."""
        return f"{self._directory}/{name}"

    def rows(self, name: str) -> DataFrame | None:
        """All rows of a table. None if the table does not exist yet."""
        try:
            found = self._read(name)
            _ = found.schema  # with Spark Connect, only this raises if the table is absent
            return found
        except AnalysisException as error:
            if error.getCondition() in ABSENT:
                return None
            raise

    def existing(self, name: str) -> DataFrame:
        """All rows of a table that exists."""
        found = self.rows(name)
        assert found is not None, f"there is no table {name}"
        return found

    def frame(self, rows: Sequence[tuple[object, ...]], schema: str) -> DataFrame:
        """A DataFrame of a few rows that are in the memory of this process."""
        return self._spark.createDataFrame(list(rows), schema)

    @abstractmethod
    def append(
        self, name: str, rows: DataFrame, batch: Batch, part: str = "", layout: Layout = BY_DATE
    ) -> int:
        """Add a batch's rows, or a part of them, only once, even if the batch is run again.

        The layout applies to a new table. For an existing table, the layout is empty or that of the
        table. Returns the number of added rows.
        """

    @abstractmethod
    def not_of(self, rows: DataFrame, batch: Batch) -> DataFrame:
        """The rows of a table, except for the rows that this batch will replace."""

    def widen(self, name: str, columns: Sequence[tuple[str, ...]], kind: DataType) -> None:
        """Change the type of columns to a wider type. Each column is given by its path.

        Call this only if the format `can_widen`.
        """
        raise AssertionError(f"a column of a {self.format} table keeps its type")

    @abstractmethod
    def compact(self, name: str) -> None:
        """Merge many small files into few large files."""

    @abstractmethod
    def _read(self, name: str) -> DataFrame: ...


class Merged(NamedTuple):
    """How many rows a merge has changed."""

    changed: int
    """The number of rows that were added, replaced or deleted."""
    inserted: int


class Compaction(NamedTuple):
    """How many files a compaction has removed and added."""

    removed: int
    added: int


class ChangingTables(Tables):
    """Tables of a format with commits, in which rows can change and expire.

    If two writers change the same rows at the same time, one of the two commits fails.
    """

    @abstractmethod
    def create(self, name: str, like: StructType, layout: Layout) -> None:
        """Create an empty table with these columns."""

    @abstractmethod
    def change_columns(self, name: str, like: StructType) -> None:
        """Give an empty table these columns. Its layout stays the same."""

    @abstractmethod
    def add_columns(self, name: str, columns: Mapping[str, str]) -> None:
        """Add the columns, given by name and type, that the table does not have yet."""

    @abstractmethod
    def merge(self, name: str, rows: DataFrame, condition: str, clauses: str) -> Merged:
        """Merge the rows `s` into the table `t`, and add columns that only the rows have."""

    @abstractmethod
    def cluster(self, name: str, columns: Sequence[str]) -> bool:
        """Cluster a table by these columns from now on; returns whether it has all of them.

        Raises if the table is partitioned, or if a column has a type without an order.
        """

    def expire(self, name: str, days: int) -> int:
        """Delete rows whose date is more than `days` days ago. Rows without a date stay."""
        return self._delete(name, f"date < current_date() - INTERVAL {days} DAYS")

    def expire_older(self, name: str, milliseconds: int) -> int:
        """Delete rows whose timestamp is older than this. Rows without a timestamp stay."""
        limit = f"timestamp_millis({max(0, time.time_ns() // 1_000_000 - milliseconds)})"
        # With the condition on the date, a format can skip whole files without reading them.
        return self._delete(name, f"date <= date({limit}) AND timestamp < {limit}")

    @abstractmethod
    def _delete(self, name: str, condition: str) -> int:
        """Delete the rows that meet this condition; returns how many were deleted."""

    @abstractmethod
    def optimize(self, name: str, sorted_by: Sequence[str] = ()) -> Compaction:
        """Merge small files. With `sorted_by`, sort the rows of all files by these columns."""

    @abstractmethod
    def vacuum(self, name: str, hours: int) -> int:
        """Remove files that no version of the last `hours` uses; returns how many were removed."""

    def insert_missing(
        self, name: str, rows: DataFrame, spans: Sequence[Span], record: Sequence[str] = RECORD
    ) -> int:
        """Add the rows whose record the table does not have; returns the number of added rows.

        All rows must lie within the spans.
        """
        condition = f"{same(record)} AND ({_literally_within(spans)})"
        return self.merge(name, rows, condition, "WHEN NOT MATCHED THEN INSERT *").inserted


ABSENT = {
    "PATH_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
    "DELTA_MISSING_DELTA_TABLE",
    "UNABLE_TO_INFER_SCHEMA",
}
"""Spark's error classes for a missing table or an empty directory."""


def in_catalog(name: str) -> str | None:
    """The name of a catalog's table, in quotes for SQL; None for a table in the directory."""
    if not name.startswith(CATALOG):
        return None
    return quoted(*name.removeprefix(CATALOG).split("."))


def dotted(columns: Sequence[str]) -> str:
    """Columns for SQL; fields of a struct are given as `value.id`."""
    return ", ".join(quoted(*column.split(".")) for column in columns)


def within(spans: Sequence[Span]) -> Column:
    """Whether a row is in one of the spans. All formats use this condition to skip files."""
    inside = [
        (f.col("partition") == span.partition) & f.col("offset").between(span.start, span.end - 1)
        for span in spans
    ]
    return reduce(lambda one, other: one | other, inside, f.lit(False))


def _literally_within(spans: Sequence[Span]) -> str:
    """As `within`, but as SQL text for the table `t` of a merge, so that files can be skipped."""
    return " OR ".join(
        f"(t.`partition` = {partition} AND t.`offset` BETWEEN {start} AND {end - 1})"
        for partition, start, end in spans
    )


def same(columns: Sequence[str]) -> str:
    """The condition of a merge that two rows have the same values in these columns."""
    return " AND ".join(f"t.`{column}` = s.`{column}`" for column in columns)


def unseen(rows: DataFrame, existing: DataFrame, by: Sequence[str] = RECORD) -> DataFrame:
    """The rows whose record is not among the existing rows."""
    return rows.join(existing.select(*by), list(by), "left_anti").select(*rows.columns)
