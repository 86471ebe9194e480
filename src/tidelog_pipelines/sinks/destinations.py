"""The table of a topic: its own table, or a table with the records of several topics.

Records of two topics may have the same partition and offset. So a table of several topics also has
a topic column, and topic, partition and offset together identify a record.
"""

import re
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from tidelog_pipelines.sinks.columns import TableMismatch
from tidelog_pipelines.sinks.tables import CATALOG, RECORD

TOPIC = "topic"
_TABLES = "tables/"
_IN_OUT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}")
_IN_CATALOG = re.compile(r"[A-Za-z0-9_-]{1,200}(\.[A-Za-z0-9_-]{1,200})+")


class Destination(NamedTuple):
    """The table that has the records of a topic."""

    topic: str
    table: str
    """The table's name in `Tables`."""
    is_shared: bool = False
    """Whether the table has a topic column, because it may have records of several topics."""

    @property
    def topic_column(self) -> tuple[str, ...]:
        return (TOPIC,) if self.is_shared else ()

    @property
    def record(self) -> tuple[str, ...]:
        """The columns that identify a record."""
        return (*self.topic_column, *RECORD)

    @property
    def schemas(self) -> str:
        """The key under which the schemas of writers are stored: the shared table or the topic."""
        return self.table if self.is_shared else self.topic

    @property
    def part(self) -> str:
        """The name of this topic's part of a batch; empty if the table is not shared."""
        return self.topic if self.is_shared else ""

    def of_topic(self, rows: DataFrame) -> DataFrame:
        """The rows of the table that belong to this topic."""
        return rows.where(f.col(TOPIC) == self.topic) if self.is_shared else rows

    def with_topic(self, rows: DataFrame) -> DataFrame:
        """Rows of this topic, with a topic column if the table has one."""
        return rows.withColumn(TOPIC, f.lit(self.topic)) if self.is_shared else rows

    def check(self, existing: StructType) -> None:
        """Raise if the table lacks a needed column, or has a topic column but is not shared."""
        if missing := [name for name in self.record if name not in existing.names]:
            raise TableMismatch(
                f"the table {shown(self.table)} exists, and has no column {missing[0]}: it was not "
                "written with --table. Give another name, or another --out."
            )
        if not self.is_shared and TOPIC in existing.names:
            raise TableMismatch(
                f"the table {shown(self.table)} was written with --table, and is not the one of "
                f"topic {self.topic} alone. Give --table, or another --out."
            )


def destination(topic: str, table: str = "") -> Destination:
    """The table of a topic. `table` is what the user gives as --table, or empty."""
    return stored(topic, name_of(table) if table else None)


def stored(topic: str, name: str | None) -> Destination:
    """The table of a topic. `name` is the table of several topics, or None."""
    return Destination(topic, name or f"{_TABLES}{topic}", is_shared=name is not None)


def name_of(table: str) -> str:
    """The name in `Tables` of the table that the user gives as --table."""
    return f"{CATALOG}{table}" if "." in table else f"{_TABLES}{table}"


def shown(name: str) -> str:
    """A name in `Tables`, as the user gives it or finds it in --out."""
    return name.removeprefix(CATALOG)


def view_of(name: str) -> str:
    """The name by which a query refers to a table in --out."""
    return name.removeprefix(_TABLES)


def check_name(table: str) -> None:
    """Raise ValueError if --table is neither the name of a table in --out nor of a catalog."""
    if not (_IN_OUT.fullmatch(table) or _IN_CATALOG.fullmatch(table)):
        raise ValueError(
            "--table is a name of letters, digits, _ and -, or a name of a catalog such as "
            f"main.sales.orders, not {table!r}"
        )
