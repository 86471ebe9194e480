"""A JSON decoder of RFC 8259 that shares no code with the one under test.

It works on bytes and returns numbers as Decimals. It also converts table rows back to objects.
"""

import re
import sys
from decimal import Decimal, InvalidOperation
from typing import Any

NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
SPACE = b" \t\n\r"
ESCAPES = {b"b": "\b", b"f": "\f", b"n": "\n", b"r": "\r", b"t": "\t"}
WORDS: dict[bytes, Any] = {b"true": True, b"false": False, b"null": None}
DEEPEST = 500


class NotJson(Exception):
    pass


def decode(raw: bytes) -> dict[str, Any]:
    """Decode a JSON object; raise `NotJson` if the bytes are anything else."""
    try:
        raw.decode("utf-8", "strict")
    except UnicodeDecodeError:
        raise NotJson from None
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 5 * DEEPEST))
    value, end = _value(raw, _skip(raw, 0), 0)
    if _skip(raw, end) != len(raw) or not isinstance(value, dict):
        raise NotJson
    return value


def _skip(raw: bytes, at: int) -> int:
    while at < len(raw) and raw[at] in SPACE:
        at += 1
    return at


def _value(raw: bytes, at: int, depth: int) -> tuple[Any, int]:
    first = raw[at : at + 1]
    if first in (b"{", b"["):
        if depth == DEEPEST:
            raise NotJson
        return (_object if first == b"{" else _list)(raw, at + 1, depth + 1)
    if first == b'"':
        return _string(raw, at + 1)
    for word, meaning in WORDS.items():
        if raw.startswith(word, at):
            return meaning, at + len(word)
    found = NUMBER.match(raw, at)
    if found is None:
        raise NotJson
    return number(found.group().decode()), found.end()


def number(text: str) -> Any:
    try:
        return Decimal(text)
    except InvalidOperation:
        return ("beyond a Decimal", text)


def _object(raw: bytes, at: int, depth: int) -> tuple[Any, int]:
    found: dict[str, Any] = {}
    at = _skip(raw, at)
    if raw[at : at + 1] == b"}":
        return found, at + 1
    while True:
        at = _skip(raw, at)
        if raw[at : at + 1] != b'"':
            raise NotJson
        name, at = _string(raw, at + 1)
        at = _skip(raw, at)
        if raw[at : at + 1] != b":" or name in found:
            raise NotJson
        found[name], at = _value(raw, _skip(raw, at + 1), depth)
        at = _skip(raw, at)
        if raw[at : at + 1] == b"}":
            return found, at + 1
        if raw[at : at + 1] != b",":
            raise NotJson
        at += 1


def _list(raw: bytes, at: int, depth: int) -> tuple[Any, int]:
    found: list[Any] = []
    at = _skip(raw, at)
    if raw[at : at + 1] == b"]":
        return found, at + 1
    while True:
        one, at = _value(raw, _skip(raw, at), depth)
        found.append(one)
        at = _skip(raw, at)
        if raw[at : at + 1] == b"]":
            return found, at + 1
        if raw[at : at + 1] != b",":
            raise NotJson
        at += 1


def _string(raw: bytes, at: int) -> tuple[str, int]:
    units: list[int] = []  # UTF-16 code units, so that a surrogate pair becomes one character
    while True:
        byte = raw[at : at + 1]
        if byte == b'"':
            return _of_units(units), at + 1
        if byte == b"" or byte[0] < 0x20:
            raise NotJson
        if byte == b"\\":
            text, at = _escape(raw, at + 1)
        else:
            size = 1 + (byte[0] >= 0xC0) + (byte[0] >= 0xE0) + (byte[0] >= 0xF0)
            text, at = raw[at : at + size].decode(), at + size
        coded = text.encode("utf-16-be", "surrogatepass")
        units += [int.from_bytes(coded[n : n + 2], "big") for n in range(0, len(coded), 2)]


def _escape(raw: bytes, at: int) -> tuple[str, int]:
    letter = raw[at : at + 1]
    if letter == b"u":
        digits = raw[at + 1 : at + 5]
        if not re.fullmatch(rb"[0-9a-fA-F]{4}", digits):
            raise NotJson
        return chr(int(digits, 16)), at + 5
    if letter in (b'"', b"\\", b"/"):
        return letter.decode(), at + 1
    if letter not in ESCAPES:
        raise NotJson
    return ESCAPES[letter], at + 1


def _of_units(units: list[int]) -> str:
    coded = b"".join(unit.to_bytes(2, "big") for unit in units)
    return coded.decode("utf-16-be", "surrogatepass")


def without_nulls(value: Any) -> Any:
    """Remove null fields, because a table stores null and missing fields alike."""
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def object_of_row(stored: Any, rescued: str | None) -> Any:
    """The object that a row holds in its columns and in `_rescued`."""
    found = None if stored is None else _plain(stored)
    if rescued is None:
        return found
    rest = decode(rescued.encode())
    return without_nulls(rest) if found is None else _merged(found, without_nulls(rest))


def _plain(value: Any) -> Any:
    """Convert a value that Spark has read to the types of this decoder."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float | Decimal):
        return number(repr(value) if isinstance(value, float) else str(value))
    if isinstance(value, list):
        return [_plain(one) for one in value]
    fields = value if isinstance(value, dict) else value.asDict()
    return {name: _plain(one) for name, one in fields.items() if one is not None}


def _merged(one: Any, other: Any) -> Any:
    assert isinstance(one, dict), "a value is both in a column and in _rescued"
    assert isinstance(other, dict), "a value is both in a column and in _rescued"
    both = dict(one)
    for name, value in other.items():
        both[name] = _merged(both[name], value) if name in both else value
    return both
