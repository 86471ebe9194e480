"""What `ingest` and `replay` do with records, derived from their settings as plain values."""

import hashlib
import re
from dataclasses import replace
from importlib import metadata
from typing import NamedTuple

from tidelog_pipelines.jobs.writer_schemas import RegistryPlan
from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sinks.destinations import Destination, destination
from tidelog_pipelines.sinks.keyed import Target
from tidelog_pipelines.sinks.modes import APPEND, Mode
from tidelog_pipelines.sinks.tables import BY_DATE, Layout
from tidelog_pipelines.transformations.values.debezium import NO_ENVELOPE
from tidelog_pipelines.transformations.values.decoding import Format, Raw, Text
from tidelog_pipelines.transformations.values.strict_json import DEFAULT_LIMITS, Limits

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""The part of a function's repr that differs from process to process."""


class Plan(NamedTuple):
    """The plan of an ingestion.

    It consists of plain values, so that a Connect server can unpickle it.
    """

    kafka: KafkaSettings
    out: str
    format: str
    checkpoint: str
    key: Raw | Text
    value: Format | None
    """None for JSON whose columns are inferred from the values."""
    compact_every: int
    skips_deleted: bool = False
    """Whether the job continues if a topic is deleted."""
    limits: Limits = DEFAULT_LIMITS
    most_fields: int = 1_000
    dead_letter_topic: str = ""
    registry: RegistryPlan | None = None
    """Set if values are decoded with schemas of a registry."""
    layout: Layout = BY_DATE
    """How the files of new tables are arranged."""
    table: str = ""
    """The table of all topics, as the user gives it; empty if each topic has its own table."""
    mode: str = APPEND
    """What a record does to the table: adds a row, or changes the row or the history of its key."""
    envelope: str = NO_ENVELOPE
    """The kind of envelope around the values, if any. The table stores the row inside it."""


def key_of(plan: Plan) -> Raw | Text:
    """How keys are decoded. A key is required if the rows of the table change by key."""
    return replace(plan.key, is_required=plan.mode != APPEND)


def destination_of(plan: Plan, topic: str) -> Destination:
    return destination(topic, plan.table)


def target_of(plan: Plan, at: Destination) -> Target:
    """The table at this destination, for every mode except append."""
    return Target(at, Mode(plan.mode, plan.envelope), plan.layout)


def decoder_of(plan: Plan) -> str:
    """A short name of the decoder. The name depends on the options and on Tidelog's version."""
    try:
        version = metadata.version("tidelog")
    except metadata.PackageNotFoundError:
        version = "unknown"  # the job runs from its sources
    how = (plan.value, plan.limits, plan.registry, plan.envelope)
    options = repr((version, key_of(plan), *how))
    stable = _ADDRESS.sub("", options)
    kind = "json" if plan.value is None else type(plan.value).__name__.lower()
    return f"{kind}-{hashlib.sha256(stable.encode()).hexdigest()[:12]}"
