"""What a record does to the table of its topic. A table keeps the mode of its first run.

append: adds a row. upsert: replaces the row of its key, or deletes it if the record has no value.
history: adds a row if it has a value, and ends the validity of the row before it.
"""

from dataclasses import dataclass

from pyspark.sql.types import StructType

from tidelog_pipelines.sinks.columns import TableMismatch
from tidelog_pipelines.transformations.values.debezium import ENVELOPES, NO_ENVELOPE

APPEND, UPSERT, HISTORY = MODES = ("append", "upsert", "history")
KEY = "key"
_MODE, _ENVELOPE, _COMMENT = "tidelog.mode", "tidelog.envelope", "comment"


@dataclass(frozen=True)
class Mode:
    name: str = APPEND
    envelope: str = NO_ENVELOPE

    def __str__(self) -> str:
        unwraps = f" --envelope {self.envelope}" if self.envelope != NO_ENVELOPE else ""
        return f"--mode {self.name}{unwraps}"


_BY_COMMENT = {
    str(mode): mode for mode in (Mode(name, envelope) for name in MODES for envelope in ENVELOPES)
}


def mode_of(table: StructType) -> Mode:
    """The mode in which a table was created, from the metadata of its column `key`.

    Iceberg stores only the comment of a column, so the mode is in the comment as well.
    """
    kept = table[KEY].metadata if KEY in table.names else {}
    by_comment = _BY_COMMENT.get(kept.get(_COMMENT, ""), Mode())
    return Mode(kept.get(_MODE, by_comment.name), kept.get(_ENVELOPE, by_comment.envelope))


def marked(columns: StructType, mode: Mode) -> StructType:
    """The columns of a new table, with its mode."""
    found = StructType.fromJson(columns.jsonValue())
    found[KEY].metadata = {_MODE: mode.name, _ENVELOPE: mode.envelope, _COMMENT: str(mode)}
    return found


def check_mode(topic: str, table: StructType, mode: Mode) -> None:
    """Raise if a table was created in another mode."""
    if (kept := mode_of(table)) != mode:
        raise TableMismatch(
            f"the table of topic {topic} was written with {kept}, not {mode}. Give the earlier "
            "options, or another --out."
        )
