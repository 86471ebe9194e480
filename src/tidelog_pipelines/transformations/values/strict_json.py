"""Parses JSON strictly (RFC 8259), and writes parsed values as JSON, without loss.

Invariant: a text is parsed completely, or `Refused` with the reason. A number becomes an int, or a
float whose shortest digits denote the same number. Any other number becomes a `Numeral`, which is
the text of the number.
"""

import json
import re
import sys
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, NamedTuple

STRUCTURE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)
MOST_DEPTH = 1_000
"""The largest allowed `Limits.depth`. It is limited because the parser is recursive."""


class Refused(Exception):
    """The reason why a value cannot be decoded."""


class _Duplicate(Exception):
    """A name that occurs twice in one object."""


class Limits(NamedTuple):
    """The largest size and depth of a value. Larger or deeper values are refused unparsed."""

    value_bytes: int = 16 << 20
    depth: int = 500


DEFAULT_LIMITS = Limits()


class Numeral(str):
    """The text of a number that is not held exactly as an int or a float."""

    __slots__ = ()


class Parser:
    """Parses values within these limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # Python's stack must hold as many levels as a value may have.
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 6 * limits.depth + 1_000))
        self._decoder = json.JSONDecoder(
            object_pairs_hook=_object, parse_float=_fraction, parse_constant=_refuse_constant
        )
        self._with_long_integers = json.JSONDecoder(
            object_pairs_hook=_object,
            parse_float=_fraction,
            parse_int=_integer,
            parse_constant=_refuse_constant,
        )

    def parse(self, raw: bytes) -> dict[str, Any]:
        """The object that these bytes encode; raises `Refused`."""
        check_size(raw, self._limits)
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            raise Refused("the value is not UTF-8") from None
        depth = self._limits.depth
        # `nesting` is slow. Most values have so few brackets that they cannot be nested too deeply.
        if raw.count(b"{") + raw.count(b"[") > depth and nesting(text) > depth:
            raise Refused(f"the value is nested deeper than {depth} levels")
        found = self._parse_text(text)
        if type(found) is not dict:
            raise Refused("the value is JSON, but not an object")
        return found

    def _parse_text(self, text: str) -> Any:
        try:
            try:
                return self._decoder.decode(text)
            except json.JSONDecodeError:
                raise
            except ValueError:  # Python does not convert an integer of thousands of digits
                return self._with_long_integers.decode(text)
        except _Duplicate as duplicate:
            raise Refused(f"the value has the name {duplicate} twice in one object") from None
        except ValueError:
            raise Refused("the value is not JSON") from None


def check_size(raw: bytes, limits: Limits) -> None:
    """Refuse a value that is larger than allowed."""
    if len(raw) > limits.value_bytes:
        raise Refused(f"the value has {len(raw)} bytes, more than {limits.value_bytes}")


def nesting(text: str) -> int:
    """How deep brackets outside of strings are nested. The text need not be valid JSON."""
    depth = deepest = 0
    for found in STRUCTURE.finditer(text):
        token = found.group()
        if token in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif token in "]}":
            depth -= 1
    return deepest


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can encode a text. It cannot encode half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_decimal(number: int | float | Numeral) -> Decimal | None:
    """The exact number. None if its exponent is too large for a Decimal."""
    if type(number) is int:
        return Decimal(number)
    try:
        found = Decimal(repr(number) if type(number) is float else str(number))
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def dump(value: Any) -> str:
    """JSON text that `Parser` parses to the same value."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(name)}:{dump(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    if type(value) is str:
        return _quoted(value)
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)  # an int, a float or a Numeral


def _quoted(text: str) -> str:
    return encode_basestring(text) if is_unicode(text) else encode_basestring_ascii(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Duplicate(json.dumps(name[:100]))
            seen.add(name)
    return found


def _fraction(text: str) -> float | Numeral:
    number = float(text)
    if repr(number) == text:
        return number
    exact = as_decimal(Numeral(text))
    return number if exact is not None and exact == as_decimal(number) else Numeral(text)


def _integer(text: str) -> int | Numeral:
    return Numeral(text) if len(text) > 4_000 else int(text)


def _refuse_constant(name: str) -> None:
    raise Refused(f"the value is not JSON: it contains {name}")
