"""Makes an output directory of `ingest` with records in quarantine, without a cluster."""

import datetime
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Row, SparkSession

from tidelog_pipelines.sinks.table_formats.delta_tables import DeltaTables
from tidelog_pipelines.sinks.tables import Batch

COLUMNS = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, date DATE, reason STRING"
)
TIME = datetime.datetime(2026, 5, 4, 3, 2, 1, tzinfo=datetime.UTC)


class Bad(NamedTuple):
    """A record in quarantine."""

    topic: str
    partition: int
    offset: int
    value: bytes
    reason: str
    time: datetime.datetime | None = TIME


class Lake:
    """The --out directory of an ingest."""

    def __init__(self, spark: SparkSession, out: Path) -> None:
        self.tables = DeltaTables(spark, str(out))

    def quarantine(self, *bad: Bad) -> None:
        rows = [
            (
                *(one.topic, one.partition, one.offset, one.time, b"k", one.value, [("h", b"v")]),
                *(one.time.date() if one.time else None, one.reason),
            )
            for one in bad
        ]
        self.tables.append("quarantine", self.tables.frame(rows, COLUMNS), Batch("ingest", 0))

    def rows(self, name: str, *columns: str) -> list[Row]:
        found = self.tables.rows(name)
        assert found is not None, f"there is no table {name}"
        return found.select(*columns).orderBy(*columns).collect()

    def in_quarantine(self) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self.rows("quarantine", "topic", "partition", "offset")]

    def commits(self, name: str) -> int:
        """How many commits a table has."""
        return len(list((Path(self.tables.path(name)) / "_delta_log").glob("*.json")))
