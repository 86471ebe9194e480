"""Compiles Protobuf messages to shapes, and to functions that read values.

Invariant: no part of a message is dropped. Fields that the schema does not have are kept in their
encoding. Protobuf's own rules apply. If a scalar field occurs twice, the last value counts. If a
message field occurs twice, the messages are merged. An absent field without presence has its
default.
"""

import base64
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
)

from tidelog_pipelines.transformations.values.protobuf_wire import (
    BYTES,
    FIXED32,
    FIXED64,
    START_GROUP,
    VARINT,
    WireField,
    read_varint,
    refused,
    wire_fields,
)
from tidelog_pipelines.transformations.values.shape_columns import UNKNOWN, plain_scalar
from tidelog_pipelines.transformations.values.shapes import (
    TEXT,
    Field,
    ListOf,
    MapOf,
    Scalar,
    Shape,
    Struct,
)
from tidelog_pipelines.transformations.values.strict_json import dump

ReadMessage = Callable[[bytes], dict[str, Any]]


class MessageField(NamedTuple):
    number: int
    name: str
    kind: str
    """The name of a scalar type in .proto files, or message, group or enum."""
    type_name: str
    """The full name of a message or an enum. Empty for scalar types."""
    is_repeated: bool
    has_presence: bool
    is_required: bool
    oneof: str


class Message(NamedTuple):
    fields: tuple[MessageField, ...]
    is_entry: bool
    """Whether the message is an entry of a map."""


@dataclass(frozen=True)
class ProtobufWriter:
    """A message, and all messages and enums that it uses, by their full names."""

    root: str
    messages: Mapping[str, Message]
    enums: Mapping[str, Mapping[int, str]]

    def compiled(self) -> tuple[Struct, Callable[[bytes, int], Any]]:
        """The shape of the values, and a function that reads a value."""
        compiler = _Compiler(self)
        shape, read = compiler.shape(self.root, ()), compiler.reader(self.root)
        assert isinstance(shape, Struct)

        def read_whole(raw: bytes, at: int) -> Any:
            try:
                return _fitted(read(raw[at:]), shape) if compiler.is_recursive else read(raw[at:])
            except RecursionError:
                raise refused("it is nested too deeply") from None

        return shape, read_whole


class _Compiler:
    def __init__(self, schema: ProtobufWriter) -> None:
        self._schema = schema
        self._readers: dict[str, ReadMessage] = {}
        self.is_recursive = False

    def shape(self, name: str, within: tuple[str, ...]) -> Shape:
        """A message as a struct. If a message contains itself, the inner message is JSON text."""
        if name in within:
            self.is_recursive = True
            return TEXT
        fields = self._schema.messages[name].fields
        return Struct(
            tuple(Field(one.name, self._of_field(one, (*within, name))) for one in fields)
        )

    def _of_field(self, field: MessageField, within: tuple[str, ...]) -> Shape:
        if (entry := self.entry(field)) is not None:
            key, value = self._of_field(entry[0], within), self._of_field(entry[1], within)
            assert isinstance(key, Scalar)
            return MapOf(key, value)
        if field.kind in ("message", "group"):
            one = self.shape(field.type_name, within)
        else:
            one = SCALARS[field.kind].shape
        return ListOf(one) if field.is_repeated else one

    def entry(self, field: MessageField) -> tuple[MessageField, MessageField] | None:
        """The fields for the key and the value of a map. None if the field is not a map."""
        message = self._schema.messages.get(field.type_name)
        if message is None or not message.is_entry:
            return None
        key, value = sorted(message.fields)
        return key, value

    def reader(self, name: str) -> ReadMessage:
        if name not in self._readers:
            self._readers[name] = lambda raw: self._readers[name](raw)  # for recursive messages
            fields = self._schema.messages[name].fields
            self._readers[name] = _MessageReader([self._step(one) for one in fields]).read
        return self._readers[name]

    def _step(self, field: MessageField) -> "_Step":
        if (entry := self.entry(field)) is not None:
            return _Step(field, _message_kind(self._entry_reader(field, *entry)), is_map=True)
        if field.kind in ("message", "group"):
            wire_type = BYTES if field.kind == "message" else START_GROUP
            return _Step(field, _message_kind(self.reader(field.type_name), wire_type))
        if field.kind == "enum":
            return _Step(field, _enum_kind(self._schema.enums[field.type_name]))
        return _Step(field, SCALARS[field.kind])

    def _entry_reader(
        self, field: MessageField, key: MessageField, value: MessageField
    ) -> ReadMessage:
        """The reader of a map's entries. An absent key or value gets its default."""
        read, default = self.reader(field.type_name), SCALARS[key.kind].default

        def entry(raw: bytes) -> dict[str, Any]:
            found = {"key": default, **read(raw)}
            if "value" not in found:
                is_message = value.kind == "message"
                found["value"] = self.reader(value.type_name)(b"") if is_message else absent
            return found

        absent = None if value.kind == "message" else self._step(value).kind.default
        return entry


