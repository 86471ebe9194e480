"""Stores the topic id and the table of each topic.

If a topic is deleted and created again, its offsets start at 0 and soon reach the offsets of the
old topic. Only the topic id distinguishes the two topics (KIP-516).
"""

from typing import NamedTuple

from pyspark.sql import functions as f

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.sinks.columns import TableMismatch
from tidelog_pipelines.sinks.destinations import Destination, destination, shown, stored
from tidelog_pipelines.sinks.tables import Batch, Tables
from tidelog_pipelines.sources.kafka import Topics

TABLE = "topics"
_COLUMNS = "topic STRING, topic_id STRING, `table` STRING"


class TopicReplaced(JobFailed):
    """A topic of this name exists, but it is not the topic from which the table was created."""

    def __init__(self, topic: str, old: str, new: str) -> None:
        super().__init__(
            f"topic {topic} was deleted and created again (its id is {new}, and was {old}): the "
            "table holds records of the old topic under the same offsets. Write the new topic to "
            "another --out."
        )
        self.topic = topic


class _Known(NamedTuple):
    id: str
    table: str | None
    """None if the topic has a table of its own."""


class Identities:
    def __init__(self, tables: Tables, topics: Topics, table: str = "") -> None:
        """`table` is the table of all topics, as the user gives it, or empty."""
        self._tables = tables
        self._topics = topics
        self._table = table
        self._known: dict[str, _Known] | None = None

    def are_known(self) -> bool:
        """Whether the id of any topic is stored."""
        return bool(self._load())

    def check(self, names: list[str]) -> dict[str, str]:
        """Return the ids of the topics.

        Raises `TopicReplaced` if the id of a topic has changed, and `TableMismatch` if its records
        are in another table.
        """
        known = self._load()
        found = self._topics.ids(names)
        for name in names:
            if (before := known.get(name)) is None:
                continue
            if name in found and before.id != found[name]:
                raise TopicReplaced(name, before.id, found[name])
            kept, chosen = stored(name, before.table), destination(name, self._table)
            if kept != chosen:
                raise TableMismatch(
                    f"the records of topic {name} are in the table {shown(kept.table)}, not in "
                    f"{shown(chosen.table)}: give the earlier --table, or another --out."
                )
        return found

    def remember(self, found: dict[str, str], batch: Batch) -> None:
        """Store the ids of topics that are read for the first time."""
        known = self._load()
        new = {
            name: _Known(found[name], self._shared_table(name))
            for name in sorted(found)
            if name not in known
        }
        if new:
            rows = self._tables.frame([(name, *one) for name, one in new.items()], _COLUMNS)
            self._tables.append(TABLE, rows.withColumn("date", f.current_date()), batch)
            known.update(new)

    def _shared_table(self, topic: str) -> str | None:
        at = destination(topic, self._table)
        return at.table if at.is_shared else None

    def _load(self) -> dict[str, _Known]:
        if self._known is None:
            self._known = _read(self._tables) or {}
        return self._known


def destinations(tables: Tables) -> dict[str, Destination] | None:
    """The tables by topic. None if nothing was ever written."""
    found = _read(tables)
    if found is None:
        return None
    return {topic: stored(topic, found[topic].table) for topic in sorted(found)}


def _read(tables: Tables) -> dict[str, _Known] | None:
    rows = tables.rows(TABLE)
    if rows is None:
        return None
    # Earlier versions had no tables of several topics.
    table = f.col("table") if "table" in rows.columns else f.lit(None).cast("string")
    found = rows.select("topic", "topic_id", table.alias("table")).collect()
    return {row["topic"]: _Known(row["topic_id"], row["table"]) for row in found}
