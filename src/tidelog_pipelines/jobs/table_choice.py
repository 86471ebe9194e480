"""The settings of `ingest` that determine how tables are created, and checks of these settings."""

from typing import NamedTuple

from tidelog_pipelines.jobs.value_columns import UNWRAPPED
from tidelog_pipelines.jobs.value_formats import ValueSource
from tidelog_pipelines.settings import clustering
from tidelog_pipelines.sinks.destinations import check_name
from tidelog_pipelines.sinks.modes import APPEND, Mode
from tidelog_pipelines.sinks.table_formats.formats import CHANGING
from tidelog_pipelines.sinks.tables import Layout
from tidelog_pipelines.transformations.values.debezium import NO_ENVELOPE

COMMITTED = " or ".join(CHANGING)


class TableChoice(NamedTuple):
    table: str
    format: str
    mode: Mode
    partition_by: str
    cluster_by: str

    def check(self, source: ValueSource) -> None:
        """Raise ValueError if the settings do not fit each other or the format of the values."""
        self._check_table()
        if self.mode.name != APPEND and self.format not in CHANGING:
            raise ValueError(f"--mode {self.mode.name} needs --format {COMMITTED}")
        envelope = self.mode.envelope
        if envelope == NO_ENVELOPE:
            return
        if self.mode.name == APPEND:
            raise ValueError(
                f"--envelope {envelope} needs --mode upsert or history; --mode append stores "
                "envelopes as they are"
            )
        is_registered = source.format == "avro" and source.registry.url
        if source.format != "json" and not is_registered:
            raise ValueError(f"--envelope {envelope} is for {UNWRAPPED}")

    def _check_table(self) -> None:
        if self.table:
            check_name(self.table)
        clustered = clustering(self.cluster_by)
        if clustered and self.partition_by not in ("auto", "none"):
            raise ValueError("--cluster-by and --partition-by exclude each other: give one of them")
        if clustered and self.format != "delta":
            raise ValueError("--cluster-by needs --format delta")
        if self.format in CHANGING:
            return
        if self.partition_by not in ("auto", "date"):
            raise ValueError(f"--partition-by needs --format {COMMITTED}")
        if "." in self.table:
            raise ValueError(f"a --table of a catalog needs --format {COMMITTED}")

    @property
    def layout(self) -> Layout:
        """How the files of new tables are arranged."""
        clustered = clustering(self.cluster_by)
        # In a table by key, the date of a row changes with each new record of the key. With
        # partitions by date, the row would then move to another partition.
        automatic = "date" if self.mode.name == APPEND and not clustered else "none"
        chosen = automatic if self.partition_by == "auto" else self.partition_by
        return Layout(() if chosen == "none" else (chosen,), clustered)
