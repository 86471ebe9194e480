"""Runs the decoders on batches of records, in Spark's Python workers.

Executors need Python and PyArrow. They do not need Tidelog, because Spark sends them the functions
by value.
"""

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from tidelog_pipelines.transformations.values import (
    avro_binary,
    avro_writer,
    debezium,
    framing,
    json_columns,
    json_growth,
    json_validation,
    protobuf_wire,
    protobuf_writer,
    registered,
    shape_columns,
    shapes,
    strict_json,
)
from tidelog_pipelines.transformations.values.avro_binary import AvroDecoder
from tidelog_pipelines.transformations.values.framing import ReadHeader, WriterKey
from tidelog_pipelines.transformations.values.json_columns import (
    NOTHING,
    ObjectColumn,
    Path,
    Position,
)
from tidelog_pipelines.transformations.values.json_growth import Observer, Seen
from tidelog_pipelines.transformations.values.json_validation import JsonSchemas, ParsesValues
from tidelog_pipelines.transformations.values.registered import Columns, RegisteredDecoder, Writers
from tidelog_pipelines.transformations.values.strict_json import Limits, Refused, dump

VALUE, RESCUED, REASON = "value", "_rescued", "reason"
DELETED = "_deleted"
"""Whether a record deletes the row of its key; only for tables whose rows change by key."""
RunsOnBatches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Decoder(Protocol):
    def decode(self, raw: bytes, at: Position) -> tuple[Any, str | None]:
        """The part of a value that the columns store, and the rest as text; raises `Refused`."""


MakeDecoder = Callable[[], Decoder]
MakeParser = Callable[[], ParsesValues]


def json_parser(
    limits: Limits, schemas: JsonSchemas | None = None, *, is_enveloped: bool = False
) -> MakeParser:
    """A function that makes a parser of JSON values. Each process makes its own parser."""

    def make() -> ParsesValues:
        found = json_validation.parser(limits, schemas)
        return debezium.EnvelopeParser(found) if is_enveloped else found

    return make


class JsonDecoder:
    def __init__(
        self,
        kind: StructType,
        since: Mapping[Path, Position],
        parser: ParsesValues,
    ) -> None:
        self._parser = parser
        self._columns = ObjectColumn(kind, since) if kind.fields else None

    def decode(self, raw: bytes, at: Position) -> tuple[Any, str | None]:
        value = self._parser.parse(raw)
        if value is None:
            return None, None
        if self._columns is None:
            return None, dump(value)
        stored, rest = self._columns.place(value, at)
        return stored, None if rest is NOTHING else dump(rest)


def json_decoder(
    kind: StructType,
    since: Mapping[Path, Position],
    make_parser: MakeParser,
) -> MakeDecoder:
    return lambda: JsonDecoder(kind, since, make_parser())


def avro_decoder(
    schema: str, kind: StructType, schema_id: int | None, limits: Limits
) -> MakeDecoder:
    return lambda: AvroDecoder(schema, kind, schema_id, limits)


def registered_decoder(
    read_header: ReadHeader, writers: Writers, columns: Columns, limits: Limits
) -> MakeDecoder:
    return lambda: RegisteredDecoder(read_header, writers, columns, limits)


def rows(make: MakeDecoder, kind: StructType, *, rescues: bool) -> RunsOnBatches:
    """A function that decodes batches of records.

    It returns the decoded values, the rest as text if `rescues`, and the reasons of bad records.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder, arrow_type = make(), to_arrow_type(kind)
        for batch in batches:
            values, rescued, reasons = _decoded(batch, decoder)
            kept = [name for name in batch.schema.names if name not in (VALUE, REASON)]
            columns = {name: batch.column(name) for name in kept}
            columns[REASON] = pa.array(reasons, pa.string())
            if kind.fields:
                columns[VALUE] = pa.array(values, arrow_type)
            if rescues:
                columns[RESCUED] = pa.array(rescued, pa.string())
            if DELETED in columns:
                columns[DELETED] = pa.array(_deleted(values, rescued, reasons), pa.bool_())
            yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    return run


def refusals(make: MakeDecoder) -> RunsOnBatches:
    """A function that keeps only the bad records of batches, unchanged, with the reason."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = make()
        for batch in batches:
            _, _, reasons = _decoded(batch, decoder)
            if any(reasons):
                place = batch.schema.names.index(REASON)
                told = batch.set_column(place, REASON, pa.array(reasons, pa.string()))
                yield told.filter(pa.array([reason is not None for reason in reasons]))

    return run


