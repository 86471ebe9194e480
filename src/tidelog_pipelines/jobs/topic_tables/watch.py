"""Looks for the topics that are tables: in the cluster's configuration, a file and the flags."""

from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # they have no __all__
    AdminClient,
    ConfigResource,
    TopicMetadata,
)

from tidelog_pipelines.failures import UNREACHABLE, JobFailed
from tidelog_pipelines.jobs.topic_tables import table_settings
from tidelog_pipelines.jobs.topic_tables.table_settings import TableSettings
from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.checkpoint import Ends
from tidelog_pipelines.sources.kafka import ANSWER_SECONDS, Topics, client_configuration
from tidelog_pipelines.sources.log_offsets import LogOffsets

_NOT_OURS = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
)


class TableTopic(NamedTuple):
    """A topic whose records are written to a table."""

    settings: TableSettings
    id: str = ""
    partitions: tuple[int, ...] = ()
    problem: str = ""
    """Why the topic cannot be read now."""


class Look(NamedTuple):
    """The state of the cluster's table topics at one moment."""

    tables: dict[str, TableTopic]
    existing: frozenset[str]
    ends: Ends
    """The log end offset of each partition, by topic. Only for topics that are tables."""


class Watch:
    def __init__(self, kafka: KafkaSettings, names: Iterable[str], file: str) -> None:
        self._where = kafka.bootstrap_server
        self._names = tuple(names)
        self._file = file
        self._topics = Topics(kafka)
        self._admin = AdminClient(client_configuration(kafka))
        self._log_offsets = LogOffsets(kafka)

    def look(self) -> Look:
        """Ask the cluster for its tables. Raises if no broker answers, or if the file is wrong."""
        chosen = dict.fromkeys(self._names, table_settings.DEFAULT)
        if self._file:
            chosen |= table_settings.of_file(self._file)
        try:
            existing = self._admin.list_topics(timeout=ANSWER_SECONDS).topics
            configured = self._configured(name for name in existing if name not in chosen)
        except KafkaException as error:
            raise JobFailed(
                f"{UNREACHABLE} at {self._where} ({error.args[0].str()}); is the cluster up, and "
                "--bootstrap-server right?"
            ) from None
        wanted = {**configured, **chosen}
        ids = self._topics.ids([name for name in wanted if name in existing])
        tables = {
            name: _table_topic(settings, existing.get(name), ids.get(name, ""))
            for name, settings in wanted.items()
        }
        readable = [
            TopicPartition(name, partition)
            for name, one in tables.items()
            for partition in (() if one.problem else one.partitions)
        ]
        return Look(tables, frozenset(existing), self._log_offsets.ends(readable))

    def _configured(self, names: Iterable[str]) -> dict[str, TableSettings]:
        """The tables among these topics, according to their configuration."""
        own = [name for name in names if not name.startswith("__")]
        if not own:
            return {}
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in own]
        asked = self._admin.describe_configs(resources, request_timeout=ANSWER_SECONDS)
        found = {}
        for resource, answer in asked.items():
            try:
                entries = answer.result()
            except KafkaException as error:
                if error.args[0].code() not in _NOT_OURS:
                    raise
                continue  # the topic has just been deleted, or this user may not see it
            # An empty value counts as set. It means that no columns partition the table.
            values = {n: entry.value for n, entry in entries.items() if entry.value is not None}
            settings = table_settings.of_configuration(values)
            if settings is not None:
                found[resource.name] = settings
        return found


def _table_topic(settings: TableSettings, found: TopicMetadata | None, id: str) -> TableTopic:
    if found is None:
        return TableTopic(settings, problem="the topic does not exist")
    partitions = tuple(sorted(found.partitions))
    leaderless = [one for one in partitions if found.partitions[one].leader < 0]
    problem = ""
    if leaderless or not partitions:
        problem = f"partition {leaderless[0] if leaderless else 0} has no leader"
    return TableTopic(settings, id, partitions, problem)
