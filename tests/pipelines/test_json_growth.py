"""Columns of JSON values: inferred from the first values, extended later, and never narrowed."""

from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from tidelog_pipelines.transformations.values.json_growth import WIDE, Grown, Observer, folded, grow


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def grown(known: StructType, *values: dict[str, Any], widens: bool = True, most: int = 9) -> Grown:
    observer = Observer(known, 100)
    for offset, value in enumerate(values):
        observer.observe(value, (0, offset))
    return grow(known, observer.seen, most, widens=widens)


def test_each_kind_of_value_has_its_type() -> None:
    value = {"a": True, "b": 1, "c": 0.5, "d": "x", "e": {"f": [[1]]}, "g": None, "h": [], "i": {}}
    assert grown(struct(), value).type == struct(
        a=BooleanType(),
        b=LongType(),
        c=DoubleType(),
        d=StringType(),
        e=struct(f=ArrayType(ArrayType(LongType()))),
    )


def test_the_first_value_decides_and_another_kind_changes_nothing() -> None:
    values: list[dict[str, Any]] = [{"a": "x"}, {"a": 1}, {"a": {"b": 1}}, {"a": [1]}]
    assert grown(struct(), *values).type == struct(a=StringType())
    assert grown(struct(a=BooleanType()), *values).type == struct(a=BooleanType())


@pytest.mark.parametrize("number", [0.5, 2**63, 10**19])
def test_integers_become_decimals_when_a_number_needs_it(number: float) -> None:
    known = struct(a=LongType(), b=ArrayType(struct(c=LongType())))
    found = grown(known, {"a": number, "b": [{"c": number}]})
    assert found.type == struct(a=WIDE, b=ArrayType(struct(c=WIDE)))
    assert found.widened == (("a",), ("b", "element", "c"))
    assert grown(struct(), {"a": 1}, {"a": number}).type == struct(a=WIDE)
    assert grown(known, {"a": number}, widens=False).type == known


@pytest.mark.parametrize("number", [10**20, 1e300, 1e-30])
def test_a_number_that_no_decimal_holds_changes_nothing(number: float) -> None:
    assert grown(struct(a=LongType()), {"a": number}).type == struct(a=LongType())


def test_new_fields_come_last_also_inside() -> None:
    known = struct(a=LongType(), b=struct(x=LongType()), c=ArrayType(struct(y=LongType())))
    found = grown(known, {"z": 1, "b": {"w": "s"}, "c": [{"v": 1}]})
    assert found.type == struct(
        a=LongType(),
        b=struct(x=LongType(), w=StringType()),
        c=ArrayType(struct(y=LongType(), v=LongType())),
        z=LongType(),
    )


def test_of_names_that_differ_in_case_the_first_has_the_column() -> None:
    assert grown(struct(), {"ID": 1, "id": "x"}, {"Id": 1}).type == struct(ID=LongType())
    assert grown(struct(id=LongType()), {"ID": 1}).type == struct(id=LongType())
    for one, other in (("\u212a", "k"), ("\u017f", "S"), ("\u0130", "i"), ("\u0131", "I")):
        assert folded(one) == folded(other)


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a\n", "\x00", "\ud800", "x" * 201])
def test_a_name_that_no_column_can_have_gets_none(name: str) -> None:
    assert grown(struct(), {name: 1}).type == struct()


def test_a_list_is_known_since_its_first_element() -> None:
    found = grown(struct(), {"a": [], "b": 1}, {"a": [[]]}, {"a": [[1]]})
    assert found.since == {(): (0, 0), ("a",): (0, 2), ("a", "element"): (0, 2)}


def test_fields_beyond_the_limit_get_no_column() -> None:
    values: list[dict[str, Any]] = [{"a": 1}, {"b": {"c": 1}}, {"d": 1}]
    found = grown(struct(), *values, most=2)
    assert found.type == struct(a=LongType(), b=struct(c=LongType()))
    assert grown(found.type, {"e": 1}, most=2).type == found.type


def test_columns_are_not_nested_without_end() -> None:
    value: Any = 1
    for _ in range(30):
        value = {"a": value}
    assert grown(struct(), value).type == struct()
