"""Decodes the records of any DataFrame with Kafka's columns as `ingest` does, without tables."""

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs.ingest import IngestSettings, plan
from tidelog_pipelines.jobs.value_columns import ValueColumns
from tidelog_pipelines.sinks.destinations import destination
from tidelog_pipelines.sinks.table_formats.no_tables import NoTables
from tidelog_pipelines.sinks.tables import Batch
from tidelog_pipelines.transformations.values.decoding import decoded, quarantined, table_rows

CONTENT, NUMBER = ("binary", "string"), ("int", "bigint", "smallint", "tinyint")
COLUMNS = {
    "topic": (("string",), "string"),
    "partition": (NUMBER, "int"),
    "offset": (NUMBER, "bigint"),
    "timestamp": (("timestamp",), "timestamp"),
    "key": (CONTENT, "binary"),
    "value": (CONTENT, "binary"),
}
"""The required columns, each with the accepted types and the type to which it is converted."""
HEADERS = "array<struct<key:string,value:binary>>"


class Decoded(NamedTuple):
    """The result: each record of the input is either in `rows` or in `quarantine`."""

    rows: DataFrame
    """The decoded records, with the columns of a topic's table and a column for the topic."""
    quarantine: DataFrame
    """The records that cannot be decoded. They are unchanged, and have a column for the reason."""


def decode(records: DataFrame, settings: IngestSettings) -> Decoded:
    chosen = plan(settings)
    has_types = chosen.value is not None and chosen.registry is None
    if records.isStreaming and not has_types:
        raise JobFailed(
            "the types of a stream's values must be known before it starts: give a --schema and no "
            "--schema-registry, or call decode in foreachBatch."
        )
    found = as_kafka_has_them(records)
    tables = NoTables(records.sparkSession, "")
    value, _ = ValueColumns(chosen, tables).prepare(destination(""), found, Batch("decode", 0))
    return Decoded(
        table_rows(decoded(found, chosen.key, value, also=("topic",))),
        quarantined(found, chosen.key, value),
    )


def as_kafka_has_them(records: DataFrame) -> DataFrame:
    """Only the columns that decoding needs, converted to the types that Spark's connector gives."""
    kinds = dict(records.dtypes)
    if missing := [name for name in COLUMNS if name not in kinds]:
        raise JobFailed(
            f"the DataFrame has no column {', '.join(missing)}; decode needs {', '.join(COLUMNS)}, "
            "as Spark's source for Kafka gives them."
        )
    for name, (allowed, _) in COLUMNS.items():
        if kinds[name] not in allowed:
            raise JobFailed(
                f"the column {name} is of type {kinds[name]}; decode needs {' or '.join(allowed)}."
            )
    if (headers := kinds.get("headers", HEADERS)) != HEADERS:
        raise JobFailed(f"the column headers is of type {headers}; decode needs {HEADERS}.")
    given = f.col("headers") if "headers" in kinds else f.lit(None).cast(HEADERS)
    columns = [f.col(name).cast(kind).alias(name) for name, (_, kind) in COLUMNS.items()]
    return records.select(*columns, given.alias("headers"))
