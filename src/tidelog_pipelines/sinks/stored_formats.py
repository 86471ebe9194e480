"""Finds the format in which each table of a directory is stored.

`tables run` lets each topic choose the format of its table, so one directory may hold tables of
several formats. The tables that belong to no topic, such as the quarantine, have the job's format.
"""

from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.settings import has_scheme
from tidelog_pipelines.sinks.columns import TableMismatch
from tidelog_pipelines.sinks.destinations import Destination, shown
from tidelog_pipelines.sinks.table_formats.formats import CHANGING, DELTA, ICEBERG
from tidelog_pipelines.sinks.tables import ABSENT, ChangingTables, in_catalog

SIGNS = {DELTA: "_delta_log", ICEBERG: "metadata/version-hint.text"}
"""For each format, a path that exists below every table of this format."""


class StoredFormats:
    """The tables of a directory, each in the format in which it is stored."""

    def __init__(self, spark: SparkSession, directory: str, kind: str) -> None:
        """`kind` is the format of new tables and of tables that belong to no topic."""
        self._spark = spark
        self._directory = directory.rstrip("/")
        self._opened: dict[str, ChangingTables] = {}
        self.own = self.in_format(kind)

    def in_format(self, kind: str) -> ChangingTables:
        if kind not in self._opened:
            found = CHANGING[kind](self._spark, self._directory)
            found.require()
            self._opened[kind] = found
        return self._opened[kind]

    def can_be(self, kind: str) -> bool:
        """Whether the session can use this format."""
        try:
            self.in_format(kind)
        except JobFailed:
            return False
        return True

    def of(self, name: str) -> ChangingTables:
        """The tables of the format that a table has, or of the job's format if there is none."""
        return self.in_format(self.format_of(name) or self.own.format)

    def format_of(self, name: str) -> str | None:
        """The format of a table. None if the table does not exist, or is in a catalog."""
        if in_catalog(name) is not None:
            return None
        return stored_format(self._spark, f"{self._directory}/{name}")


def stored_format(spark: SparkSession, path: str) -> str | None:
    """The format of the table at a path. None if there is no table."""
    found = (one for one, sign in SIGNS.items() if _exists(spark, f"{path}/{sign}"))
    return next(found, None)


def _exists(spark: SparkSession, path: str) -> bool:
    if not has_scheme(path):
        return Path(path).exists()
    try:
        _ = spark.read.format("binaryFile").load(path).schema
    except AnalysisException as error:
        if error.getCondition() in ABSENT:
            return False
        raise
    return True


def check_format(at: Destination, stored: str | None, chosen: str) -> None:
    """Raise if the table of a topic is stored in another format than the chosen one."""
    if stored not in (None, chosen):
        raise TableMismatch(
            f"the table {shown(at.table)} is of format {stored}, and its topic now asks for "
            f"{chosen}: set tidelog.table.format={stored} again, or use another --out."
        )


def needs_iceberg(directory: str) -> bool:
    """Whether a local directory has an Iceberg table. False for other file systems."""
    pattern = f"tables/*/{SIGNS[ICEBERG]}"
    return not has_scheme(directory) and any(Path(directory).glob(pattern))
