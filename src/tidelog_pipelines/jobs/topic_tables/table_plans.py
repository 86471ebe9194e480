"""Creates the plan of each topic from the settings of the job and the topic's settings."""

from dataclasses import dataclass

from tidelog_pipelines.jobs.plan import Plan
from tidelog_pipelines.jobs.topic_tables.table_settings import TableSettings
from tidelog_pipelines.jobs.value_formats import ValueSource, registry_plan, value_format
from tidelog_pipelines.settings import KafkaSettings, check_clustering
from tidelog_pipelines.sinks.modes import APPEND
from tidelog_pipelines.sinks.table_formats.formats import DELTA, ICEBERG
from tidelog_pipelines.sinks.tables import Layout
from tidelog_pipelines.sources.registry import Registry
from tidelog_pipelines.transformations.values.decoding import Text
from tidelog_pipelines.transformations.values.strict_json import DEFAULT_LIMITS

REGISTERED = ("avro", "protobuf")
"""The formats whose schemas are in a registry."""


@dataclass(frozen=True)
class TablePlans:
    kafka: KafkaSettings
    out: str
    registry: Registry
    compact_every: int
    format: str = DELTA
    """The format of the tables whose topics do not choose one, and of the quarantine."""
    has_iceberg: bool = True
    """Whether the session can use Iceberg tables."""

    def shared(self, checkpoint: str) -> Plan:
        """The common part of all plans, without the settings of a topic."""
        return Plan(
            kafka=self.kafka,
            out=self.out,
            format=self.format,
            checkpoint=checkpoint,
            key=Text(),
            value=None,
            compact_every=self.compact_every,
            skips_deleted=True,
        )

    def of(self, settings: TableSettings, checkpoint: str = "") -> Plan:
        """The plan of a topic. Raises ValueError or JobFailed if the settings are impossible."""
        if settings.format in REGISTERED and not self.registry.url:
            raise ValueError(
                f"the format {settings.format} needs a schema registry: start `tables run` with "
                "--schema-registry."
            )
        table_format = settings.table_format or self.format
        if table_format == ICEBERG and not self.has_iceberg:
            raise ValueError(
                "the topic asks for an Iceberg table, and this job was started without Iceberg. "
                "Start the job again: it loads Iceberg if a topic asks for it at that time."
            )
        check_clustering(settings.cluster_by)
        if settings.cluster_by and table_format != DELTA:
            raise ValueError("tidelog.table.cluster.by needs a table of format delta.")
        if settings.cluster_by and settings.partition_by:
            raise ValueError("a table is either partitioned or clustered, not both.")
        source = ValueSource(
            "string" if settings.format == "text" else settings.format,
            schema="",
            message="",
            registry=self.registry if settings.format in REGISTERED else Registry(""),
            avro_schema_id=-1,
            avro_registry_header=False,
            limits=DEFAULT_LIMITS,
        )
        source.check()
        return self.shared(checkpoint)._replace(
            format=table_format,
            value=value_format(source),
            registry=registry_plan(source),
            layout=Layout(_partition_by(settings), settings.cluster_by),
            mode=settings.mode,
        )


def _partition_by(settings: TableSettings) -> tuple[str, ...]:
    """The partition columns, without the date if rows change by key, as their date changes."""
    if settings.mode == APPEND:
        return settings.partition_by
    return tuple(name for name in settings.partition_by if name != "date")