def observed(
    records: DataFrame,
    known: StructType,
    most_paths: int,
    make_parser: MakeParser,
) -> Seen:
    """The parts of these records' JSON values that may need new or wider columns."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parser, observer = make_parser(), Observer(known, most_paths)
        for batch in batches:
            for raw, partition, offset in _values(batch):
                try:
                    value = None if raw is None else parser.parse(raw)
                    if value is not None:
                        observer.observe(value, (partition, offset))
                except Refused:
                    continue
        yield pa.RecordBatch.from_pydict({"seen": [pickle.dumps(observer.seen.as_tuple())]})

    found = records.select("partition", "offset", VALUE).mapInArrow(run, "seen BINARY").collect()
    seen = Seen()
    for row in found:
        seen.merge(Seen.of_tuple(pickle.loads(row["seen"])))
    return seen


def writer_keys(records: DataFrame, read_header: ReadHeader) -> dict[WriterKey, Position]:
    """The keys of writers' schemas in the headers of records, and the first position of each."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: dict[WriterKey, Position] = {}
        for batch in batches:
            for raw, partition, offset in _values(batch):
                try:
                    key = None if raw is None else read_header(raw)[0]
                except Refused:
                    continue
                if key is not None:
                    found[key] = min((partition, offset), found.get(key, (partition, offset)))
        yield pa.RecordBatch.from_pydict({"found": [pickle.dumps(found)]})

    parts = records.select("partition", "offset", VALUE).mapInArrow(run, "found BINARY").collect()
    found: dict[WriterKey, Position] = {}
    for row in parts:
        for key, position in pickle.loads(row["found"]).items():
            found[key] = min(position, found.get(key, position))
    return found


def _decoded(
    batch: pa.RecordBatch, decoder: Decoder
) -> tuple[list[Any], list[str | None], list[str | None]]:
    values: list[Any] = []
    rescued: list[str | None] = []
    reasons: list[str | None] = batch.column(REASON).to_pylist()
    decode = decoder.decode
    for number, (raw, partition, offset) in enumerate(_values(batch)):
        value = rest = None
        if raw is not None and reasons[number] is None:
            try:
                value, rest = decode(raw, (partition, offset))
            except Refused as refusal:
                reasons[number] = str(refusal)
        values.append(value)
        rescued.append(rest)
    return values, rescued, reasons


def _deleted(values: list[Any], rescued: list[str | None], reasons: list[str | None]) -> list[bool]:
    """Whether each record is a delete. Only a delete has no value, no rest and no reason."""
    found = zip(values, rescued, reasons, strict=True)
    return [value is None and rest is None and reason is None for value, rest, reason in found]


def _values(batch: pa.RecordBatch) -> Iterator[tuple[bytes | None, int, int]]:
    names = (VALUE, "partition", "offset")
    return zip(*(batch.column(name).to_pylist() for name in names), strict=True)


BY_VALUE = (
    avro_binary,
    avro_writer,
    debezium,
    framing,
    json_columns,
    json_growth,
    json_validation,
    protobuf_wire,
    protobuf_writer,
    registered,
    shape_columns,
    shapes,
    strict_json,
)
for _module in (*BY_VALUE, sys.modules[__name__]):
    cloudpickle.register_pickle_by_value(_module)  # type: ignore[no-untyped-call]
