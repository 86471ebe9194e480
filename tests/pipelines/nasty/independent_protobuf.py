"""A Protobuf schema with every kind of field, and Protobuf's own runtime as decoder and encoder."""

import random
from decimal import Decimal
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields
from google.protobuf.message import DecodeError, Message

from tidelog_pipelines.sources import protobuf_schemas

LINE = """syntax = "proto3"; package odd;
message Line { sint64 n = 1; Suit suit = 2; }
enum Suit { TEA = 0; RUM = 1; }
"""
SCHEMA = """syntax = "proto3"; package odd;
import "odd/line.proto"; import "google/protobuf/timestamp.proto";
message Odd {
  double a = 1; float b = 2; int32 c = 3; int64 d = 4; uint32 e = 5; uint64 f = 6; sint32 g = 7;
  sint64 h = 8; fixed32 i = 9; fixed64 j = 10; sfixed32 k = 11; sfixed64 l = 12; bool m = 13;
  string n = 14; bytes o = 15; Suit p = 16; optional int32 q = 17; Line r = 18;
  repeated int32 s = 19; repeated double t = 20; repeated Suit u = 21; repeated Line v = 22;
  map<string, Line> w = 23; map<int64, Suit> x = 24;
  oneof y { int32 y_number = 25; string y_text = 26; Line y_line = 27; }
  google.protobuf.Timestamp at = 28; repeated string texts = 29 ;
}
message Second { Odd odd = 1; string extra = 1000; }
"""
REFERENCES = (("odd/line.proto", LINE),)


class NotProtobuf(Exception):
    pass


def class_of(name: str) -> type[Message]:
    compiled = protobuf_schemas.descriptors(SCHEMA, REFERENCES)
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(compiled).file:
        pool.Add(file)  # type: ignore[no-untyped-call]
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))  # type: ignore[no-untyped-call]


ODD = class_of("odd.Odd")


def random_value(dice: random.Random) -> bytes:
    """An encoded message. Some fields occur twice, and some are not in the schema."""
    found = b"".join(_random_message(dice).SerializeToString() for _ in range(dice.randrange(1, 3)))
    return found + dice.choice((b"", b"", b"\xc0\x3e\x07", b"\xc3\x3e\x08\x01\xc4\x3e"))


def _random_message(dice: random.Random) -> Any:
    found: Any = ODD()
    bits = dice.choice((0, 1, -1, 5, 2**31 - 1, -(2**31)))
    for name in dice.sample("abcdefghijklmnopq", dice.randrange(18)):
        if name in "ab":
            setattr(found, name, dice.choice((0.0, 0.5, -1.25, float("inf"), float("nan"))))
        elif name in "eifj":
            setattr(found, name, abs(bits) * (2**32 if name in "fj" and bits > 1 else 1))
        elif name in "dhl":
            setattr(found, name, dice.choice((bits, 2**63 - 1, -(2**63))))
        elif name == "n":
            found.n = dice.choice(("", "tea", "é"))
        elif name == "o":
            found.o = dice.randbytes(dice.randrange(4))
        elif name in "mp":
            setattr(found, name, dice.choice((0, 1)) if name == "m" else dice.choice((0, 1, 9)))
        else:
            setattr(found, name, bits)
    for _ in range(dice.randrange(3)):
        found.s.append(bits)
        found.u.append(dice.randrange(3))
        found.t.append(0.1)
        found.v.add(n=bits, suit=dice.randrange(2))
        found.w[dice.choice("ab")].n = bits
        found.x[bits] = dice.randrange(3)
        found.texts.append("é")
    match dice.randrange(5):
        case 0:
            found.y_number = bits
        case 1:
            found.y_text = "x"
        case 2:
            found.y_line.n = bits
        case 3:
            found.r.SetInParent()
            found.at.seconds, found.at.nanos = bits, 5
    return found


def decode(raw: bytes) -> dict[str, Any]:
    """The message in the form of a row. The key `#` has the numbers of unknown fields."""
    found = ODD()
    try:
        found.ParseFromString(raw)
    except DecodeError:
        raise NotProtobuf from None
    return _as_row(found)


def _as_row(found: Any) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for field in found.DESCRIPTOR.fields:
        value = getattr(found, field.name)
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            row[field.name] = {
                key: _one(inner.fields_by_name["value"], value[key]) for key in sorted(value)
            }
        elif field.is_repeated:
            row[field.name] = [_one(field, one) for one in value]
        elif not field.has_presence or found.HasField(field.name):
            row[field.name] = _one(field, value)
    if unknown := {f"#{one.field_number}" for one in unknown_fields.UnknownFieldSet(found)}:
        row["#"] = unknown
    return row


def _one(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _as_row(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    is_unsigned_long = field.type in (field.TYPE_UINT64, field.TYPE_FIXED64)
    return Decimal(value) if is_unsigned_long else value
