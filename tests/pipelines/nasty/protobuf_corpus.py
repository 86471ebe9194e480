"""A thousand Protobuf values with a schema registry's header. Many of them are damaged."""

import random

from tests.pipelines.nasty.independent_protobuf import random_value

HEADER = b"\0\0\0\0\2\0"
"""The second schema, and its first message."""
HEADERS = (b"", b"\0", b"\1" + HEADER[1:], b"\0\0\0\0\x08\0", b"\0\0\0\0", b"\0\0\0\0\2\x02\x12")


def values() -> list[bytes | None]:
    """All values. They are the same in every run."""
    dice = random.Random(29)
    found: list[bytes | None] = [None, b"", HEADER[:5], b"\xff" * 20, HEADER + b"\xff" * 20]
    whole = random_value(dice)
    found += [HEADER + whole[:end] for end in range(len(whole))]
    found += [wrong + b"\xff" + random_value(dice) for wrong in HEADERS for _ in range(5)]
    while len(found) < 1_000:
        value = random_value(dice)
        if dice.random() < 0.5:
            at = dice.randrange(len(value) + 1)
            value = value[:at] + dice.randbytes(dice.randrange(3)) + value[at + 1 :]
        found.append(HEADER + value)
    dice.shuffle(found)
    return found
