"""More than a thousand JSON values that are odd in some way, the same in every run."""

import json
import random

from tests.pipelines.nasty.json_suite import CASES

TRIAL = (
    # Values that an early version of the job lost, changed or failed on.
    *(b'{"x":1,"x":2,"lost":"secret"}', b'{"a":{"x":1,"x":2}}', b'{"a":[{"b":1,"b":1}]}'),
    *(b'{"x":NaN,"after":1}', b'{"x":Infinity,"after":1}', b'{"x":-Infinity}', b'{"x":[NaN]}'),
    *(b'{"a":5}{"a":6}', b'{"a":5} text', b'{"a":5},', b'{"a":5}\n{"a":6}', b'{"a":5}\x00'),
    *(b'{"big":9223372036854775807}', b'{"big":9223372036854775808}', b'{"big":1e19}'),
    *(b'{"big":-9223372036854775808}', b'{"big":-9223372036854775809}', b'{"big":%d}' % 10**30),
    *(b'{"big":9007199254740993}', b'{"big":9007199254740992.5}', b'{"mixed":9007199254740993}'),
    *(b'{"mixed":0.5}', b'{"mixed":"text"}', b'{"mixed":{"deep":1}}', b'{"mixed":[1]}'),
    *(b'{"mixed":true}', b'{"mixed":null}', b'{"price":0.1}', b'{"price":9007199254740993}'),
    *(b'{"price":3}', b'{"price":3.141592653589793238462643383279}', b'{"price":1e400}'),
    *(b'{"id":1,"ID":2}', b'{"ID":3}', b'{"id":4}', b'{"Id":{"x":1}}', b'{"in":{"a":1,"A":2}}'),
    *(b'{"_corrupt_record":"mine","id":1}', b'{"_rescued":1}', b'{"value":1,"offset":2}'),
    *(b'{"a b":1}', b'{"a;b":1}', b'{"a=b":1}', b'{"a.b":1,"a":{"b":2}}', b'{"`":1}', b'{"":1}'),
    *(b'{"\\n":1}', b'{"\\u0000":1}', b'{"\xc3\xa9":1}', b'{"\xc4\xb0":1,"i":2}', b'{"\\ud800":1}'),
    *(b'{"tags":[]}', b'{"tags":[null]}', b'{"tags":["x"]}', b'{"tags":[]}', b'{"tags":["x",1]}'),
    *(b'{"o":{}}', b'{"o":{"p":null}}', b'{"o":{"p":{}}}', b'{"o":{"p":{"q":1}}}', b'{"o":{}}'),
    *(b'{"l":[{"x":[]}]}', b'{"l":[{"y":1}]}', b'{"l":[{"x":[]}]}', b'{"l":[{"x":[1.5]}]}'),
    *(b'{"l":[{"x":"odd"}]}', b'{"l":[[1]]}', b'{"l":[{"y":9007199254740993},{"y":0.5}]}'),
    b"%s1%s" % (b'{"n":' * 400, b"}" * 400),
    b'{"n":%s%s}' % (b"[" * 600, b"]" * 600),
    b'{"n":%s%s}' % (b"[" * 990, b"]" * 990),
    b'{"wide":{%s}}' % b",".join(b'"f%d":%d' % (n, n) for n in range(40)),
    b'{"digits":%s}' % (b"7" * 5_000),
    b'{"long":"%s"}' % (b"x" * 100_000),
    *(
        b"\xff\xfe{\x00}\x00",
        b"\x1f\x8b\x08\x00",
        b"<xml/>",
        b"id,name\n1,x",
        b"\x00\x00\x00\x00\x07ab",
    ),
)
WORDS = (
    "",
    "a",
    "\u00e9",
    "\U0001f30a",
    "1",
    "null",
    "2026-11-15",
    "\x7f",
    "a\nb",
    '"',
    "\\",
    "\ufeff",
)
NAMES = ("id", "Id", "item", "n", "deep", "list", "a b", "\u00fc", "x.y")
NUMBERS = (0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 10**20, 0.5, -0.0, 1e-7, 1e300, 2.0, 0.1)


def values() -> list[bytes | None]:
    """All values, in a shuffled order that is the same in every run."""
    dice = random.Random(14)
    wrapped = [b'{"case%d":%s}' % (number % 7, case) for number, case in enumerate(CASES)]
    found: list[bytes | None] = [*TRIAL, *CASES, *wrapped, None, None]
    while len(found) < 1_200:
        text = json.dumps(_object(dice, 0), ensure_ascii=dice.random() < 0.5).encode()
        found.append(text if dice.random() < 0.7 else _damaged(dice, text))
    dice.shuffle(found)
    return found


def _object(dice: random.Random, depth: int) -> dict[str, object]:
    return {dice.choice(NAMES): _value(dice, depth) for _ in range(dice.randrange(4))}


def _value(dice: random.Random, depth: int) -> object:
    choice = dice.randrange(4 if depth > 3 else 6)
    if choice == 4:
        return _object(dice, depth + 1)
    if choice == 5:
        return [_value(dice, depth + 1) for _ in range(dice.randrange(3))]
    return (dice.choice(NUMBERS), dice.choice(WORDS), dice.random() < 0.5, None)[choice]


def _damaged(dice: random.Random, text: bytes) -> bytes:
    """The text with one byte removed, doubled, or replaced."""
    at = dice.randrange(len(text))
    replaced = dice.choice((b"", text[at : at + 1] * 2, bytes([dice.randrange(256)])))
    return text[:at] + replaced + text[at + 1 :]
