"""Iceberg tables, in a file-based catalog in --out, or in the user's own catalog.

The snapshot of a batch names the batch, and a batch that a snapshot names is not written again. If
`maintain` has removed that snapshot, the job still finds its records in the table.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from pyspark.sql import DataFrame, DataFrameWriterV2, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.sinks.tables import (
    BY_DATE,
    CATALOG,
    Batch,
    ChangingTables,
    Compaction,
    Layout,
    Merged,
    in_catalog,
)
from tidelog_pipelines.transformations.fitting import completed, ddl, new_fields, quoted

CATALOG_CLASS = "org.apache.iceberg.spark.SparkCatalog"
BATCH_PROPERTY = "tidelog.batch"
PROPERTIES = {
    "format-version": "2",
    # A change of a few rows writes only these rows, and does not rewrite the files that hold them.
    "write.merge.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
}
REWRITE = {
    "min-input-files": "2",
    "delete-file-threshold": "1",
    "target-file-size-bytes": str(128 << 20),
}
ORPHAN_HOURS = 24
"""Iceberg does not remove unused files that are younger, because a job may be writing them."""
MISSING_CLASS = "Cannot find catalog plugin class"


class IcebergTables(ChangingTables):
    format = "iceberg"
    can_widen = False  # Iceberg cannot change BIGINT to DECIMAL

    def __init__(self, spark: SparkSession, directory: str) -> None:
        super().__init__(spark, directory)
        name = hashlib.sha256(self._directory.encode()).hexdigest()[:12]
        self._catalog = f"tidelog_{name}"
        key = f"spark.sql.catalog.{self._catalog}"
        spark.conf.set(key, CATALOG_CLASS)
        spark.conf.set(f"{key}.type", "hadoop")
        spark.conf.set(f"{key}.warehouse", self._directory)
        # Do not cache tables, because another process may change them.
        spark.conf.set(f"{key}.cache-enabled", "false")

    def require(self) -> None:
        try:
            self._spark.sql(f"SHOW NAMESPACES IN {self._catalog}").collect()
        except Exception as error:
            if MISSING_CLASS not in str(error):
                raise
            raise JobFailed(
                "this Spark session has no Iceberg: start it with the jar that `python -m "
                "tidelog_pipelines.jars iceberg` prints, or with api.session(iceberg=True)."
            ) from None

    def sql(self, name: str) -> str:
        """The name of a table in SQL."""
        return in_catalog(name) or quoted(self._catalog, *name.split("/", 1))

    def append(
        self, name: str, rows: DataFrame, batch: Batch, part: str = "", layout: Layout = BY_DATE
    ) -> int:
        parts = (batch.query_id, name, part, batch.decoder)
        commit = f"{'/'.join(filter(None, parts))} batch {batch.number}"
        if self.rows(name) is None:
            self.create(name, rows.schema, layout)
        elif (written := self._rows_of(name, commit)) is not None:
            return written
        writer = self._fitted(name, rows).writeTo(self.sql(name))
        writer.option(f"snapshot-property.{BATCH_PROPERTY}", commit).append()
        return self._rows_of(name, commit) or 0

    def _rows_of(self, name: str, commit: str) -> int | None:
        """How many rows the snapshot of a batch has added. None if there is no such snapshot."""
        snapshots = self._spark.read.table(f"{self.sql(name)}.snapshots")
        found = snapshots.where(f.col("summary")[BATCH_PROPERTY] == commit).select(
            f.coalesce(f.col("summary")["added-records"].cast("long"), f.lit(0))
        )
        return next((int(row[0]) for row in found.collect()), None)

    def _fitted(self, name: str, rows: DataFrame) -> DataFrame:
        """Add missing columns to the table; returns the rows with all columns of the table."""
        schema = self._read(name).schema
        if missing := list(new_fields(schema, rows.schema)):
            new = ", ".join(f"{quoted(*path)} {ddl(kind)}" for path, kind in missing)
            self._spark.sql(f"ALTER TABLE {self.sql(name)} ADD COLUMNS ({new})")
            schema = self._read(name).schema
        return completed(rows, schema)

    def not_of(self, rows: DataFrame, batch: Batch) -> DataFrame:
        return rows

    def create(self, name: str, like: StructType, layout: Layout) -> None:
        self._writer(name, like, layout).create()

    def _writer(self, name: str, like: StructType, layout: Layout) -> DataFrameWriterV2:
        """A writer of an empty table."""
        writer = self._spark.createDataFrame([], like).writeTo(self.sql(name)).using("iceberg")
        for key, value in PROPERTIES.items():
            writer = writer.tableProperty(key, value)
        if layout.partition_by:
            first, *rest = map(f.col, layout.partition_by)
            writer = writer.partitionedBy(first, *rest)
        return writer

    def change_columns(self, name: str, like: StructType) -> None:
        layout = Layout(self._partition_columns(name))
        self._writer(name, like, layout).createOrReplace()

    def _partition_columns(self, name: str) -> tuple[str, ...]:
        found = self._spark.read.table(f"{self.sql(name)}.partitions").schema
        if "partition" not in found.names:
            return ()
        kind = found["partition"].dataType
        assert isinstance(kind, StructType)
        return tuple(kind.names)

    def add_columns(self, name: str, columns: Mapping[str, str]) -> None:
        present = self._read(name).columns
        if missing := [f"{one} {kind}" for one, kind in columns.items() if one not in present]:
            self._spark.sql(f"ALTER TABLE {self.sql(name)} ADD COLUMNS ({', '.join(missing)})")

    def merge(self, name: str, rows: DataFrame, condition: str, clauses: str) -> Merged:
        view = f"tidelog_{uuid4().hex}"
        self._fitted(name, rows).createOrReplaceTempView(view)
        try:
            self._spark.sql(
                f"MERGE INTO {self.sql(name)} AS t USING {view} AS s ON {condition} {clauses}"
            ).collect()
        finally:
            self._spark.catalog.dropTempView(view)
        summary = self._last_summary(name)
        added, deleted = (
            int(summary.get(key, 0)) for key in ("added-records", "added-position-deletes")
        )
        # Iceberg stores a replaced row as a deleted one and an added one.
        return Merged(max(added, deleted), max(0, added - deleted))

    def _last_summary(self, name: str) -> dict[str, str]:
        snapshots = self._spark.read.table(f"{self.sql(name)}.snapshots")
        newest = snapshots.orderBy(f.desc("committed_at")).select("summary").first()
        return {} if newest is None else dict(newest["summary"])

    def cluster(self, name: str, columns: Sequence[str]) -> bool:
        raise JobFailed("--cluster-by needs --format delta.")

    def compact(self, name: str) -> None:
        self.optimize(name)

    def optimize(self, name: str, sorted_by: Sequence[str] = ()) -> Compaction:
        if sorted_by:
            raise JobFailed("--zorder needs --format delta.")
        options = ", ".join(f"'{key}', '{value}'" for key, value in REWRITE.items())
        (found,) = self._call(name, "rewrite_data_files", f"options => map({options})")
        return Compaction(
            int(found["rewritten_data_files_count"]), int(found["added_data_files_count"])
        )

    def _delete(self, name: str, condition: str) -> int:
        count = self._read(name).where(condition).count()
        if count:
            self._spark.sql(f"DELETE FROM {self.sql(name)} WHERE {condition}")
        return count

    def vacuum(self, name: str, hours: int) -> int:
        limit = datetime.now(UTC) - timedelta(hours=hours)
        older = f"older_than => TIMESTAMP '{limit:%Y-%m-%d %H:%M:%S.%f}'"
        (found,) = self._call(name, "expire_snapshots", older, "retain_last => 1")
        removed = sum(found[f"deleted_{kind}_files_count"] for kind in ("data", "position_delete"))
        if hours >= ORPHAN_HOURS:
            removed += len(self._call(name, "remove_orphan_files", older))
        return int(removed)

    def _call(self, name: str, procedure: str, *arguments: str) -> list[Row]:
        """Call an Iceberg procedure for a table."""
        catalog, parts = self._catalog, name.split("/", 1)
        if in_catalog(name) is not None:
            catalog, *parts = name.removeprefix(CATALOG).split(".")
        given = ", ".join((f"table => '{quoted(*parts)}'", *arguments))
        return self._spark.sql(f"CALL {quoted(catalog)}.system.{procedure}({given})").collect()

    def _read(self, name: str) -> DataFrame:
        return self._spark.read.table(self.sql(name))
