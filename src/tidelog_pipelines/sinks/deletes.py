"""Remembers the deletes of a topic's keys, because the table no longer has rows for them.

Otherwise an older record that is read or replayed later would add a deleted key again.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog_pipelines.sinks.tables import RECORD, ChangingTables, Layout, same
from tidelog_pipelines.transformations.values.python_decoding import DELETED
from tidelog_pipelines.transformations.versions import EVENT, is_newer

DIRECTORY = "deleted/"


def name_of(topic: str) -> str:
    return f"{DIRECTORY}{topic}"


class Deletes:
    def __init__(self, tables: ChangingTables, topic: str) -> None:
        self._tables = tables
        self._name = name_of(topic)

    def rows(self) -> DataFrame | None:
        return self._tables.rows(self._name)

    def remember_newest(self, records: DataFrame) -> None:
        """Keep the newest delete of each key. `records` has at most one record per key."""
        self._merge(
            records,
            "t.key = s.key",
            f"WHEN MATCHED AND {is_newer('s', 't')} THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *",
        )

    def remember_all(self, records: DataFrame) -> None:
        """Keep every delete."""
        self._merge(records, same(RECORD), "WHEN NOT MATCHED THEN INSERT *")

    def _merge(self, records: DataFrame, condition: str, clauses: str) -> None:
        found = records.where(f.col(DELETED)).select(*EVENT, "date")
        if self.rows() is None:
            self._tables.create(self._name, found.schema, Layout())
        self._tables.merge(self._name, found, condition, clauses)
