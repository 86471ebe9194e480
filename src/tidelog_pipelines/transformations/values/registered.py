"""Decodes each value with its writer's schema, and stores it in the columns of a table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tidelog_pipelines.transformations.values.framing import ReadHeader, WriterKey, not_examined
from tidelog_pipelines.transformations.values.json_columns import NOTHING, Position
from tidelog_pipelines.transformations.values.shape_columns import Place, placing
from tidelog_pipelines.transformations.values.shapes import Struct
from tidelog_pipelines.transformations.values.strict_json import Limits, Refused, check_size, dump

ReadBody = Callable[[bytes, int], Any]


class Writer(Protocol):
    """A writer's schema. It consists of plain values, so that it can be sent to executors."""

    def compiled(self) -> tuple[Struct, ReadBody]:
        """The shape of the values, and a function that reads a value; raises `Incompatible`."""


@dataclass(frozen=True)
class Columns:
    """The columns of a table."""

    shape: Struct
    is_fixed: bool = False
    """Whether the user has chosen the columns with --schema."""


@dataclass(frozen=True)
class Writers:
    """The usable schemas of a batch's writers, and the reason for each schema that is unusable."""

    usable: Mapping[WriterKey, Writer]
    refused: Mapping[WriterKey, str]


class RegisteredDecoder:
    def __init__(
        self, read_header: ReadHeader, writers: Writers, columns: Columns, limits: Limits
    ) -> None:
        self._read_header = read_header
        self._writers = writers
        self._columns = columns
        self._limits = limits
        self._compiled: dict[WriterKey, tuple[ReadBody, Place]] = {}

    def decode(self, raw: bytes, at: Position) -> tuple[Any, str | None]:
        """The part of a value that the columns store, and the rest as text; raises `Refused`."""
        check_size(raw, self._limits)
        key, start = self._read_header(raw)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = self._compile(key)
        read, place = found
        value = read(raw, start)
        if value is None:
            return None, None  # an envelope that deletes its row
        stored, rest = place(value)
        return stored, None if rest is NOTHING else dump(rest)

    def _compile(self, key: WriterKey) -> tuple[ReadBody, Place]:
        if key in self._writers.refused:
            raise Refused(self._writers.refused[key])
        if (writer := self._writers.usable.get(key)) is None:
            raise not_examined(key[0])
        shape, read = writer.compiled()
        return read, placing(shape, self._columns.shape, is_fixed=self._columns.is_fixed)
