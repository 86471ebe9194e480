"""Whether `ingest --once` has anything to read, found without Spark.

A complete run leaves the ids of its topics in a file beside the checkpoint. If the cluster has the
same topics, they end where the checkpoint ends, and the options are the same, there is nothing to
do. Any doubt, such as a checkpoint that is not local, means that Spark has to look.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import TopicPartition

from tidelog_pipelines import streams
from tidelog_pipelines.jobs.summary import summarized
from tidelog_pipelines.settings import KafkaSettings, has_scheme
from tidelog_pipelines.sinks.group_offsets import GroupOffsets
from tidelog_pipelines.sources.checkpoint import Checkpoint, spans_between
from tidelog_pipelines.sources.kafka import Subscription, Topics
from tidelog_pipelines.sources.log_offsets import LogOffsets

FILE = ".tidelog.topics"
"""In the directory of the checkpoint. The name begins with a dot, because Spark ignores those."""
FEW = 100_000
"""Up to this many records, a run is short."""


OPTIONS = (
    "topics",
    "pattern",
    "table",
    "format",
    "value_format",
    "schema",
    "message",
    "schema_registry",
    "avro_registry_header",
    "avro_schema_id",
    "max_value_bytes",
    "max_depth",
    "max_fields",
    "key_format",
    "partition_by",
    "cluster_by",
    "mode",
    "envelope",
)
"""The options of a run that its tables depend on."""


def digest(settings: object) -> str:
    """A hash of the options that the tables depend on, with the content of a schema's file."""
    values = {name: getattr(settings, name) for name in OPTIONS}
    file = Path(values["schema"])
    if values["schema"] and file.is_file():
        values["schema"] = file.read_text(errors="replace")
    return hashlib.sha256(repr(values).encode()).hexdigest()


class Backlog(NamedTuple):
    """What is left to read."""

    is_nothing: bool = False
    """Whether it is certain that there is nothing to read."""
    records: int | None = None
    """How many offsets are left, if that is known."""

    @property
    def is_short(self) -> bool:
        return self.records is not None and self.records <= FEW


UNKNOWN = Backlog()


def backlog(
    kafka: KafkaSettings, subscription: Subscription, checkpoint: str, options: str
) -> Backlog:
    """What a run with this checkpoint and these options would read."""
    if has_scheme(checkpoint) or not _is_local(kafka.master, kafka.remote):
        return UNKNOWN
    topics, found = Topics(kafka), Checkpoint(None, checkpoint)
    read = found.committed_ends()
    ends = LogOffsets(kafka).ends(
        TopicPartition(topic, partition)
        for topic, partitions in topics.partitions(subscription).items()
        for partition in partitions
    )
    spans = spans_between(read, ends)
    records = sum(span.end - span.start for of_topic in spans.values() for span in of_topic)
    is_at_end = bool(ends) and ends == read and found.is_complete()
    is_same = is_at_end and _known_ids(found, options) == topics.ids(list(ends))
    return Backlog(is_nothing=is_same, records=records)


def rest(kafka: KafkaSettings, checkpoint: str, group: str, summary: str) -> None:
    """Do what remains if there is nothing to read: commit the offsets, and write the summary."""
    found = Checkpoint(None, checkpoint)
    with summarized(summary, found, None):
        if group:
            offsets = GroupOffsets(kafka, group)
            if refusal := offsets.commit(found.committed_ends()):
                streams.say(f"tidelog: {refusal}")
            offsets.close()


def note(checkpoint: Checkpoint, ids: dict[str, str], options: str) -> None:
    """Note that a run has read the topics with these ids up to the end of the checkpoint."""
    if checkpoint.directory is None:
        return
    file = checkpoint.directory / FILE
    fresh = file.with_name(f"{FILE}.{os.getpid()}")
    noted = {"query": checkpoint.query_id(), "options": options, "topics": ids}
    fresh.write_text(json.dumps(noted))
    fresh.replace(file)


def _known_ids(checkpoint: Checkpoint, options: str) -> dict[str, str] | None:
    """The ids that the last complete run has noted. None if there was none with these options."""
    assert checkpoint.directory is not None
    try:
        found = json.loads((checkpoint.directory / FILE).read_text())
        is_ours = (found["query"], found["options"]) == (checkpoint.query_id(), options)
        return dict(found["topics"]) if is_ours else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_local(master: str, remote: str) -> bool:
    """Whether a path without a scheme is a path of this machine."""
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    return not remote and not is_submitted and (not master or master.startswith("local"))
