"""`replay`: decodes quarantined records again, with other options or a newer version.

The job needs no cluster, because the quarantine holds the unchanged records.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tidelog_pipelines import failures
from tidelog_pipelines.jobs.ingest import IngestSettings, plan
from tidelog_pipelines.jobs.replaying import Choice, Replay, Replayed
from tidelog_pipelines.jobs.value_formats import registry_plan
from tidelog_pipelines.session import spark_session
from tidelog_pipelines.settings import SparkSettings, like, located, parse, setting
from tidelog_pipelines.sinks.claims import claimed, require_directory, turn
from tidelog_pipelines.sinks.stored_formats import needs_iceberg
from tidelog_pipelines.sinks.table_formats.formats import CHANGING, ICEBERG
from tidelog_pipelines.sources.registry import RegistryClient

ABOUT = """\
Decode the records in quarantine again, with these options. A record that passes moves to the table
of its topic, exactly once, even if this job is killed (kill -9). A record that fails again stays in
quarantine, with the newest reason and the number of attempts. No ingest may use the same --out at
the same time.
"""
DECODER = (
    "value_format",
    "schema",
    "message",
    "schema_registry",
    "schema_registry_auth",
    "avro_registry_header",
    "avro_schema_id",
    "max_value_bytes",
    "max_depth",
    "max_fields",
    "key_format",
)
"""The settings that replay shares with ingest."""


@dataclass(frozen=True, kw_only=True)
class ReplaySettings(SparkSettings):
    out: str = setting(metavar="DIR", meaning="the --out directory of ingest")
    topics: str = setting(
        "", metavar="NAME,...", meaning="only records of these topics; of all topics, if left out"
    )
    reason: str = setting(
        "", metavar="TEXT", meaning="only records whose reason contains this text"
    )
    format: str = setting("delta", choices=tuple(CHANGING), meaning="the format of the tables")
    dry_run: bool = setting(False, meaning="print the result without writing anything")
    value_format: str = like(IngestSettings, "value_format")
    schema: str = like(IngestSettings, "schema")
    message: str = like(IngestSettings, "message")
    schema_registry: str = like(IngestSettings, "schema_registry")
    schema_registry_auth: str = like(IngestSettings, "schema_registry_auth")
    avro_registry_header: bool = like(IngestSettings, "avro_registry_header")
    avro_schema_id: int = like(IngestSettings, "avro_schema_id")
    max_value_bytes: int = like(IngestSettings, "max_value_bytes")
    max_depth: int = like(IngestSettings, "max_depth")
    max_fields: int = like(IngestSettings, "max_fields")
    key_format: str = like(IngestSettings, "key_format")

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.of_ingest  # this checks the settings that both jobs share

    @property
    def of_ingest(self) -> IngestSettings:
        """The settings of an ingest that would decode records in the same way."""
        shared = {name: getattr(self, name) for name in DECODER}
        return IngestSettings(out=self.out, pattern=".*", format=self.format, **shared)

    @property
    def choice(self) -> Choice:
        return Choice(tuple(filter(None, self.topics.split(","))), self.reason)


def main(arguments: list[str] | None = None) -> int:
    return failures.run(lambda: replay(parsed(sys.argv[1:] if arguments is None else arguments)))


def parsed(arguments: list[str]) -> ReplaySettings:
    return parse(ReplaySettings, "replay", arguments, ABOUT)


def replay(settings: ReplaySettings) -> int:
    """Run the job in its own session."""
    require_directory(settings.out)
    if (registered := registry_plan(settings.of_ingest.source)) is not None:
        RegistryClient(registered.registry).require()
    if settings.dry_run:
        return _replay(settings)
    with claimed(located(settings.out)):
        return _replay(settings)


def _replay(settings: ReplaySettings) -> int:
    iceberg = settings.format == ICEBERG or needs_iceberg(located(settings.out))
    spark = spark_session(settings, "replay", iceberg=iceberg)
    try:
        _run(spark, settings)
    finally:
        spark.stop()
    return 0


def run(spark: SparkSession, settings: ReplaySettings) -> None:
    """Run the job in this session."""
    require_directory(settings.out)
    if settings.dry_run:
        return _run(spark, settings)
    with claimed(located(settings.out)):
        return _run(spark, settings)


def _run(spark: SparkSession, settings: ReplaySettings) -> None:
    job = Replay(spark, plan(settings.of_ingest), settings.choice)
    for topic in job.topics():
        if settings.dry_run:
            found = job.try_out(topic)
        else:
            with turn(located(settings.out)):
                found = job.replay(topic)
        print(*summary(found, settings.dry_run), sep="\n", flush=True)


def summary(found: Replayed, is_dry: bool) -> Iterator[str]:
    """One line about a topic, and one line for each reason why records have failed again."""
    failed = sum(found.reasons.values())
    if not found.passed and not failed:
        yield f"{found.topic}: no such records in quarantine"
    elif is_dry:
        yield f"{found.topic}: {found.passed:,} would pass, {failed:,} would stay in quarantine"
    else:
        yield f"{found.topic}: {found.passed:,} replayed, {failed:,} still in quarantine"
    for reason, count in found.reasons.items():
        yield f"  {count:,}: {reason}"


if __name__ == "__main__":
    sys.exit(main())
