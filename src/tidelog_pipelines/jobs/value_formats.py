"""How `ingest` decodes values: its settings become formats and schemas."""

import os
from typing import NamedTuple

from pyspark.errors import ParseException
from pyspark.sql.types import StructType

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs.json_schemas import JSON
from tidelog_pipelines.jobs.writer_schemas import PROTOBUF, RegistryPlan
from tidelog_pipelines.sources.registry import Registry
from tidelog_pipelines.transformations.values import avro
from tidelog_pipelines.transformations.values.avro_writer import AvroWriter
from tidelog_pipelines.transformations.values.decoding import (
    Avro,
    Format,
    Json,
    Raw,
    Registered,
    Text,
)
from tidelog_pipelines.transformations.values.framing import NO_WRITER, no_header
from tidelog_pipelines.transformations.values.json_columns import unsupported
from tidelog_pipelines.transformations.values.registered import Columns, Writers
from tidelog_pipelines.transformations.values.shape_growth import grown
from tidelog_pipelines.transformations.values.shapes import Incompatible, Struct
from tidelog_pipelines.transformations.values.strict_json import Limits

REGISTRY_TYPES = {"avro": "AVRO", "protobuf": PROTOBUF, "json": JSON}
"""The formats with schemas in a registry, and the registry's names for these formats."""


class ValueSource(NamedTuple):
    """The settings that determine how values are decoded."""

    format: str
    schema: str
    message: str
    """The full name of a Protobuf message."""
    registry: Registry
    """In these settings, `credentials` is the name of a file."""
    avro_schema_id: int
    avro_registry_header: bool
    limits: Limits

    def check(self) -> None:
        """Raise ValueError if settings contradict each other."""
        url = self.registry.url
        if self.format == "avro" and not self.schema and not url:
            raise ValueError("--value-format avro needs a --schema or a --schema-registry")
        if self.format == "protobuf" and not url and not (self.schema and self.message):
            raise ValueError(
                "--value-format protobuf needs a --schema-registry, or a --schema and a --message"
            )
        if self.message and (url or self.format != "protobuf"):
            raise ValueError("--message is for --value-format protobuf without --schema-registry")
        if self.avro_registry_header != (self.avro_schema_id >= 0):
            raise ValueError(
                "--avro-registry-header needs --avro-schema-id, the id of --schema in the registry"
            )
        if self.registry.credentials and not url:
            raise ValueError("--schema-registry-auth needs --schema-registry")
        if not url:
            return
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"--schema-registry: {url!r} is not a URL such as http://HOST:8081")
        if self.format not in REGISTRY_TYPES:
            formats = ", ".join(REGISTRY_TYPES)
            raise ValueError(f"--schema-registry is for --value-format {formats}")
        if self.schema and self.format == "protobuf":
            raise ValueError(
                "--value-format protobuf takes --schema or --schema-registry, not both"
            )
        if self.avro_registry_header:
            raise ValueError("give either --schema-registry or --avro-registry-header")


def registry_plan(source: ValueSource) -> RegistryPlan | None:
    """How to decode values with the schemas of a registry, if one is given."""
    if not source.registry.url:
        return None
    reader = _reader(source) if source.schema and source.format == "avro" else None
    registry = Registry(source.registry.url, _credentials(source.registry.credentials))
    return RegistryPlan(registry, REGISTRY_TYPES[source.format], reader, source.limits)


def _credentials(file: str) -> str:
    if not file:
        return ""
    with open(file, encoding="utf-8") as opened:
        found = opened.read().strip()
    if ":" not in found or "\n" in found:
        raise JobFailed(f"--schema-registry-auth: {file} does not hold one line user:password.")
    return found


def _reader(source: ValueSource) -> Struct:
    """The columns that the user has chosen with --schema, for values with a registry."""
    try:
        shape, _ = AvroWriter(_schema(source)).compiled()
    except Incompatible as reason:
        raise JobFailed(f"--schema {source.schema}: {reason}.") from None
    return shape


def value_format(source: ValueSource) -> Format | None:
    """The format of values; None if their type is inferred, or is in a registry."""
    match source.format:
        case "raw":
            return Raw()
        case "string":
            return Text()
        case "avro":
            return None if source.registry.url else _avro(source)
        case "protobuf":
            return None if source.registry.url else _protobuf(source)
    return _json(source) if source.schema else None


def _avro(source: ValueSource) -> Avro:
    schema = _schema(source)
    if wrong := avro.complaint(schema):
        raise JobFailed(f"--schema {source.schema}: {wrong}.")
    schema_id = source.avro_schema_id if source.avro_registry_header else None
    return Avro(schema, schema_id, source.limits)


def _protobuf(source: ValueSource) -> Registered:
    """The format of values without a header, which all have the same message type."""
    # Imported only here, because the module needs the compiler and the runtime of Protobuf.
    from tidelog_pipelines.sources import protobuf_schemas

    with open(source.schema, "rb") as file:
        content = file.read()
    is_text = source.schema.endswith(".proto")
    try:
        writer = protobuf_schemas.writer_by_name(content, not is_text, source.message)
    except Incompatible as reason:
        raise JobFailed(f"--schema {source.schema}: {reason}.") from None
    columns = Columns(grown(Struct(), writer.compiled()[0], widens=False))
    return Registered(no_header, Writers({NO_WRITER: writer}, {}), columns, source.limits)


def _json(source: ValueSource) -> Json:
    try:
        kind = StructType.fromDDL(_schema(source))
    except ParseException as error:
        reason = str(error).strip().splitlines()[0]
        raise JobFailed(f"--schema is not a list of columns and types: {reason}") from None
    assert isinstance(kind, StructType)
    if (wrong_type := unsupported(kind)) is not None:
        raise JobFailed(f"--schema: json values are not read as {wrong_type.simpleString()}.")
    return Json(kind, limits=source.limits)


def _schema(source: ValueSource) -> str:
    """The schema as text, read from its file if the setting names one."""
    if source.format == "avro" or os.path.isfile(source.schema):
        with open(source.schema, encoding="utf-8") as file:
            return file.read()
    return source.schema
