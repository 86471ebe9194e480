"""Encodes and decodes metadata records, with Kafka's framing.

A record's value consists of frame version (varint, 1), api key (varint), version (varint), and the
body in the flexible encoding. Every record is written in the lowest version that has all its
fields.

One request can create ten thousand records. For speed, a field is encoded with one call, and the
encodings of arrays are cached, because most records repeat a few arrays.
"""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import lru_cache
from operator import attrgetter
from struct import Struct, error, pack, unpack
from typing import Any, NamedTuple, TypeAlias, get_args, get_type_hints
from uuid import UUID

from tidelog.model.disk import Buffer
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.metadata import metadata_records
from tidelog.protocol.metadata.metadata_records import MetadataRecord, Since, Tag, Wire
from tidelog.protocol.varint import read_uvarint, uvarint

FRAME_VERSION = 1

Write: TypeAlias = Callable[[Any], bytes]
Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]

_CACHED = 4_096
"""The number of arrays and UUIDs to cache. The records of a topic repeat them often."""


def encode_record(record: MetadataRecord) -> bytes:
    """Encode a metadata record as the value of a log record."""
    plan = _plan(type(record))
    version = plan.lowest_version(record)
    return plan.prefixes[version] + plan.encode(record, version)


def decode_record(data: Buffer) -> MetadataRecord:
    """Decode the value of a log record; raises `MalformedMessage` if it is not valid."""
    value = bytes(data)
    try:
        return _decode(value)
    except (IndexError, error, UnicodeDecodeError) as wrong:
        raise MalformedMessage(f"truncated or corrupt: {wrong}") from None


def _decode(value: bytes) -> MetadataRecord:
    frame_version, position = read_uvarint(value, 0)
    if frame_version != FRAME_VERSION:
        raise MalformedMessage(f"unknown frame version {frame_version}")
    api_key, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    record_type = _BY_KEY.get(api_key)
    if record_type is None:
        raise MalformedMessage(f"api key {api_key} is not a metadata record")
    if version > record_type.MAX_VERSION:
        raise MalformedMessage(f"{record_type.__name__} has no version {version}")
    record: MetadataRecord
    record, position = _plan(record_type).read(value, position, version)
    if position != len(value):
        raise MalformedMessage(f"{len(value) - position} bytes left over")
    return record


_BY_KEY: dict[int, Any] = {kind.API_KEY: kind for kind in get_args(MetadataRecord)}


# -- The plan of a class: its fields in wire order -----------------------------------------------


class _Member(NamedTuple):
    name: str
    since: int
    default: object
    write: Write
    read: Read


