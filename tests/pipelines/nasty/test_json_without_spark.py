"""Odd JSON values, decoded without Spark: the division into batches does not matter."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.nasty import corpus
from tests.pipelines.nasty.cuts import Outcome, ingested, random_cuts
from tests.pipelines.nasty.independent_json import (
    NotJson,
    decode,
    object_of_row,
    without_nulls,
)

FIELDS = 60
"""A limit below the number of fields in the corpus, so that the tests reach the limit."""


def check(values: list[bytes | None], found: Outcome) -> None:
    """Assert that every record is refused or has a row with the same content."""
    for offset, raw in enumerate(values):
        assert (offset in found.rows) != (offset in found.refused)
        try:
            expected = None if raw is None else without_nulls(decode(raw))
        except NotJson:
            assert offset in found.refused, raw
            continue
        assert offset in found.rows, (raw, found.refused[offset])
        assert object_of_row(*found.rows[offset]) == expected, raw


def in_cuts(values: list[bytes | None], *cuts: slice) -> Outcome:
    numbered = list(enumerate(values))
    return ingested((numbered[cut] for cut in cuts), FIELDS)


def one_by_one(values: list[bytes | None]) -> Outcome:
    return in_cuts(values, *(slice(n, n + 1) for n in range(len(values))))


def same(one: Outcome, other: Outcome) -> bool:
    return (
        one.type == other.type
        and one.refused == other.refused
        and {offset: normal(*row) for offset, row in one.rows.items()}
        == {offset: normal(*row) for offset, row in other.rows.items()}
    )


def normal(stored: object, rescued: str | None) -> tuple[object, object]:
    """The row in a form in which equal numbers compare equal, in BIGINT and in DECIMAL."""
    return object_of_row(stored, None), rescued


def test_every_record_of_the_corpus_is_a_row_or_refused_in_every_cut() -> None:
    values = corpus.values()
    assert len(values) >= 1_000
    whole = in_cuts(values, slice(0, len(values)))
    check(values, whole)
    assert len(whole.rows) > 300
    assert len(whole.refused) > 300
    assert any(rescued for _, rescued in whole.rows.values())
    assert same(whole, one_by_one(values))
    dice = random.Random(3)
    for _ in range(10):
        assert same(whole, in_cuts(values, *random_cuts(dice, len(values), dice.randrange(1, 40))))


NAMES = st.one_of(st.sampled_from(("a", "A", "b", "c d", "\u017f", "s")), st.text(max_size=3))
NUMBERS = st.one_of(
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from((1, 2**53, 2**53 + 1, 0.5, 1e19, 10**20)),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4).map(lambda value: json.dumps(value).encode())


@given(st.lists(st.one_of(OBJECTS, st.binary(max_size=8), st.none()), max_size=8), st.data())
def test_the_same_records_give_the_same_rows_in_every_cut(
    values: list[bytes | None], data: st.DataObject
) -> None:
    whole = in_cuts(values, slice(0, len(values)))
    check(values, whole)
    assert same(whole, one_by_one(values))
    at = data.draw(st.integers(0, len(values)))
    assert same(whole, in_cuts(values, slice(0, at), slice(at, len(values))))


@pytest.mark.parametrize("fields", [0, 1, 2, 3])
def test_the_limit_of_fields_holds_in_every_cut(fields: int) -> None:
    texts = [b'{"a":1}', b'{"b":{"c":1,"d":2}}', b'{"e":[1]}', b'{"A":1}', b'{"b":{"d":"x"}}']
    numbered = list(enumerate(texts))
    whole = ingested([numbered], fields)
    assert same(whole, ingested([[one] for one in numbered], fields))
