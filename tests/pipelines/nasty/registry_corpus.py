"""A thousand Avro values of several writers' schemas. Many of the values are damaged."""

import random
from typing import Any

from tests.pipelines.nasty.independent_avro import SCHEMA, encode_long, random_value

LONGER = [
    {**field, "type": "long"} if field["name"] == "small" else field for field in SCHEMA["fields"]
]
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
NEWER: dict[str, Any] = {**SCHEMA, "fields": [*LONGER, NOTE]}
CONTRARY: dict[str, Any] = {**SCHEMA, "fields": [{"name": "flag", "type": "string"}]}
SCHEMAS = (SCHEMA, NEWER, CONTRARY)
"""The schemas with the ids 1, 2 and 3. Schema 3 has another type for a field of schema 1."""
UNKNOWN_ID = 77


def header(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big")


def _value(dice: random.Random) -> bytes:
    """A complete value of any of the schemas, with its header."""
    match dice.randrange(10):
        case 0:
            return header(3) + encode_long(3) + b"yes"
        case 1:
            return header(UNKNOWN_ID) + random_value(dice)
        case 2 | 3 | 4 | 5:
            note = dice.choice((b"\0", b"\2\0", b"\2" + encode_long(3) + b"tea"))
            return header(2) + random_value(dice) + note
    return header(1) + random_value(dice)


def values() -> list[bytes | None]:
    """All values. They are the same in every run, and the first value has the first schema."""
    dice = random.Random(23)
    found: list[bytes | None] = [None, b"", b"\0", b"\0\0\0\0", header(1), header(2), header(3)]
    whole = random_value(dice) + b"\0"
    found += [header(2) + whole[:end] for end in range(len(whole))]
    found += [header(2) + whole + bytes(extra) for extra in (1, 2, 100)]
    found += [b"\1" + _value(dice)[1:] for _ in range(5)]
    found += [header(1) + _value(dice) for _ in range(5)]
    while len(found) < 1_000:
        value = _value(dice)
        if dice.random() < 0.5:
            at = dice.randrange(5, len(value))
            value = value[:at] + dice.randbytes(dice.randrange(3)) + value[at + 1 :]
        found.append(value)
    dice.shuffle(found)
    return [header(1) + random_value(dice), *found]
