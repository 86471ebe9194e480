"""Odd Protobuf values are refused, or are decoded as by Protobuf's own runtime."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.nasty.comparable import plain
from tests.pipelines.nasty.independent_protobuf import (
    REFERENCES,
    SCHEMA,
    NotProtobuf,
    decode,
    random_value,
)

from tidelog_pipelines.sources import protobuf_schemas
from tidelog_pipelines.transformations.values.strict_json import Refused

_, READ = protobuf_schemas.writer(SCHEMA, REFERENCES, (0,)).compiled()
STRICTER = ("more than 32 bits", "more than 64 bits", "neither 0 nor 1", "has unknown fields")
"""Reasons why our decoder refuses values that Protobuf's runtime accepts."""


def named(value: Any) -> Any:
    """Convert maps to dictionaries, and keep only the names of unknown fields."""
    if isinstance(value, dict):
        return {key: set(one) if key == "#" else named(one) for key, one in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {key: named(one) for key, one in sorted(value)}
    return [named(one) for one in value] if isinstance(value, list) else value


def same(one: Any, other: Any) -> bool:
    return repr(_sorted(plain(one))) == repr(_sorted(plain(other)))


def _sorted(value: Any) -> Any:
    """Sort a value, and drop its empty lists and maps, which count as missing."""
    if isinstance(value, dict):
        names = sorted((name for name in value if value[name] not in ([], {})), key=str)
        return {name: _sorted(value[name]) for name in names}
    if isinstance(value, set):
        return sorted(value)
    return [_sorted(one) for one in value] if isinstance(value, list) else value


@given(st.integers(0, 2**32), st.data())
def test_any_damage_is_refused_or_decoded_as_the_runtime_does(
    seed: int, data: st.DataObject
) -> None:
    raw = random_value(random.Random(seed))
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(raw)))
        cut = at + data.draw(st.integers(0, 2))
        raw = raw[:at] + data.draw(st.binary(max_size=3)) + raw[cut:]
    try:
        wanted = decode(raw)
    except NotProtobuf:
        wanted = None
    found, reason = decoded(raw)
    if found is None:
        assert wanted is None or any(words in reason for words in STRICTER), raw
    else:
        assert wanted is not None, raw
        assert same(found, wanted), (raw, found, wanted)


def decoded(raw: bytes) -> tuple[Any, str]:
    try:
        return named(READ(raw, 0)), ""
    except Refused as refusal:
        return None, str(refusal)
