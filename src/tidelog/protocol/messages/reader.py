"""Decodes the bytes of a message into kio's class for its version.

kio's own reader is not used, because its native code allocates an array of any claimed length. If
the allocation fails, the process aborts, so one false length would end the broker. This reader
behaves as Kafka does. It accepts no length that exceeds the remaining bytes. It decodes text that
is not UTF-8 with replacement characters. It reads any negative length of a nullable field as null.
The tests compare this reader with kio's writer for every version.

A message without arrays is read at once. Any other message is read in slices (`decode_steps`), and
the node serves other clients between two slices. The number of elements is limited per API.
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
from tidelog.protocol.messages.schema import MessageField, fields_of, is_flat
from tidelog.protocol.pieces import MAX_TAGGED_FIELDS
from tidelog.protocol.slices import SLICE_BYTES, SLICE_FIELDS, Meter, Steps, finish
from tidelog.protocol.text import read_text
from tidelog.protocol.varint import as_java_int, read_java_int, read_uvarint

Reader: TypeAlias = Callable[[Buffer, int], tuple[Any, int]]
"""(buffer, position) -> (value, the position after it)."""

SteppedReader: TypeAlias = Callable[[Buffer, int, Meter], Steps[tuple[Any, int]]]
"""As `Reader`, in slices, for types with arrays."""

_LONGEST_MS = timedelta.max // timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ERROR_CODES: Mapping[int, ErrorCode] = {int(code): code for code in ErrorCode}


def decode(cls: type[Entity], buffer: Buffer, position: int) -> Any:
    """Decode the message of this class at `position`; trailing bytes are ignored, as in Kafka."""
    return finish(decode_steps(cls, buffer, position, Meter()))


def decode_steps(cls: type[Entity], buffer: Buffer, position: int, meter: Meter) -> Steps[Any]:
    """As `decode`, in slices; raises MalformedMessage for more elements than the meter allows."""
    try:
        if is_flat(cls):
            return _reader_of(cls)(buffer, position)[0]
        entity, _ = yield from _stepped_reader_of(cls)(buffer, position, meter)
    except (struct.error, IndexError):
        raise MalformedMessage(f"{cls.__name__} is cut short") from None
    except OverflowError as error:
        raise MalformedMessage(f"{cls.__name__}: {error}") from None
    except MalformedMessage as error:
        raise MalformedMessage(f"{cls.__name__}: {error.reason}") from None
    return entity


# -- Readers of structures -------------------------------------------------------------------------


@cache
def _reader_of(cls: type[Entity]) -> Reader:
    """The reader of a class without arrays."""
    plain = [(f.name, _flat_reader(f, cls.__flexible__)) for f in _untagged(cls)]
    tagged = {f.tag: (f.name, _flat_reader(f, True)) for f in _tagged(cls)}
    absent = {f.name: f.absent() for f in _tagged(cls)}

    def read_legacy(buffer: Buffer, position: int) -> tuple[Any, int]:
        values = {}
        for name, read in plain:
            values[name], position = read(buffer, position)
        return cls(**values), position

    def read_flexible(buffer: Buffer, position: int) -> tuple[Any, int]:
        values = absent.copy()
        for name, read in plain:
            values[name], position = read(buffer, position)
        count, position = _tag_count(buffer, position)
        for _ in range(count):
            tag, position, end = _tag(buffer, position)
            if tag in tagged:
                name, read = tagged[tag]
                values[name], stop = read(buffer, position)
                _check_filled(name, stop, end)
            position = end
        return cls(**values), position

    return read_flexible if cls.__flexible__ else read_legacy


@cache
def _stepped_reader_of(cls: type[Entity]) -> SteppedReader:
    """The reader of a class that has an array, directly or in a nested structure."""
    flexible = cls.__flexible__
    plain = [(f.name, _stepped_field(f, flexible)) for f in _untagged(cls)]
    tagged = {f.tag: (f.name, _stepped_field(f, True)) for f in _tagged(cls)}
    absent = {f.name: f.absent() for f in _tagged(cls)}
    cost = len(plain) + 1

    def read_all(buffer: Buffer, position: int, meter: Meter) -> Steps[tuple[Any, int]]:
        values = absent.copy()
        for name, (read, stepped) in plain:
            if read is not None:
                values[name], position = read(buffer, position)
            else:
                assert stepped is not None
                values[name], position = yield from stepped(buffer, position, meter)
        count, position = _tag_count(buffer, position) if flexible else (0, position)
        for _ in range(count):
            tag, position, end = _tag(buffer, position)
            if tag in tagged:
                name, (read, stepped) = tagged[tag]
                if read is not None:
                    values[name], stop = read(buffer, position)
                else:
                    assert stepped is not None
                    values[name], stop = yield from stepped(buffer, position, meter)
                _check_filled(name, stop, end)
            position = end
        if meter.spend(cost + count):
            yield
        return cls(**values), position

    return read_all


def _untagged(cls: type[Entity]) -> list[MessageField]:
    return [field for field in fields_of(cls) if field.tag is None]


def _tagged(cls: type[Entity]) -> list[MessageField]:
    return [field for field in fields_of(cls) if field.tag is not None]


def _tag_count(buffer: Buffer, position: int) -> tuple[int, int]:
    count, position = read_java_int(buffer, position)
    if count > MAX_TAGGED_FIELDS:
        raise MalformedMessage(f"{count} tagged fields")
    return count, position


def _tag(buffer: Buffer, position: int) -> tuple[int, int, int]:
    """Returns a tag, and the start and end of its field."""
    tag, position = read_uvarint(buffer, position)
    size, position = read_uvarint(buffer, position)
    return tag, position, _bounded(buffer, position, size)


def _check_filled(name: str, stop: int, end: int) -> None:
    if stop != end:
        raise MalformedMessage(f"tagged field {name} ends at {stop}, not at {end}")


# -- Readers of fields -----------------------------------------------------------------------------


def _flat_reader(field: MessageField, flexible: bool) -> Reader:
    assert not field.is_array
    if field.entity is None:
        return _primitive(field, flexible)
    read = _reader_of(field.entity)
    return _nullable_entity(read) if field.is_nullable else read


def _stepped_field(
    field: MessageField, flexible: bool
) -> tuple[Reader | None, SteppedReader | None]:
    """Returns (reader, None), or (None, stepped reader) if the field has an array."""
    if field.is_array:
        if field.entity is None:
            return None, _flat_array(field, _primitive(field, flexible), 1, flexible)
        if is_flat(field.entity):
            cost = len(fields_of(field.entity)) + 1
            return None, _flat_array(field, _reader_of(field.entity), cost, flexible)
        return None, _nested_array(field, _stepped_reader_of(field.entity), flexible)
    if field.entity is None or is_flat(field.entity):
        return _flat_reader(field, flexible), None
    stepped = _stepped_reader_of(field.entity)
    return None, _nullable_stepped(stepped) if field.is_nullable else stepped


def _primitive(field: MessageField, flexible: bool) -> Reader:
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


def _flat_array(field: MessageField, element: Reader, cost: int, flexible: bool) -> SteppedReader:
    """Reads an array whose elements have no arrays; each element counts as `cost` fields."""
    length = _compact_length if flexible else _i32
    most = max(1, SLICE_FIELDS // cost)

    def read(buffer: Buffer, position: int, meter: Meter) -> Steps[tuple[Any, int]]:
        count, position = _count(field, length, buffer, position, meter)
        if count < 0:
            return None, position
        elements: list[Any] = []
        while len(elements) < count:
            before, stop = len(elements), position + SLICE_BYTES
            for _ in range(min(most, count - before)):
                value, position = element(buffer, position)
                elements.append(value)
                if position >= stop:
                    break
            if meter.spend(SLICE_FIELDS if position >= stop else cost * (len(elements) - before)):
                yield
        return tuple(elements), position

    return read


def _nested_array(field: MessageField, element: SteppedReader, flexible: bool) -> SteppedReader:
    length = _compact_length if flexible else _i32

    def read(buffer: Buffer, position: int, meter: Meter) -> Steps[tuple[Any, int]]:
        count, position = _count(field, length, buffer, position, meter)
        if count < 0:
            return None, position
        elements = []
        for _ in range(count):
            value, position = yield from element(buffer, position, meter)
            elements.append(value)
        return tuple(elements), position

    return read


def _count(
    field: MessageField, length: Reader, buffer: Buffer, position: int, meter: Meter
) -> tuple[int, int]:
    """The number of elements (negative for null, if allowed), and the position after the number."""
    count, position = length(buffer, position)
    if count < 0:
        if field.is_nullable:
            return count, position
        raise MalformedMessage(f"{field.name} has {count} elements")
    # Every element takes at least one byte, so this check bounds both memory and time.
    _bounded(buffer, position, count)
    meter.count(count)
    return count, position


def _nullable_entity(read_entity: Reader) -> Reader:
    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        is_present, position = _i8(buffer, position)
        return read_entity(buffer, position) if is_present >= 0 else (None, position)

    return read


def _nullable_stepped(read_entity: SteppedReader) -> SteppedReader:
    def read(buffer: Buffer, position: int, meter: Meter) -> Steps[tuple[Any, int]]:
        is_present, position = _i8(buffer, position)
        if is_present < 0:
            return None, position
        return (yield from read_entity(buffer, position, meter))

    return read


def _bounded(buffer: Buffer, position: int, size: int) -> int:
    """The position after `size` bytes; raises MalformedMessage if the buffer ends earlier."""
    end = position + size
    if end > len(buffer):
        raise MalformedMessage(f"a length of {size}, but only {len(buffer) - position} bytes left")
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
