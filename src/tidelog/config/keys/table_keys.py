"""The keys of a topic's table.

Brokers only check and store them; `tidelog tables run` uses them.
"""

from dataclasses import replace

from tidelog.config.checks import one_of, unlimited_or_positive
from tidelog.config.key import boolean, int64, string, strings

_KEYS = (
    boolean(
        "tidelog.table.enable",
        False,
        "Whether `tidelog tables run` writes the records of the topic to a table.",
    ),
    strings(
        "tidelog.table.cluster.by",
        "",
        "The columns that cluster the files of the table, such as `key` or `value.id`; such a "
        "table is not partitioned.",
    ),
    string(
        "tidelog.table.format",
        "delta",
        "The format of the table. If the key is not set, `tables run --format` chooses the format.",
        one_of("delta", "iceberg"),
    ),
    string(
        "tidelog.table.mode",
        "append",
        "Whether the table has a row per record (`append`), a row per key (`upsert`), or each "
        "version of a key with its period (`history`).",
        one_of("append", "upsert", "history"),
    ),
    strings(
        "tidelog.table.partition.by",
        "date",
        "The columns that partition the files of a new table: `date`, `partition`, both or none.",
        one_of("date", "partition"),
    ),
    int64(
        "tidelog.table.retention.ms",
        -1,
        "The age of a record at which its row is deleted from the table; -1 means no limit.",
        unlimited_or_positive,
    ),
    string(
        "tidelog.table.value.format",
        "json",
        "How the values of the topic are decoded for the table.",
        one_of("json", "text", "raw", "avro", "protobuf"),
    ),
)

TABLE_KEYS = tuple(replace(key, internal=True) for key in _KEYS)
"""The keys are internal, so that a topic without a table is described with Kafka's keys only."""
