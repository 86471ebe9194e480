"""A thousand Avro values with a schema registry's header; many of them are damaged."""

import random

from tests.pipelines.nasty.independent_avro import random_value

SCHEMA_ID = 7
HEADER = b"\0" + SCHEMA_ID.to_bytes(4, "big")
HEADERS = (b"", b"\0", b"\1" + HEADER[1:], b"\0\0\0\0\x08", b"\0\0\0\0", HEADER + HEADER)


def values() -> list[bytes | None]:
    """All values; they are the same in every run."""
    dice = random.Random(15)
    found: list[bytes | None] = [None, b"", HEADER, b"\xff" * 20, HEADER + b"\xff" * 20]
    whole = random_value(dice)
    found += [HEADER + whole[:end] for end in range(len(whole))]
    found += [HEADER + whole + bytes(extra) for extra in (1, 2, 100)]
    found += [wrong + random_value(dice) for wrong in HEADERS for _ in range(5)]
    while len(found) < 1_000:
        value = random_value(dice)
        if dice.random() < 0.6:
            at = dice.randrange(len(value))
            value = value[:at] + dice.randbytes(dice.randrange(3)) + value[at + 1 :]
        found.append(HEADER + value)
    dice.shuffle(found)
    return found
