"""The settings of a topic's table: from the topic's configuration, or from a TOML file."""

import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.sinks.modes import APPEND, MODES

ENABLE = "tidelog.table.enable"
TABLE_FORMATS = ("delta", "iceberg")
FORMATS = ("json", "text", "raw", "avro", "protobuf")
COLUMNS = ("date", "partition")
FOREVER = -1
KEYS = ("format", "value-format", "mode", "partition-by", "cluster-by", "retention-ms")
"""The settings in a section of a file."""


class TableSettings(NamedTuple):
    format: str = "json"
    mode: str = APPEND
    partition_by: tuple[str, ...] = ("date",)
    """The columns that partition a new table."""
    retention_ms: int = FOREVER
    cluster_by: tuple[str, ...] = ()
    """The columns that cluster the table. A clustered table is not partitioned."""
    table_format: str = ""
    """The format of the table itself. If empty, the table has the format of the job."""

    @property
    def for_the_query(self) -> "TableSettings":
        """The settings on which a running query depends. All other settings have their defaults."""
        return self._replace(retention_ms=FOREVER)


DEFAULT = TableSettings()


def of_configuration(values: Mapping[str, str]) -> TableSettings | None:
    """The settings in a topic's configuration; None if the topic is not a table."""
    if values.get(ENABLE) != "true":
        return None
    clustered = _names(values.get("tidelog.table.cluster.by", ""))
    by_default = "" if clustered else ",".join(DEFAULT.partition_by)
    return TableSettings(
        values.get("tidelog.table.value.format", DEFAULT.format),
        values.get("tidelog.table.mode", DEFAULT.mode),
        _names(values.get("tidelog.table.partition.by", by_default)),
        int(values.get("tidelog.table.retention.ms", DEFAULT.retention_ms)),
        clustered,
        values.get("tidelog.table.format", DEFAULT.table_format),
    )


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.split(",") if name.strip())


def of_file(path: str) -> dict[str, TableSettings]:
    """The tables of a TOML file that has one section per topic."""
    try:
        with open(path, "rb") as file:
            sections = tomllib.load(file)
    except ValueError as error:  # from TOML, or because the file is not UTF-8
        raise JobFailed(f"{path} is not TOML: {error}.") from None
    return {topic: _of_section(path, topic, section) for topic, section in sections.items()}


def _of_section(path: str, topic: str, section: Any) -> TableSettings:
    if not isinstance(section, dict):
        raise JobFailed(f"{path}: {topic} is not a section such as [{topic}].")
    for key in section:
        if key not in KEYS:
            raise JobFailed(
                f"{path}: [{topic}] has no setting {key!r}; there are {', '.join(KEYS)}."
            )
    clustered = _listed(section.get("cluster-by", []))
    by_default: list[str] = [] if clustered else list(DEFAULT.partition_by)
    found = TableSettings(
        section.get("value-format", DEFAULT.format),
        section.get("mode", DEFAULT.mode),
        _listed(section.get("partition-by", by_default)),
        section.get("retention-ms", DEFAULT.retention_ms),
        clustered,
        section.get("format", DEFAULT.table_format),
    )
    where = f"{path}: [{topic}]"
    _check(where, "format", (section.get("format", TABLE_FORMATS[0]),), TABLE_FORMATS)
    _check(where, "value-format", (found.format,), FORMATS)
    _check(where, "mode", (found.mode,), MODES)
    _check(where, "partition-by", found.partition_by, COLUMNS)
    retention = found.retention_ms
    if type(retention) is not int or (retention < 1 and retention != FOREVER):
        raise JobFailed(f"{where}: retention-ms is a number of at least 1, or -1 for no limit.")
    return found


def _listed(value: Any) -> tuple[str, ...]:
    """A name or a list of names, as strings."""
    return tuple(map(str, value if isinstance(value, list) else [value]))


def _check(where: str, key: str, values: tuple[Any, ...], allowed: tuple[str, ...]) -> None:
    for value in values:
        if value not in allowed:
            raise JobFailed(f"{where}: {key} is one of {', '.join(allowed)}, not {value!r}.")
