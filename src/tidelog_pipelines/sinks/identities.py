"""Stores the topic id of each table, because a name may later refer to another topic.

If a topic is deleted and created again, its offsets start at 0 and soon reach the offsets of the
old topic. Only the topic id distinguishes the two topics (KIP-516).
"""

from pyspark.sql import functions as f

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.sinks.tables import Batch, Tables
from tidelog_pipelines.sources.kafka import Topics

TABLE = "topics"


class TopicReplaced(JobFailed):
    """A topic of this name exists, but it is not the topic from which the table was created."""

    def __init__(self, topic: str, old: str, new: str) -> None:
        super().__init__(
            f"topic {topic} was deleted and created again (its id is {new}, and was {old}): the "
            "table holds records of the old topic under the same offsets. Write the new topic to "
            "another --out."
        )
        self.topic = topic


class Identities:
    def __init__(self, tables: Tables, topics: Topics) -> None:
        self._tables = tables
        self._topics = topics
        self._known: dict[str, str] | None = None

    def check(self, names: list[str]) -> dict[str, str]:
        """Return the ids of the topics. Raises `TopicReplaced` if the id of a topic has changed."""
        known = self._load()
        found = self._topics.ids(names)
        for name in names:
            if name in found and known.get(name, found[name]) != found[name]:
                raise TopicReplaced(name, known[name], found[name])
        return found

    def remember(self, found: dict[str, str], batch: Batch) -> None:
        """Store the ids of topics that are read for the first time."""
        known = self._load()
        new = sorted((name, id) for name, id in found.items() if name not in known)
        if new:
            rows = self._tables.frame(new, "topic STRING, topic_id STRING")
            self._tables.append(TABLE, rows.withColumn("date", f.current_date()), batch)
            known.update(new)

    def _load(self) -> dict[str, str]:
        if self._known is None:
            rows = self._tables.rows(TABLE)
            found = rows.select("topic", "topic_id").collect() if rows is not None else []
            self._known = {row["topic"]: row["topic_id"] for row in found}
        return self._known
