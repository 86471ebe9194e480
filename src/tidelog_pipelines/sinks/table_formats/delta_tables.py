"""Delta tables. Delta stores the number of the last batch of each query in the commit of its rows.

Before a commit, Delta checks the commits that other writers have made in the meantime. If another
writer has changed the same rows, the commit fails. So no row is written twice.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameWriter
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, StructType

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.sinks.columns import has_column
from tidelog_pipelines.sinks.table_formats.delta_commits import rows_of_commit
from tidelog_pipelines.sinks.tables import (
    BY_DATE,
    Batch,
    ChangingTables,
    Compaction,
    Layout,
    Merged,
    dotted,
    in_catalog,
)
from tidelog_pipelines.sources.checkpoint import is_local
from tidelog_pipelines.transformations.fitting import quoted


class DeltaTables(ChangingTables):
    format = "delta"
    can_widen = True

    def sql(self, name: str) -> str:
        """The name of a table in SQL."""
        return in_catalog(name) or f"delta.`{self.path(name)}`"

    def append(
        self, name: str, rows: DataFrame, batch: Batch, part: str = "", layout: Layout = BY_DATE
    ) -> int:
        if in_catalog(name) is not None and self.rows(name) is None:
            self.create(name, rows.schema, layout)
        writer = rows.write.format("delta").mode("append")
        # Delta stores the last batch number of each application. It skips a batch if its number is
        # not larger.
        application = "/".join(filter(None, (batch.query_id, name, part, batch.decoder)))
        commit = f"{application} batch {batch.number}"
        writer = writer.options(
            mergeSchema="true",
            txnAppId=application,
            txnVersion=str(batch.number),
            userMetadata=commit,
        )
        self._save(name, writer, layout.partition_by)
        return self._rows_of(name, commit)

    def _save(self, name: str, writer: DataFrameWriter, by: Sequence[str]) -> None:
        if by:
            writer = writer.partitionBy(*by)
        if (table := in_catalog(name)) is not None:
            writer.saveAsTable(table)
        else:
            writer.save(self.path(name))

    def _rows_of(self, name: str, commit: str) -> int:
        """How many rows a commit has added. 0 if the commit is not among the last three."""
        if in_catalog(name) is None and is_local(self._spark, self.path(name)):
            # The history would take two Spark jobs for each batch.
            found = rows_of_commit(Path(self.path(name)), commit)
            if found is not None:
                return found
        history = self._spark.sql(f"DESCRIBE HISTORY {self.sql(name)} LIMIT 3")
        added = history.where(f.col("userMetadata") == commit).select(
            f.col("operationMetrics")["numOutputRows"].cast("long").alias("rows")
        )
        return sum(row["rows"] or 0 for row in added.collect())

    def not_of(self, rows: DataFrame, batch: Batch) -> DataFrame:
        return rows

    def create(self, name: str, like: StructType, layout: Layout) -> None:
        self._overwrite(name, like, layout.partition_by)
        if layout.cluster_by:
            self.cluster(name, layout.cluster_by)

    def change_columns(self, name: str, like: StructType) -> None:
        before = self._layout(name)
        self._overwrite(name, like, before.partition_by)
        if before.cluster_by:  # an overwrite removes the clustering
            self.cluster(name, before.cluster_by)

    def _overwrite(self, name: str, like: StructType, by: Sequence[str]) -> None:
        nothing = self._spark.createDataFrame([], like)
        writer = nothing.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        self._save(name, writer, by)

    def _layout(self, name: str) -> Layout:
        detail = self._spark.sql(f"DESCRIBE DETAIL {self.sql(name)}")
        (found,) = detail.select("partitionColumns", "clusteringColumns").collect()
        return Layout(tuple(found[0]), tuple(found[1]))

    def widen(self, name: str, columns: Sequence[tuple[str, ...]], kind: DataType) -> None:
        # Type widening is enabled only when it is needed, because readers without this feature
        # refuse the table.
        table = self.sql(name)
        self._spark.sql(
            f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
        )
        for path in columns:
            column = quoted(*path)
            self._spark.sql(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {kind.simpleString()}")

    def add_columns(self, name: str, columns: Mapping[str, str]) -> None:
        present = self._read(name).columns
        if missing := [f"{one} {kind}" for one, kind in columns.items() if one not in present]:
            self._spark.sql(f"ALTER TABLE {self.sql(name)} ADD COLUMNS ({', '.join(missing)})")

    def merge(self, name: str, rows: DataFrame, condition: str, clauses: str) -> Merged:
        # If there is nothing to insert, a merge that only inserts makes no commit.
        view = f"tidelog_{uuid4().hex}"
        rows.createOrReplaceTempView(view)
        try:
            (found,) = self._spark.sql(
                f"MERGE WITH SCHEMA EVOLUTION INTO {self.sql(name)} AS t USING {view} AS s "
                f"ON {condition} {clauses}"
            ).collect()
        finally:
            self._spark.catalog.dropTempView(view)
        return Merged(int(found[0]), int(found[3]))

    def cluster(self, name: str, columns: Sequence[str]) -> bool:
        schema = self._read(name).schema
        if not all(has_column(schema, column) for column in columns):
            return False
        before = self._layout(name)
        if before.partition_by:
            raise JobFailed(
                f"{name} is partitioned by {', '.join(before.partition_by)}, and a partitioned "
                "table cannot be clustered: leave out --cluster-by, or use another --out."
            )
        if before.cluster_by != tuple(columns):
            by = dotted(columns)
            try:
                self._spark.sql(f"ALTER TABLE {self.sql(name)} CLUSTER BY ({by})")
            except AnalysisException as error:
                why = str(error).partition("\n")[0]
                raise JobFailed(f"{name} cannot be clustered by {by}: {why}") from None
        return True

    def compact(self, name: str) -> None:
        self._spark.sql(f"OPTIMIZE {self.sql(name)}").collect()

    def optimize(self, name: str, sorted_by: Sequence[str] = ()) -> Compaction:
        by = dotted(sorted_by)
        sql = f"OPTIMIZE {self.sql(name)}" + (f" ZORDER BY ({by})" if by else "")
        work = self._spark.sql(sql).select("metrics.numFilesRemoved", "metrics.numFilesAdded")
        (found,) = work.collect()
        return Compaction(int(found[0]), int(found[1]))

    def _delete(self, name: str, condition: str) -> int:
        (found,) = self._spark.sql(f"DELETE FROM {self.sql(name)} WHERE {condition}").collect()
        return int(found["num_affected_rows"])

    def vacuum(self, name: str, hours: int) -> int:
        self._spark.conf.set("spark.databricks.delta.vacuum.logging.enabled", "true")
        self._spark.sql(f"VACUUM {self.sql(name)} RETAIN {hours} HOURS").collect()
        history = self._spark.sql(f"DESCRIBE HISTORY {self.sql(name)} LIMIT 1")
        removed = history.where("operation = 'VACUUM END'").select(
            f.col("operationMetrics")["numDeletedFiles"].cast("long")
        )
        return sum(row[0] or 0 for row in removed.collect())

    def _read(self, name: str) -> DataFrame:
        if (table := in_catalog(name)) is not None:
            return self._spark.read.table(table)
        return self._spark.read.format("delta").load(self.path(name))
