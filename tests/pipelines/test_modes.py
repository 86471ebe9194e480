"""A table keeps its mode, which is stored in the metadata of its columns."""

import pytest
from pyspark.sql.types import LongType, StringType, StructType

from tidelog_pipelines.jobs import ingest
from tidelog_pipelines.sinks import histories
from tidelog_pipelines.sinks.columns import TableMismatch
from tidelog_pipelines.sinks.modes import HISTORY, UPSERT, Mode, check_mode, marked, mode_of

COLUMNS = StructType().add("offset", LongType()).add("key", StringType())


def test_the_mode_of_a_table_is_in_its_columns() -> None:
    assert mode_of(COLUMNS) == Mode()
    assert mode_of(StructType()) == Mode()
    for mode in (Mode(UPSERT), Mode(HISTORY, "debezium")):
        table = marked(COLUMNS, mode)
        assert mode_of(table) == mode
        assert table.names == COLUMNS.names
        check_mode("t", table, mode)
    assert mode_of(COLUMNS) == Mode(), "the given columns have changed"


def test_another_mode_is_refused_with_a_sentence() -> None:
    table = marked(COLUMNS, Mode(UPSERT, "debezium"))
    with pytest.raises(
        TableMismatch,
        match=r"^the table of topic t was written with --mode upsert --envelope debezium, not "
        r"--mode upsert\. Give the earlier options, or another --out\.$",
    ):
        check_mode("t", table, Mode(UPSERT))
    with pytest.raises(TableMismatch, match="with --mode append, not --mode history"):
        check_mode("t", COLUMNS, Mode(HISTORY))


def test_a_history_has_the_columns_of_the_rows_and_their_validity() -> None:
    assert histories.columns(COLUMNS).names == [
        *("offset", "key", "_valid_from", "_valid_to", "_is_current"),
    ]
    assert COLUMNS.names == ["offset", "key"], "the given columns have changed"


def test_tables_whose_rows_change_by_key_are_not_partitioned_by_date() -> None:
    def columns(**options: str) -> tuple[str, ...]:
        found = ingest.IngestSettings(topics="t", out="o", **options)  # type: ignore[arg-type]
        return ingest.plan(found).layout.partition_by

    assert columns() == columns(mode="upsert", partition_by="date") == ("date",)
    assert columns(mode="upsert") == columns(mode="history") == columns(partition_by="none") == ()
