"""Readers and writers of records, one pair per version, generated from a table of fields.

The rules are Kafka's: big-endian numbers, 16-bit lengths for strings, 32-bit lengths for bytes and
arrays. From a record's first flexible version on, a length is written as a varint of length plus
one, and every structure ends with its tagged fields. Unknown tags are skipped, and a tagged field
that has its default value is not written.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeAlias
from uuid import UUID

from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.varint import read_uvarint, uvarint

NEVER_FLEXIBLE = 1 << 15
_FOREVER = 1 << 15

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class RecordFormatError(ValueError):
    """The bytes are not a valid record in this format."""


class Type(Enum):
    INT8 = auto()
    INT16 = auto()
    INT32 = auto()
    INT64 = auto()
    STRING = auto()
    NULLABLE_STRING = auto()
    BYTES = auto()
    UUID = auto()


@dataclass(frozen=True, slots=True)
class Array:
    of: "Schema | Type"
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class NullableStruct:
    """A structure after a byte that is 1, or -1 for null."""

    of: "Schema"


@dataclass(frozen=True, slots=True)
class RecordField:
    name: str
    type: Type | Array | NullableStruct
    since: int = 0
    until: int = _FOREVER
    tag: int | None = None
    default: Any = None
    """A tagged field with this value is not written."""


_Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
_Write: TypeAlias = Callable[[bytearray, Any], None]
_Codec: TypeAlias = tuple[_Read, _Write]


class Schema:
    """The fields of a record or of a nested structure, in wire order."""

    def __init__(self, entity: type, *fields: RecordField, flexible: int = NEVER_FLEXIBLE) -> None:
        self.flexible = flexible
        self.entity = entity
        self._fields = fields
        self._compiled: dict[int, _Codec] = {}

    def encode(self, entity: Any, *, prefix: int, version: int) -> bytes:
        out = bytearray(_INT16.pack(prefix))
        self.compiled(version)[1](out, entity)
        return bytes(out)

    def decode(self, data: bytes, position: int, *, version: int) -> Any:
        """Decode the entity at this position; trailing bytes are ignored, as in Kafka."""
        try:
            return self.compiled(version)[0](data, position)[0]
        except (struct.error, IndexError, UnicodeDecodeError, MalformedMessage) as error:
            raise RecordFormatError(f"{self.entity.__name__} v{version}: {error}") from error

    def compiled(self, version: int) -> _Codec:
        codec = self._compiled.get(version)
        if codec is None:
            codec = self._compiled[version] = self._compile(version)
        return codec

    def _compile(self, version: int) -> _Codec:
        flexible = version >= self.flexible
        present = [field for field in self._fields if field.since <= version <= field.until]
        plain = [
            (field.name, *_codec_of(field.type, version, flexible))
            for field in present
            if field.tag is None
        ]
        tagged = {
            field.tag: (field.name, field.default, *_codec_of(field.type, version, flexible))
            for field in present
            if field.tag is not None
        }
        entity = self.entity

        def read(data: bytes, position: int) -> tuple[Any, int]:
            values = {}
            for name, read_field, _ in plain:
                values[name], position = read_field(data, position)
            if flexible:
                position = _read_tags(data, position, tagged, values)
            return entity(**values), position

        def write(out: bytearray, value: Any) -> None:
            for name, _, write_field in plain:
                write_field(out, getattr(value, name))
            if flexible:
                _write_tags(out, tagged, value)

        return read, write


_Tagged: TypeAlias = dict[int, tuple[str, Any, _Read, _Write]]


def _read_tags(data: bytes, position: int, tagged: _Tagged, values: dict[str, Any]) -> int:
    count, position = read_uvarint(data, position)
    for _ in range(count):
        tag, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        if tag in tagged:
            name, _, read_field, _ = tagged[tag]
            values[name], _ = read_field(data, position)
        position += size
    if position > len(data):
        raise RecordFormatError("tagged field beyond the end")
    return position


def _write_tags(out: bytearray, tagged: _Tagged, value: Any) -> None:
    body = bytearray()
    count = 0
    for tag, (name, default, _, write_field) in sorted(tagged.items()):
        field = getattr(value, name)
        if field == default:
            continue
        encoded = bytearray()
        write_field(encoded, field)
        body += uvarint(tag) + uvarint(len(encoded)) + encoded
        count += 1
    out += uvarint(count) + body


def _codec_of(kind: Type | Array | NullableStruct, version: int, flexible: bool) -> _Codec:
    if isinstance(kind, Array):
        if isinstance(kind.of, Schema):
            element = kind.of.compiled(version)
        else:
            element = _codec_of(kind.of, version, flexible)
        return _array(element, _COMPACT if flexible else _LENGTH32, nullable=kind.nullable)
    if isinstance(kind, NullableStruct):
        return _nullable_struct(kind.of.compiled(version))
    match kind:
        case Type.INT8:
            return _number(_INT8)
        case Type.INT16:
            return _number(_INT16)
        case Type.INT32:
            return _number(_INT32)
        case Type.INT64:
            return _number(_INT64)
        case Type.UUID:
            return _read_uuid, _write_uuid
        case Type.STRING:
            return _string(_COMPACT if flexible else _LENGTH16, nullable=False)
        case Type.NULLABLE_STRING:
            return _string(_COMPACT if flexible else _LENGTH16, nullable=True)
        case Type.BYTES:
            return _bytes(_COMPACT if flexible else _LENGTH32)


def _number(layout: struct.Struct) -> _Codec:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        return layout.unpack_from(data, position)[0], position + layout.size

    def write(out: bytearray, value: Any) -> None:
        out += layout.pack(value)

    return read, write


def _string(length: _Codec, *, nullable: bool) -> _Codec:
    read_length, write_length = length

    def read(data: bytes, position: int) -> tuple[Any, int]:
        size, position = read_length(data, position)
        end = position + size
        if size >= 0 and end <= len(data):
            return str(data[position:end], "utf-8"), end
        if size < 0 and nullable:
            return None, position
        raise RecordFormatError(f"string of {size} bytes at {position} of {len(data)}")

    def write(out: bytearray, value: Any) -> None:
        if value is None:
            assert nullable
            write_length(out, -1)
            return
        encoded = value.encode()
        write_length(out, len(encoded))
        out += encoded

    return read, write


def _bytes(length: _Codec) -> _Codec:
    read_length, write_length = length

    def read(data: bytes, position: int) -> tuple[Any, int]:
        size, position = read_length(data, position)
        return _slice(data, position, size), position + size

    def write(out: bytearray, value: Any) -> None:
        write_length(out, len(value))
        out += value

    return read, write


def _array(element: _Codec, length: _Codec, *, nullable: bool) -> _Codec:
    read_element, write_element = element
    read_length, write_length = length

    def read(data: bytes, position: int) -> tuple[Any, int]:
        count, position = read_length(data, position)
        if nullable and count < 0:
            return None, position
        if not 0 <= count <= len(data):
            raise RecordFormatError(f"array of {count}")
        values = []
        for _ in range(count):
            value, position = read_element(data, position)
            values.append(value)
        return tuple(values), position

    def write(out: bytearray, value: Any) -> None:
        if value is None:
            assert nullable
            write_length(out, -1)
            return
        write_length(out, len(value))
        for item in value:
            write_element(out, item)

    return read, write


def _nullable_struct(struct_codec: _Codec) -> _Codec:
    read_struct, write_struct = struct_codec

    def read(data: bytes, position: int) -> tuple[Any, int]:
        (marker,) = _INT8.unpack_from(data, position)
        if marker < 0:
            return None, position + 1
        return read_struct(data, position + 1)

    def write(out: bytearray, value: Any) -> None:
        out += _INT8.pack(-1 if value is None else 1)
        if value is not None:
            write_struct(out, value)

    return read, write


def _slice(data: bytes, position: int, size: int) -> bytes:
    if size < 0 or position + size > len(data):
        raise RecordFormatError(f"{size} bytes at {position} of {len(data)}")
    return data[position : position + size]


def _read_uuid(data: bytes, position: int) -> tuple[UUID, int]:
    return UUID(bytes=_slice(data, position, 16)), position + 16


def _write_uuid(out: bytearray, value: UUID) -> None:
    out += value.bytes


def _read_compact_length(data: bytes, position: int) -> tuple[int, int]:
    length, position = read_uvarint(data, position)
    return length - 1, position


def _write_compact_length(out: bytearray, length: int) -> None:
    out += uvarint(length + 1)


_LENGTH16 = _number(_INT16)
_LENGTH32 = _number(_INT32)
_COMPACT = (_read_compact_length, _write_compact_length)
