"""The formats of tables, by the names that users give."""

from tidelog_pipelines.sinks.table_formats.delta_tables import DeltaTables
from tidelog_pipelines.sinks.table_formats.iceberg_tables import IcebergTables
from tidelog_pipelines.sinks.table_formats.parquet_tables import ParquetTables
from tidelog_pipelines.sinks.tables import ChangingTables, Tables

DELTA, ICEBERG = "delta", "iceberg"
CHANGING: dict[str, type[ChangingTables]] = {DELTA: DeltaTables, ICEBERG: IcebergTables}
"""The formats with commits, so that rows can change."""
FORMATS: dict[str, type[Tables]] = {**CHANGING, "parquet": ParquetTables}
