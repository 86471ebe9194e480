"""The expected content of tables whose rows change by key. DuckDB computes it from raw records."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
from pyspark.sql import SparkSession

COLUMNS = "partition INTEGER, pos BIGINT, millis BIGINT, key VARCHAR, value VARCHAR"
GOOD = "key IS NOT NULL AND (value IS NULL OR value LIKE '{\"n\":%}')"
"""Good records have a key and a value such as {"n":5}, or no value. All others are bad."""
N = "CAST(regexp_extract(value, '[0-9]+') AS BIGINT)"


class Raw(NamedTuple):
    """A record as it is in the topic; its timestamp is in milliseconds."""

    partition: int
    offset: int
    millis: int
    key: str | None
    value: str | None


def _answer(raw: Iterable[Raw], sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as model:
        model.execute(f"CREATE TABLE raw ({COLUMNS})")
        model.executemany("INSERT INTO raw VALUES (?, ?, ?, ?, ?)", list(raw))
        return model.execute(sql).fetchall()


def _in_order() -> str:
    """SQL for the good records. `since` is the largest timestamp so far in the key's partition."""
    return (
        f"WITH good AS (SELECT *, max(millis) OVER (PARTITION BY key, partition ORDER BY pos "
        f"ROWS UNBOUNDED PRECEDING) AS since, {N} AS n FROM raw WHERE {GOOD}) "
    )


def upserted(raw: Iterable[Raw]) -> list[tuple[Any, ...]]:
    """Key, partition, offset and n of the newest record of each key that has a value."""
    return _answer(
        raw,
        f"{_in_order()} SELECT key, partition, pos, n FROM good "
        "QUALIFY row_number() OVER (PARTITION BY key ORDER BY since DESC, partition DESC, pos DESC)"
        " = 1 AND value IS NOT NULL ORDER BY ALL",
    )


def history(raw: Iterable[Raw]) -> list[tuple[Any, ...]]:
    """Each version of a key, with its validity in milliseconds, and whether it is current."""
    return _answer(
        raw,
        f"{_in_order()}, timed AS (SELECT *, lead(since) OVER (PARTITION BY key "
        "ORDER BY since, partition, pos) AS until FROM good) SELECT key, partition, pos, n, "
        "since, until, until IS NULL FROM timed WHERE value IS NOT NULL ORDER BY ALL",
    )


MODELS = {"upsert": upserted, "history": history}
VALIDITY = {
    "upsert": "",
    "history": ", epoch_ms(_valid_from), epoch_ms(_valid_to), _is_current",
}


def table(spark: SparkSession, path: Path, mode: str) -> list[tuple[Any, ...]]:
    """The same columns of the real table. DuckDB reads them from the table's files."""
    files: Sequence[str] = spark.read.format("delta").load(str(path)).inputFiles()
    if not files:
        return []
    with duckdb.connect() as reader:
        return reader.execute(
            f'SELECT key, partition, "offset", value.n{VALIDITY[mode]} '
            f"FROM read_parquet({list(files)!r}) ORDER BY ALL"
        ).fetchall()
