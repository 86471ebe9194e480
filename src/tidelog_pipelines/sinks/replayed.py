"""Remembers records that `replay` has moved from quarantine to tables whose rows change by key.

A later record of the same key may have replaced such a record in the table. If the topic is read
again, the remembered records are not put into quarantine again.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog_pipelines.sinks.tables import (
    RECORD,
    ChangingTables,
    Layout,
    Tables,
    same,
    within,
)
from tidelog_pipelines.sources.checkpoint import Span

TABLE = "replayed"


def remember(tables: ChangingTables, topic: str, records: DataFrame) -> None:
    """Keep the partitions and offsets of these records."""
    found = records.select(f.lit(topic).alias("topic"), *RECORD, f.current_date().alias("date"))
    if tables.rows(TABLE) is None:
        tables.create(TABLE, found.schema, Layout())
    tables.merge(TABLE, found, same(("topic", *RECORD)), "WHEN NOT MATCHED THEN INSERT *")


def of_topic(tables: Tables, topic: str, spans: Sequence[Span]) -> DataFrame | None:
    """The remembered records of a topic in these spans.

    None if `replay` has never moved a record.
    """
    found = tables.rows(TABLE)
    return None if found is None else found.where((f.col("topic") == topic) & within(spans))
