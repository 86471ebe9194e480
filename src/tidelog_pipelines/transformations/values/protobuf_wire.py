"""Splits Protobuf's binary encoding into fields, strictly.

Invariant: every byte of a message belongs to a field, or the message is `Refused`.
"""

from collections.abc import Iterator
from struct import unpack_from
from typing import NamedTuple

from tidelog_pipelines.transformations.values.strict_json import Refused

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)
MOST_NUMBER = 2**29 - 1
MOST_DEPTH = 100
"""How deep groups may be nested; Protobuf's own libraries have the same limit."""


class WireField(NamedTuple):
    number: int
    wire_type: int
    value: int | bytes
    """An unsigned number, or bytes. The bytes of a group do not include its end tag."""
    raw: bytes
    """The encoding of the whole field, with its tag."""


def refused(why: str) -> Refused:
    return Refused(f"the value does not match the Protobuf schema: {why}")


def wire_fields(raw: bytes) -> Iterator[WireField]:
    """The fields of a message, in the order of their encoding; raises `Refused`."""
    at = 0
    while at < len(raw):
        start = at
        tag, at = read_varint(raw, at)
        value, at = _value(raw, at, tag, 0)
        yield WireField(tag >> 3, tag & 7, value, raw[start:at])


def read_varint(raw: bytes, at: int) -> tuple[int, int]:
    """A number of at most 64 bits, and the position after it."""
    found = shift = 0
    while True:
        if at >= len(raw):
            raise refused("it ends too early")
        byte = raw[at]
        found |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
        if shift >= 70:
            raise refused("a number has more than 64 bits")
    if found >= 2**64:
        raise refused("a number has more than 64 bits")
    return found, at


def _value(raw: bytes, at: int, tag: int, depth: int) -> tuple[int | bytes, int]:
    if not 1 <= tag >> 3 <= MOST_NUMBER:
        raise refused(f"a field has number {tag >> 3}")
    match tag & 7:
        case 0:
            return read_varint(raw, at)
        case 1:
            return _fixed(raw, at, "<Q", 8)
        case 2:
            size, at = read_varint(raw, at)
            if at + size > len(raw):
                raise refused("it ends too early")
            return raw[at : at + size], at + size
        case 3:
            return _group(raw, at, tag, depth + 1)
        case 5:
            return _fixed(raw, at, "<I", 4)
    raise refused(f"field {tag >> 3} has wire type {tag & 7}")


def _fixed(raw: bytes, at: int, form: str, size: int) -> tuple[int, int]:
    if at + size > len(raw):
        raise refused("it ends too early")
    return unpack_from(form, raw, at)[0], at + size


def _group(raw: bytes, at: int, tag: int, depth: int) -> tuple[bytes, int]:
    if depth > MOST_DEPTH:
        raise refused("it is nested too deeply")
    start = at
    while True:
        before = at
        inner, at = read_varint(raw, at)
        if inner & 7 == END_GROUP:
            if inner >> 3 != tag >> 3:
                raise refused(f"the end of group {inner >> 3} is in group {tag >> 3}")
            return raw[start:before], at
        _, at = _value(raw, at, inner, depth)
