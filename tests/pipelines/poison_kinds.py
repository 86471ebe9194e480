"""The kinds of bad records that once vanished or stopped a job, each with the reason that it gets.

Values of kinds that are not named here are good: a field named `_corrupt_record`, numbers of any
size, names that differ only in case, and times before 1582 are stored in the table.
"""

from typing import NamedTuple

LONG_MAX = 2**63 - 1
MEGABYTE = 1 << 20
NOW = 1_700_000_000_000
SCHEMA_ID = 7
HEADER = b"\0" + SCHEMA_ID.to_bytes(4, "big")
AVRO = '{"type":"record","name":"r","fields":[{"name":"n","type":"long"}]}'
JSON_SETTINGS: dict[str, object] = {"max_value_bytes": MEGABYTE}
AVRO_SETTINGS: dict[str, object] = {
    "value_format": "avro",
    "avro_registry_header": True,
    "avro_schema_id": SCHEMA_ID,
}
SETTINGS = {"json": JSON_SETTINGS, "avro": AVRO_SETTINGS}
"""The settings of `ingest` for each format of values."""
SCHEMAS = {"avro": AVRO}
"""The schemas of the formats that need a file with the schema."""


class Poison(NamedTuple):
    """A bad record, and the reason for which it is quarantined."""

    value: bytes
    reason: str
    """The reason begins with this text."""
    timestamp: int = NOW
    format: str = "json"
    is_garbled: bool = False
    """Whether the batch of the record cannot be decompressed, so that nobody can read the value."""


def _json(value: bytes, reason: str) -> Poison:
    return Poison(value, reason)


def _avro(value: bytes, reason: str) -> Poison:
    return Poison(value, reason, format="avro")


KINDS = {
    "not-json": _json(b"{bad", "the value is not JSON"),
    "not-utf-8": _json(b"\xff", "the value is not UTF-8"),
    "duplicate-name": _json(b'{"x":1,"x":2}', 'the value has the name "x" twice in one object'),
    "nan": _json(b'{"x":NaN}', "the value is not JSON: it contains NaN"),
    "infinity": _json(b'{"x":-Infinity}', "the value is not JSON: it contains"),
    "two-objects": _json(b'{"x":1}{"x":2}', "the value is not JSON"),
    "trailing-text": _json(b'{"x":1} end', "the value is not JSON"),
    "600-levels": _json(
        b'{"x":%s%s}' % (b"[" * 600, b"]" * 600), "the value is nested deeper than 500 levels"
    ),
    "990-levels": _json(
        b'{"x":%s%s}' % (b"[" * 990, b"]" * 990), "the value is nested deeper than 500 levels"
    ),
    "too-large": _json(
        b'{"x":"%s"}' % (b"y" * MEGABYTE), f"the value has {MEGABYTE + 8} bytes, more than"
    ),
    "timestamp": Poison(
        b'{"n":-1}',
        f"the timestamp, {LONG_MAX - 5} ms, is beyond what a table can hold",
        LONG_MAX - 5,
    ),
    "garbled-batch": Poison(b"", "no client can read the record", is_garbled=True),
    "avro-magic": _avro(b"\1" + HEADER[1:] + b"\2", "the value begins with byte 1"),
    "avro-schema-id": _avro(b"\0\0\0\0\x08\2", "the value has schema id 8, not 7"),
    "avro-trailing": _avro(HEADER + b"\2\0", "the value does not match the Avro schema"),
    "avro-short": _avro(HEADER + b"\x80", "the value does not match the Avro schema"),
    "avro-no-header": _avro(b"\2", "the value is shorter than a schema registry's header"),
}


def good_value(kind: str, number: int) -> bytes:
    """A value of a format that decodes to the number in the field n."""
    if kind == "json":
        return b'{"n":%d}' % number
    zigzag, out = number << 1, bytearray(HEADER)
    while zigzag >= 0x80:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes(out) + bytes([zigzag])
