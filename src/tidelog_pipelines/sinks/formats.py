"""The formats of tables, by the names that users give."""

from tidelog_pipelines.sinks.delta_tables import DeltaTables
from tidelog_pipelines.sinks.parquet_tables import ParquetTables
from tidelog_pipelines.sinks.tables import ChangingTables, Tables

CHANGING: dict[str, type[ChangingTables]] = {"delta": DeltaTables}
"""The formats with commits."""
FORMATS: dict[str, type[Tables]] = {**CHANGING, "parquet": ParquetTables}
