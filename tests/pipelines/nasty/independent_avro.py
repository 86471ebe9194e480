"""An Avro schema with every kind of type, an encoder, and a decoder independent of the job."""

import io
import json
import random
import struct
from decimal import Decimal
from typing import Any

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Odd",
    "namespace": "tests",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "small", "type": "int"},
        {"name": "maybe", "type": ["null", "string"]},
        {"name": "ratio", "type": "double"},
        {"name": "rough", "type": "float"},
        {"name": "blob", "type": "bytes"},
        {"name": "flag", "type": "boolean"},
        {"name": "suit", "type": {"type": "enum", "name": "Suit", "symbols": ["TEA", "RUM"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 3}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": "n", "type": "long"}, {"name": "suit", "type": "Suit"}],
                },
            },
        },
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "either", "type": ["int", "null", "string"]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "millis", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        },
    ],
}
TEXT = json.dumps(SCHEMA)


class NotAvro(Exception):
    pass


def encode_long(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _sized(raw: bytes) -> bytes:
    return encode_long(len(raw)) + raw


def random_value(dice: random.Random) -> bytes:
    """A valid value; some of its array blocks have the optional size in bytes."""
    line = encode_long(dice.randrange(-99, 99)) + encode_long(dice.randrange(2))
    lines = dice.choice(
        (b"\0", b"\x02" + line + b"\0", encode_long(-1) + encode_long(len(line)) + line + b"\0")
    )
    counts = dice.choice((b"\0", b"\x04" + _sized(b"a") + b"\x02" + _sized(b"b") + b"\x03" + b"\0"))
    return b"".join(
        (
            encode_long(dice.choice((0, 1, -1, 2**63 - 1, -(2**63), dice.randrange(10**6)))),
            encode_long(dice.choice((0, 2**31 - 1, -(2**31)))),
            dice.choice((b"\0", b"\x02" + _sized(dice.choice(("", "tea", "\u00e9")).encode()))),
            struct.pack("<d", dice.choice((0.1, -0.0, 1e300))),
            struct.pack("<f", dice.choice((0.5, -1.25))),
            _sized(dice.randbytes(dice.randrange(4))),
            dice.choice((b"\0", b"\1")),
            dice.choice((b"\0", b"\2")),
            dice.randbytes(3),
            lines,
            counts,
            dice.choice((b"\0" + encode_long(dice.randrange(99)), b"\2", b"\4" + _sized(b"x"))),
            encode_long(dice.choice((0, -719_162, 20_000))),
            encode_long(dice.choice((0, -62_135_596_800_000, 1_763_208_000_000))),
            encode_long(dice.choice((0, -62_135_596_800_000_000))),
            _sized(dice.choice((0, 1, -999_999, 999_999)).to_bytes(3, "big", signed=True)),
        )
    )


def decode(raw: bytes, schema: dict[str, Any] = SCHEMA) -> dict[str, Any]:
    """The record as a dictionary; timestamps are in microseconds, and dates are in days."""
    file = io.BytesIO(raw)
    found = _read(schema, file)
    if file.read(1):
        raise NotAvro("bytes are left")
    assert isinstance(found, dict)
    return found


def _take(file: io.BytesIO, size: int) -> bytes:
    if size < 0:
        raise NotAvro("a negative size")
    raw = file.read(size)
    if len(raw) < size:
        raise NotAvro("too short")
    return raw


def _long(file: io.BytesIO, bits: int = 64) -> int:
    digits = []
    while True:
        (byte,) = _take(file, 1)
        digits.append(byte & 0x7F)
        if byte < 0x80:
            break
    number = sum(digit << 7 * place for place, digit in enumerate(digits))
    if len(digits) > 10 or number >= 1 << 64:
        raise NotAvro("too many bits")
    signed = -(number + 1) // 2 if number % 2 else number // 2
    if not -(1 << bits - 1) <= signed < 1 << bits - 1:
        raise NotAvro("out of range")
    return signed


def _text(file: io.BytesIO) -> str:
    try:
        return _take(file, _long(file)).decode()
    except UnicodeDecodeError:
        raise NotAvro("no text") from None


def _blocks(read: Any, file: io.BytesIO) -> list[Any]:
    found: list[Any] = []
    while count := _long(file):
        end = None
        if count < 0:
            end = _long(file)
            end += file.tell()
        if abs(count) > 100_000:
            raise NotAvro("too many")
        found += [read() for _ in range(abs(count))]
        if end is not None and end != file.tell():
            raise NotAvro("another size")
    return found


def _one_of(options: list[Any], file: io.BytesIO) -> tuple[int, Any]:
    number = _long(file)
    if not 0 <= number < len(options):
        raise NotAvro("no such option")
    return number, options[number]


def _read(schema: Any, file: io.BytesIO) -> Any:
    if isinstance(schema, list):
        _, branch = _one_of(schema, file)
        found = _read(branch, file)
        members = [one for one in schema if one != "null"]
        is_choice = len(members) > 1 and branch != "null"
        return {f"member{members.index(branch)}": found} if is_choice else found
    if schema == "Suit":
        schema = SCHEMA["fields"][7]["type"]
    name = schema["type"] if isinstance(schema, dict) else schema
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if logical == "timestamp-millis":
        return _within_64_bits(_long(file) * 1_000)
    if logical == "decimal":
        unscaled = int.from_bytes(_take(file, _long(file)), "big", signed=True)
        if abs(unscaled) >= 10 ** schema["precision"]:
            raise NotAvro("too many digits")
        return Decimal(unscaled) / 100
    return _read_plain(name, schema, file)


def _within_64_bits(number: int) -> int:
    if abs(number) >= 1 << 63:
        raise NotAvro("too large")
    return number


def _read_plain(name: str, schema: Any, file: io.BytesIO) -> Any:
    match name:
        case "null":
            return None
        case "boolean":
            byte = _take(file, 1)
            return byte == b"\1" if byte in (b"\0", b"\1") else _refuse()
        case "int" | "long":
            return _long(file, 32 if name == "int" else 64)
        case "float" | "double":
            size, kind = (4, "<f") if name == "float" else (8, "<d")
            return struct.unpack(kind, _take(file, size))[0]
        case "bytes":
            return _take(file, _long(file))
        case "string":
            return _text(file)
        case "fixed":
            return _take(file, schema["size"])
        case "enum":
            return _one_of(schema["symbols"], file)[1]
        case "array":
            return _blocks(lambda: _read(schema["items"], file), file)
        case "map":
            pairs = _blocks(lambda: (_text(file), _read(schema["values"], file)), file)
            return dict(pairs) if len(dict(pairs)) == len(pairs) else _refuse()
    return {one["name"]: _read(one["type"], file) for one in schema["fields"]}


def _refuse() -> Any:
    raise NotAvro("not a value of this type")