@dataclass(frozen=True, slots=True)
class _Version:
    """The fields that one version has."""

    readers: tuple[tuple[str, Read], ...]
    writers: tuple[Write, ...]
    values_of: Callable[[object], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class _Plan:
    record_type: Callable[..., Any]
    prefixes: tuple[bytes, ...]
    """The framing of a record, by version."""
    versions: tuple[_Version, ...]
    tagged: dict[int, _Member]
    """The tagged fields by tag, in the ascending order in which they are written."""
    tagged_of: Callable[[object], Sequence[Any]]
    untagged: tuple[object, ...]
    """The defaults of the tagged fields, which are not written."""
    added: tuple[_Member, ...]
    """The fields that version 0 does not have; fields of later versions come first."""

    def lowest_version(self, record: object) -> int:
        for member in self.added:
            if getattr(record, member.name) != member.default:
                return member.since
        return 0

    def encode(self, record: object, version: int) -> bytes:
        layout = self.versions[version]
        parts = [
            write(value)
            for write, value in zip(layout.writers, layout.values_of(record), strict=True)
        ]
        values = self.tagged_of(record)
        parts.append(b"\0" if values == self.untagged else self._encode_tagged(values))
        return b"".join(parts)

    def _encode_tagged(self, values: Sequence[Any]) -> bytes:
        present = [
            (tag, member.write(value))
            for (tag, member), value in zip(self.tagged.items(), values, strict=True)
            if value != member.default
        ]
        parts = [uvarint(len(present))]
        for tag, body in present:
            parts += uvarint(tag), uvarint(len(body)), body
        return b"".join(parts)

    def read(self, data: bytes, position: int, version: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        for name, read in self.versions[version].readers:
            values[name], position = read(data, position)
        count, position = read_uvarint(data, position)
        for _ in range(count):
            tag, position = read_uvarint(data, position)
            size, position = read_uvarint(data, position)
            end = position + size
            if end > len(data):
                raise MalformedMessage("a tagged field overruns the record")
            # An unknown tag comes from a newer writer, so skip its field, as Kafka does.
            member_ = self.tagged.get(tag)
            if member_ is not None and member_.since <= version:
                values[member_.name], read_to = member_.read(data, position)
                if read_to != end:
                    raise MalformedMessage(f"the tagged field {member_.name} has a wrong size")
            position = end
        return self.record_type(**values), position


_PLANS: dict[Any, _Plan] = {}


def _plan(record_type: Any) -> _Plan:
    plan = _PLANS.get(record_type)
    if plan is None:
        plan = _PLANS[record_type] = _make_plan(record_type)
    return plan


def _make_plan(record_type: Any) -> _Plan:
    hints = get_type_hints(record_type, include_extras=True)
    members: list[_Member] = []
    tagged: dict[int, _Member] = {}
    for item in fields(record_type):
        wire, since, tag = _notes(get_args(hints[item.name])[1:])
        write, read = _codec(wire)
        member = _Member(item.name, since, _default(item), write, read)
        if tag is None:
            members.append(member)
        else:
            tagged[tag] = member
    added = [member for member in (*members, *tagged.values()) if member.since]
    added.sort(key=lambda member: member.since, reverse=True)
    tagged = dict(sorted(tagged.items()))
    # A nested structure has no key and no versions of its own.
    last, key = getattr(record_type, "MAX_VERSION", 0), getattr(record_type, "API_KEY", 0)
    return _Plan(
        record_type,
        tuple(uvarint(FRAME_VERSION) + uvarint(key) + uvarint(one) for one in range(last + 1)),
        tuple(_version(members, number) for number in range(last + 1)),
        tagged,
        _values([member.name for member in tagged.values()]),
        tuple(member.default for member in tagged.values()),
        tuple(added),
    )


def _version(members: Sequence[_Member], number: int) -> _Version:
    present = [member for member in members if member.since <= number]
    names = [member.name for member in present]
    return _Version(
        tuple((member.name, member.read) for member in present),
        tuple(member.write for member in present),
        _values(names),
    )


def _values(names: Sequence[str]) -> Callable[[object], Sequence[Any]]:
    """The function that returns these attributes of an object as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _notes(notes: tuple[object, ...]) -> tuple[Wire, int, int | None]:
    (wire,) = (note for note in notes if isinstance(note, Wire))
    since = [note.version for note in notes if isinstance(note, Since)]
    tag = [note.number for note in notes if isinstance(note, Tag)]
    return wire, since[0] if since else 0, tag[0] if tag else None


def _default(item: "Field[Any]") -> object:
    return None if item.default is MISSING else item.default


# -- Wire types ----------------------------------------------------------------------------------


def _fixed(layout: str) -> tuple[Write, Read]:
    struct = Struct(layout)
    unpack_from, size = struct.unpack_from, struct.size

    def read(data: bytes, position: int) -> tuple[Any, int]:
        return unpack_from(data, position)[0], position + size

    return struct.pack, read


_write_uuid = attrgetter("bytes")


def _read_uuid(data: bytes, position: int) -> tuple[UUID, int]:
    return _uuid(_take(data, position, 16)), position + 16


@lru_cache(_CACHED)
def _uuid(raw: bytes) -> UUID:
    return UUID(bytes=raw)


def _take(data: bytes, position: int, size: int) -> bytes:
    if position + size > len(data):
        raise MalformedMessage("a field overruns the record")
    return data[position : position + size]


def _sized(
    to_bytes: Callable[[Any], bytes], from_bytes: Callable[[bytes], Any]
) -> tuple[Write, Read]:
    """Codec of strings and bytes: the length plus one as a varint, where zero is null."""

    def write(value: Any) -> bytes:
        if value is None:
            return b"\0"
        raw = to_bytes(value)
        return uvarint(len(raw) + 1) + raw

    def read(data: bytes, position: int) -> tuple[Any, int]:
        length, position = read_uvarint(data, position)
        if length == 0:
            return None, position
        raw = _take(data, position, length - 1)
        return from_bytes(raw), position + length - 1

    return write, read


def _nested(name: str) -> tuple[Write, Read]:
    plan = _plan(getattr(metadata_records, name))
    return (
        lambda value: plan.encode(value, 0),
        lambda data, position: plan.read(data, position, 0),
    )


def _array(write_one: Write, read_one: Read) -> tuple[Write, Read]:
    def write(values: Any) -> bytes:
        if values is None:
            return b"\0"
        return b"".join((uvarint(len(values) + 1), *map(write_one, values)))

    def read(data: bytes, position: int) -> tuple[Any, int]:
        length, position = read_uvarint(data, position)
        if length == 0:
            return None, position
        # Every element takes at least one byte. Refuse a larger count before any allocation.
        if length - 1 > len(data) - position:
            raise MalformedMessage("an array claims more elements than there are bytes")
        values = []
        for _ in range(length - 1):
            value, position = read_one(data, position)
            values.append(value)
        return tuple(values), position

    return write, read


def _fixed_array(
    size: int, encoded: Callable[[Any], bytes], decoded: Callable[[bytes], tuple[Any, ...]]
) -> tuple[Write, Read]:
    """Codec of arrays of fixed-size elements, with a cache, because records often repeat arrays."""
    encoded, decoded = lru_cache(_CACHED)(encoded), lru_cache(_CACHED)(decoded)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        length, position = read_uvarint(data, position)
        if length == 0:
            return None, position
        end = position + size * (length - 1)
        if end > len(data):
            raise MalformedMessage("an array claims more elements than there are bytes")
        return decoded(data[position:end]), end

    return encoded, read


def _int32s_bytes(values: tuple[int, ...] | None) -> bytes:
    if values is None:
        return b"\0"
    return uvarint(len(values) + 1) + pack(f">{len(values)}i", *values)


def _int32s(raw: bytes) -> tuple[int, ...]:
    return unpack(f">{len(raw) // 4}i", raw)


def _uuids_bytes(values: tuple[UUID, ...] | None) -> bytes:
    if values is None:
        return b"\0"
    return b"".join((uvarint(len(values) + 1), *map(_write_uuid, values)))


def _uuids(raw: bytes) -> tuple[UUID, ...]:
    return tuple(_uuid(raw[at : at + 16]) for at in range(0, len(raw), 16))


_CODECS: dict[str, tuple[Write, Read]] = {
    "int8": _fixed(">b"),
    "int16": _fixed(">h"),
    "uint16": _fixed(">H"),
    "int32": _fixed(">i"),
    "int64": _fixed(">q"),
    "float64": _fixed(">d"),
    "bool": _fixed(">?"),
    "uuid": (_write_uuid, _read_uuid),
    "string": _sized(str.encode, bytes.decode),
    "bytes": _sized(bytes, bytes),
}

_ARRAY_CODECS: dict[str, tuple[Write, Read]] = {
    "int32": _fixed_array(4, _int32s_bytes, _int32s),
    "uuid": _fixed_array(16, _uuids_bytes, _uuids),
}


def _codec(wire: Wire) -> tuple[Write, Read]:
    if wire.array and wire.kafka_type in _ARRAY_CODECS:
        write, read = _ARRAY_CODECS[wire.kafka_type]
    else:
        write, read = _CODECS.get(wire.kafka_type) or _nested(wire.kafka_type)
        if wire.array:
            write, read = _array(write, read)
    may_be_null = wire.array or wire.kafka_type in ("string", "bytes")
    if wire.nullable or not may_be_null:
        return write, read
    return write, _refusing_null(wire, read)


def _refusing_null(wire: Wire, read: Read) -> Read:
    def read_present(data: bytes, position: int) -> tuple[Any, int]:
        value, position = read(data, position)
        if value is None:
            raise MalformedMessage(f"a null {wire.kafka_type} in a field that is not nullable")
        return value, position

    return read_present