class Kind(NamedTuple):
    """A type: its wire type, how a value is converted, and its default."""

    shape: Shape
    wire_type: int
    convert: Callable[[Any], Any]
    default: Any = None


class _Step(NamedTuple):
    """How a field is read."""

    field: MessageField
    kind: Kind
    is_map: bool = False

    @property
    def is_message(self) -> bool:
        return self.field.kind in ("message", "group")


class _MessageReader:
    def __init__(self, steps: list[_Step]) -> None:
        self._steps = {step.field.number: step for step in steps}
        self._repeated = [step.field.name for step in steps if step.field.is_repeated]
        self._maps = [step.field.name for step in steps if step.is_map]
        self._defaults = {
            step.field.name: step.kind.default
            for step in steps
            if not step.field.is_repeated and not step.field.has_presence
        }
        self._required = [step.field.name for step in steps if step.field.is_required]
        self._oneofs: dict[str, list[str]] = {}
        for step in steps:
            if step.field.oneof:
                self._oneofs.setdefault(step.field.oneof, []).append(step.field.name)

    def read(self, raw: bytes) -> dict[str, Any]:
        """The fields by their names; raises `Refused`."""
        found: dict[str, Any] = {**self._defaults, **{name: [] for name in self._repeated}}
        found |= {name: {} for name in self._maps}
        parts: dict[str, tuple[_Step, bytes]] = {}
        unknown: dict[str, bytes] = {}
        for one in wire_fields(raw):
            step = self._steps.get(one.number)
            if step is None or not _accepts(step, one):
                name = f"#{one.number}"
                unknown[name] = unknown.get(name, b"") + one.raw
                continue
            self._clear_others(step.field, found, parts)
            self._store(step, one, found, parts)
        for name, (step, encoded) in parts.items():
            found[name] = step.kind.convert(encoded)
        for name in self._maps:
            found[name] = list(found[name].items())
        for name in self._required:
            if name not in found:
                raise refused(f"field {name} is required, and missing")
        if unknown:
            found[UNKNOWN] = {key: _base64(one) for key, one in unknown.items()}
        return found

    def _store(
        self,
        step: _Step,
        one: WireField,
        found: dict[str, Any],
        parts: dict[str, tuple[_Step, bytes]],
    ) -> None:
        name, convert = step.field.name, step.kind.convert
        if step.is_map:
            entry = convert(one.value)
            if UNKNOWN in entry:
                raise refused(f"an entry of map {name} has unknown fields")
            found[name][entry["key"]] = entry["value"]
        elif step.is_message and not step.field.is_repeated:
            # Two encoded messages, one after the other, are the encoding of the merged message.
            assert isinstance(one.value, bytes)
            parts[name] = (step, parts.get(name, (step, b""))[1] + one.value)
        elif not step.field.is_repeated:
            found[name] = convert(one.value)
        elif one.wire_type == step.kind.wire_type:
            found[name].append(convert(one.value))
        else:
            assert isinstance(one.value, bytes)
            found[name] += [convert(each) for each in _packed(one.value, step.kind.wire_type)]

    def _clear_others(
        self, field: MessageField, found: dict[str, Any], parts: dict[str, tuple[_Step, bytes]]
    ) -> None:
        """Remove the other fields of the same oneof, because only the last field counts."""
        for other in self._oneofs.get(field.oneof, ()) if field.oneof else ():
            if other != field.name:
                found.pop(other, None)
                parts.pop(other, None)


