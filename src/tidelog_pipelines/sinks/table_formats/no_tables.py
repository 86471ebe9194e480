"""Takes the place of a directory of tables when records are decoded but not written."""

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from tidelog_pipelines.sinks.tables import BY_DATE, Batch, Layout, Tables


class NoTables(Tables):
    """A directory without tables, which stores nothing."""

    format = "none"
    can_widen = True

    def rows(self, name: str) -> DataFrame | None:
        return None

    def append(
        self, name: str, rows: DataFrame, batch: Batch, part: str = "", layout: Layout = BY_DATE
    ) -> int:
        return 0

    def not_of(self, rows: DataFrame, batch: Batch) -> DataFrame:
        return rows

    def widen(self, name: str, columns: object, kind: DataType) -> None:
        """Do nothing, because there are no columns."""

    def compact(self, name: str) -> None:
        """Do nothing, because there are no files."""

    def _read(self, name: str) -> DataFrame:
        raise NotImplementedError("there are no tables to read")
