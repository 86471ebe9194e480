"""Decodes the bytes of a message into kio's class for its version.

kio's own reader is not used: its native code allocates whatever an array's length says and aborts
the process when that fails, so one lying length from a stranger would end the broker. Here, as in
Kafka, no length is believed beyond the bytes that are there, and text that is not UTF-8 is read
with replacement characters, and any negative length of something nullable means null. The tests
hold this reader to kio's writer for every version there is.
"""

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from struct import Struct
from typing import Any, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.static.protocol import Entity

from tidelog.model.disk import Buffer
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.schema import Field, fields_of
from tidelog.protocol.text import read_text
from tidelog.protocol.varint import as_java_int, read_java_int, read_uvarint

Reader: TypeAlias = Callable[[Buffer, int], tuple[Any, int]]
"""(buffer, position) -> (value, the position after it)."""

_LONGEST_MS = timedelta.max // timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ERROR_CODES: Mapping[int, ErrorCode] = {int(code): code for code in ErrorCode}


def decode(cls: type[Entity], buffer: Buffer, position: int) -> Any:
    """The message of this class at `position`; what follows it is ignored, as Kafka does."""
    try:
        return reader_of(cls)(buffer, position)[0]
    except (struct.error, IndexError):
        raise MalformedMessage(f"{cls.__name__} is cut short") from None
    except OverflowError as error:
        raise MalformedMessage(f"{cls.__name__}: {error}") from None
    except MalformedMessage as error:
        raise MalformedMessage(f"{cls.__name__}: {error.reason}") from None


@cache
def reader_of(cls: type[Entity]) -> Reader:
    flexible = cls.__flexible__
    plain = [(f.name, _field_reader(f, flexible)) for f in fields_of(cls) if f.tag is None]
    tagged = {f.tag: (f.name, _field_reader(f, True)) for f in fields_of(cls) if f.tag is not None}
    absent = {f.name: f.absent() for f in fields_of(cls) if f.tag is not None}

    def read_legacy(buffer: Buffer, position: int) -> tuple[Any, int]:
        values = {}
        for name, read in plain:
            values[name], position = read(buffer, position)
        return cls(**values), position

    def read_flexible(buffer: Buffer, position: int) -> tuple[Any, int]:
        values = absent.copy()
        for name, read in plain:
            values[name], position = read(buffer, position)
        count, position = read_java_int(buffer, position)
        for _ in range(count):
            tag, position = read_uvarint(buffer, position)
            size, position = read_uvarint(buffer, position)
            end = _bounded(buffer, position, size)
            if tag in tagged:
                name, read = tagged[tag]
                values[name], stop = read(buffer, position)
                if stop != end:
                    raise MalformedMessage(f"tagged field {name} does not fill its {size} bytes")
            position = end
        return cls(**values), position

    return read_flexible if flexible else read_legacy


def _field_reader(field: Field, flexible: bool) -> Reader:
    if field.is_array:
        element = reader_of(field.entity) if field.entity else _primitive(field, flexible)
        return _array(field, element, flexible)
    if field.entity is None:
        return _primitive(field, flexible)
    return _nullable_entity(field.entity) if field.is_nullable else reader_of(field.entity)


def _primitive(field: Field, flexible: bool) -> Reader:
    is_nullable = field.is_nullable and not field.is_array
    match field.kafka_type:
        case "string":
            length = _compact_length if flexible else _i16
            return _sized(field.name, length, read_text, is_nullable)
        case "bytes" | "records":
            length = _compact_length if flexible else _i32
            return _sized(field.name, length, bytes, is_nullable)
        case "datetime_i64" if is_nullable:
            return _nullable_datetime
        case kafka_type:
            return _FIXED[kafka_type]


def _sized(name: str, length: Reader, convert: Callable[[Any], Any], is_nullable: bool) -> Reader:
    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        size, position = length(buffer, position)
        if size < 0:
            if is_nullable:
                return None, position
            raise MalformedMessage(f"{name} has the length {size}")
        end = _bounded(buffer, position, size)
        return convert(buffer[position:end]), end

    return read


def _array(field: Field, element: Reader, flexible: bool) -> Reader:
    length = _compact_length if flexible else _i32

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        count, position = length(buffer, position)
        if count < 0:
            if field.is_nullable:
                return None, position
            raise MalformedMessage(f"{field.name} has {count} elements")
        # Every element takes a byte at least, so this bounds both memory and time.
        _bounded(buffer, position, count)
        elements = []
        for _ in range(count):
            value, position = element(buffer, position)
            elements.append(value)
        return tuple(elements), position

    return read


def _nullable_entity(cls: type[Entity]) -> Reader:
    read_entity = reader_of(cls)

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        is_present, position = _i8(buffer, position)
        return read_entity(buffer, position) if is_present >= 0 else (None, position)

    return read


def _bounded(buffer: Buffer, position: int, size: int) -> int:
    """The position after `size` bytes, if they are there."""
    end = position + size
    if end > len(buffer):
        raise MalformedMessage(f"a length of {size}, where {len(buffer) - position} bytes are left")
    return end


def _compact_length(buffer: Buffer, position: int) -> tuple[int, int]:
    length, position = read_uvarint(buffer, position)
    return as_java_int(length - 1), position


def _fixed(layout: str) -> Reader:
    form = Struct(layout)
    size, unpack = form.size, form.unpack_from

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        return unpack(buffer, position)[0], position + size

    return read


def _converted(layout: str, convert: Callable[[Any], Any]) -> Reader:
    read_raw = _fixed(layout)

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        raw, position = read_raw(buffer, position)
        return convert(raw), position

    return read


def error_code(code: int) -> ErrorCode:
    return _ERROR_CODES.get(code, ErrorCode.unknown_server_error)


def _uuid(octets: bytes) -> UUID | None:
    value = UUID(bytes=octets)
    return value if value.int else None


def _milliseconds(count: int) -> timedelta:
    return timedelta(milliseconds=max(-_LONGEST_MS, min(count, _LONGEST_MS)))


def _datetime(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


def _datetime_or_none(milliseconds: int) -> datetime | None:
    return None if milliseconds == -1 else _datetime(milliseconds)


_i8 = _fixed(">b")
_i16 = _fixed(">h")
_i32 = _fixed(">i")
_nullable_datetime = _converted(">q", _datetime_or_none)

_FIXED: Mapping[str, Reader] = {
    "int8": _i8,
    "int16": _i16,
    "int32": _i32,
    "int64": _fixed(">q"),
    "uint16": _fixed(">H"),
    "float64": _fixed(">d"),
    "bool": _fixed(">?"),
    "uuid": _converted(">16s", _uuid),
    "error_code": _converted(">h", error_code),
    "timedelta_i32": _converted(">i", _milliseconds),
    "timedelta_i64": _converted(">q", _milliseconds),
    "datetime_i64": _converted(">q", _datetime),
}