def _accepts(step: _Step, one: WireField) -> bool:
    if one.wire_type == step.kind.wire_type:
        return True
    is_packable = step.kind.wire_type not in (BYTES, START_GROUP)
    return step.field.is_repeated and is_packable and one.wire_type == BYTES


def _packed(raw: bytes, wire_type: int) -> list[int]:
    if wire_type == VARINT:
        found, at = [], 0
        while at < len(raw):
            number, at = read_varint(raw, at)
            found.append(number)
        return found
    size, form = (8, "Q") if wire_type == FIXED64 else (4, "I")
    if len(raw) % size:
        raise refused("a packed list ends too early")
    return list(struct.unpack(f"<{len(raw) // size}{form}", raw))


def _message_kind(read: ReadMessage, wire_type: int = BYTES) -> Kind:
    return Kind(Struct(), wire_type, read)


def _enum_kind(symbols: Mapping[int, str]) -> Kind:
    """An enum as text: the name, or the digits of a number without a name.

    The two cannot be confused, because no name begins with a digit.
    """

    def convert(number: int) -> str:
        signed = _int32(number)
        return symbols.get(signed) or str(signed)

    return Kind(TEXT, VARINT, convert, next(iter(symbols.values())))


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _int64(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _int32(number: int) -> int:
    found = _int64(number)
    if not -(2**31) <= found < 2**31:
        raise refused("a number has more than 32 bits")
    return found


def _uint32(number: int) -> int:
    if number >= 2**32:
        raise refused("a number has more than 32 bits")
    return number


def _zigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _bool(number: int) -> bool:
    if number > 1:
        raise refused("a bool is neither 0 nor 1")
    return number == 1


def _float(number: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", number))[0])


def _double(number: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", number))[0])


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise refused("a string is not UTF-8") from None


def _scalar(kind: DataType, wire_type: int, convert: Callable[[Any], Any], default: Any) -> Kind:
    return Kind(Scalar(kind), wire_type, convert, default)


_INT, _LONG, _UINT64 = IntegerType(), LongType(), DecimalType(20, 0)
SCALARS: dict[str, Kind] = {
    "double": _scalar(DoubleType(), FIXED64, _double, 0.0),
    "float": _scalar(FloatType(), FIXED32, _float, 0.0),
    "int32": _scalar(_INT, VARINT, _int32, 0),
    "int64": _scalar(_LONG, VARINT, _int64, 0),
    "uint32": _scalar(_LONG, VARINT, _uint32, 0),
    "uint64": _scalar(_UINT64, VARINT, Decimal, Decimal(0)),
    "sint32": _scalar(_INT, VARINT, lambda number: _zigzag(_uint32(number)), 0),
    "sint64": _scalar(_LONG, VARINT, _zigzag, 0),
    "fixed32": _scalar(_LONG, FIXED32, int, 0),
    "fixed64": _scalar(_UINT64, FIXED64, Decimal, Decimal(0)),
    "sfixed32": _scalar(_INT, FIXED32, lambda n: n - 2**32 if n >= 2**31 else n, 0),
    "sfixed64": _scalar(_LONG, FIXED64, _int64, 0),
    "bool": _scalar(BooleanType(), VARINT, _bool, False),
    "string": Kind(TEXT, BYTES, _text, ""),
    "bytes": _scalar(BinaryType(), BYTES, bytes, b""),
    "enum": Kind(TEXT, VARINT, str),
}


def _fitted(value: Any, shape: Shape) -> Any:
    """The value, with JSON text where a message contains itself."""
    if value is None:
        return None
    match shape:
        case Scalar():
            return dump(_as_json(value)) if isinstance(value, dict) else value
        case ListOf():
            return [_fitted(one, shape.element) for one in value]
        case MapOf():
            return [(key, _fitted(one, shape.value)) for key, one in value]
        case Struct():
            shapes = {field.name: field.shape for field in shape.fields}
            return {
                name: one if name == UNKNOWN else _fitted(one, shapes[name])
                for name, one in value.items()
            }


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        found = {name: _as_json(one) for name, one in value.items() if one not in (None, [])}
        return {**found, **found.pop(UNKNOWN, {})}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {str(key): _as_json(one) for key, one in value}
    return [_as_json(one) for one in value] if isinstance(value, list) else plain_scalar(value)
