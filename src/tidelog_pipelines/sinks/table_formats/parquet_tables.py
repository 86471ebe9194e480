"""Plain Parquet files, without commits.

Each batch has its own directory, and a batch that is run again overwrites this directory.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog_pipelines.sinks.tables import BY_DATE, Batch, Layout, Tables

BATCH_COLUMN = "batch"


class ParquetTables(Tables):
    format = "parquet"
    can_widen = False

    def append(
        self, name: str, rows: DataFrame, batch: Batch, part: str = "", layout: Layout = BY_DATE
    ) -> int:
        directory = _directory_of(batch, part)
        named = rows.withColumn(BATCH_COLUMN, f.lit(directory))
        writer = named.write.format("parquet").mode("overwrite").partitionBy("date", BATCH_COLUMN)
        writer.option("partitionOverwriteMode", "dynamic").save(self.path(name))
        written = self.rows(name)
        return 0 if written is None else written.where(f.col(BATCH_COLUMN) == directory).count()

    def not_of(self, rows: DataFrame, batch: Batch) -> DataFrame:
        return rows.where(~f.col(BATCH_COLUMN).startswith(_directory_of(batch)))

    def compact(self, name: str) -> None:
        """Do nothing. Without commits, readers would see rows twice during a compaction."""

    def _read(self, name: str) -> DataFrame:
        return self._spark.read.option("mergeSchema", "true").parquet(self.path(name))


def _directory_of(batch: Batch, part: str = "") -> str:
    return "-".join(filter(None, (batch.query_id, f"{batch.number:09d}", part)))
