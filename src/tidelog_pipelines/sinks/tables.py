"""Tables in a directory. Invariant: no batch and no record is written to a table twice.

A batch is identified by its query and its number. Delta stores the number of the last batch of each
query in the same commit as its rows. Parquet has no commits. In a Parquet table, each batch has its
own directory, and a retry overwrites this directory.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DataType

from tidelog_pipelines.sources.checkpoint import Span

RECORD = ("partition", "offset")
BATCH_COLUMN = "batch"
Columns = Sequence[str]


class Batch(NamedTuple):
    """One micro-batch. If it is run again after a crash, it has the same number and records."""

    query_id: str
    number: int
    decoder: str = ""
    """A name of the decoder. With another decoder, the same records may give other rows."""


class Tables(ABC):
    """The tables of one format in one directory."""

    format: str
    can_widen: bool
    """Whether the type of a column can change to a wider type."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self._spark = spark
        self._directory = directory.rstrip("/")

    def path(self, name: str) -> str:
        return f"{self._directory}/{name}"

    def rows(self, name: str) -> DataFrame | None:
        """All rows of a table. None if the table does not exist yet."""
        try:
            found = self._read(self.path(name))
            _ = found.schema  # with Spark Connect, only this raises if the table is absent
            return found
        except AnalysisException as error:
            if error.getCondition() in ABSENT:
                return None
            raise

    def frame(self, rows: Sequence[tuple[object, ...]], schema: str) -> DataFrame:
        """A DataFrame of a few rows that are in the memory of this process."""
        return self._spark.createDataFrame(list(rows), schema)

    @abstractmethod
    def append(
        self, name: str, rows: DataFrame, batch: Batch, part: str = "", by: Columns = ("date",)
    ) -> int:
        """Add a batch's rows, or a part of them, only once, even if the batch is run again.

        `by` has the partition columns of a new Delta table. For an existing table, `by` is empty or
        has the table's own columns. Returns the number of added rows.
        """

    @abstractmethod
    def not_of(self, rows: DataFrame, batch: Batch) -> DataFrame:
        """The rows of a table, except for the rows that this batch will replace."""

    @abstractmethod
    def widen(self, name: str, columns: Sequence[tuple[str, ...]], kind: DataType) -> None:
        """Change the type of columns to a wider type. Each column is given by its path."""

    @abstractmethod
    def compact(self, name: str) -> None:
        """Merge many small files into few large files."""

    @abstractmethod
    def _read(self, path: str) -> DataFrame: ...


ABSENT = {
    "PATH_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
    "DELTA_MISSING_DELTA_TABLE",
    "UNABLE_TO_INFER_SCHEMA",
}
"""Spark's error classes for a missing table or an empty directory."""


class DeltaTables(Tables):
    format = "delta"
    can_widen = True

    def append(
        self, name: str, rows: DataFrame, batch: Batch, part: str = "", by: Columns = ("date",)
    ) -> int:
        writer = rows.write.format("delta").mode("append")
        if by:
            writer = writer.partitionBy(*by)
        # Delta stores the last batch number of each application. It skips a batch if its number is
        # not larger.
        application = "/".join(filter(None, (batch.query_id, name, part, batch.decoder)))
        commit = f"{application} batch {batch.number}"
        writer.options(
            mergeSchema="true",
            txnAppId=application,
            txnVersion=str(batch.number),
            userMetadata=commit,
        ).save(self.path(name))
        return self._rows_of(name, commit)

    def _rows_of(self, name: str, commit: str) -> int:
        """How many rows a commit has added. 0 if the commit is not among the last three."""
        history = self._spark.sql(f"DESCRIBE HISTORY delta.`{self.path(name)}` LIMIT 3")
        added = history.where(f.col("userMetadata") == commit).select(
            f.col("operationMetrics")["numOutputRows"].cast("long").alias("rows")
        )
        return sum(row["rows"] or 0 for row in added.collect())

    def not_of(self, rows: DataFrame, batch: Batch) -> DataFrame:
        return rows

    def widen(self, name: str, columns: Sequence[tuple[str, ...]], kind: DataType) -> None:
        # Type widening is enabled only when it is needed, because readers without this feature
        # refuse the table.
        table = f"delta.`{self.path(name)}`"
        self._spark.sql(
            f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
        )
        for path in columns:
            column = ".".join("`" + part.replace("`", "``") + "`" for part in path)
            self._spark.sql(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {kind.simpleString()}")

    def compact(self, name: str) -> None:
        self._spark.sql(f"OPTIMIZE delta.`{self.path(name)}`").collect()

    def _read(self, path: str) -> DataFrame:
        return self._spark.read.format("delta").load(path)


class ParquetTables(Tables):
    format = "parquet"
    can_widen = False

    def append(
        self, name: str, rows: DataFrame, batch: Batch, part: str = "", by: Columns = ("date",)
    ) -> int:
        directory = _directory_of(batch, part)
        named = rows.withColumn(BATCH_COLUMN, f.lit(directory))
        writer = named.write.format("parquet").mode("overwrite").partitionBy("date", BATCH_COLUMN)
        writer.option("partitionOverwriteMode", "dynamic").save(self.path(name))
        written = self.rows(name)
        return 0 if written is None else written.where(f.col(BATCH_COLUMN) == directory).count()

    def not_of(self, rows: DataFrame, batch: Batch) -> DataFrame:
        return rows.where(~f.col(BATCH_COLUMN).startswith(_directory_of(batch)))

    def widen(self, name: str, columns: Sequence[tuple[str, ...]], kind: DataType) -> None:
        raise NotImplementedError("the columns of Parquet files keep their types")

    def compact(self, name: str) -> None:
        """Do nothing. Without commits, readers would see rows twice during a compaction."""

    def _read(self, path: str) -> DataFrame:
        return self._spark.read.option("mergeSchema", "true").parquet(path)


FORMATS: dict[str, type[Tables]] = {"delta": DeltaTables, "parquet": ParquetTables}


def _directory_of(batch: Batch, part: str = "") -> str:
    return "-".join(filter(None, (batch.query_id, f"{batch.number:09d}", part)))


def within(spans: Sequence[Span]) -> Column:
    """Whether a row is in one of the spans. Both formats use this condition to skip files."""
    inside = [
        (f.col("partition") == span.partition) & f.col("offset").between(span.start, span.end - 1)
        for span in spans
    ]
    return reduce(lambda one, other: one | other, inside, f.lit(False))


def unseen(rows: DataFrame, existing: DataFrame, by: Sequence[str] = RECORD) -> DataFrame:
    """The rows whose record is not among the existing rows."""
    return rows.join(existing.select(*by), list(by), "left_anti").select(*rows.columns)
