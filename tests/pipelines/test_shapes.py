"""Values of a writer's Avro schema in the columns of a table, without Spark."""

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from fastavro.types import Schema
from hypothesis import given
from hypothesis import strategies as st

from tidelog_pipelines.transformations.values.avro_writer import AvroWriter
from tidelog_pipelines.transformations.values.framing import header, header_with_indexes
from tidelog_pipelines.transformations.values.json_columns import NOTHING
from tidelog_pipelines.transformations.values.registered import (
    Columns,
    RegisteredDecoder,
    Writers,
)
from tidelog_pipelines.transformations.values.shape_columns import placing
from tidelog_pipelines.transformations.values.shape_growth import grown
from tidelog_pipelines.transformations.values.shapes import Incompatible, Struct, struct_type
from tidelog_pipelines.transformations.values.strict_json import DEFAULT_LIMITS, Refused


def record(*fields: tuple[Any, ...]) -> dict[str, Any]:
    """A record schema. A field is a name, a type, and optionally a default and aliases."""
    keys = ("name", "type", "default", "aliases")
    named = [dict(zip(keys, field, strict=False)) for field in fields]
    return {"type": "record", "name": "R", "fields": named}


def encoded(schema: Schema, value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def stored(writer: Schema, table: Struct, value: dict[str, Any], is_fixed: bool = False) -> Any:
    shape, read = AvroWriter(json.dumps(writer)).compiled()
    return placing(shape, table, is_fixed=is_fixed)(read(encoded(writer, value), 0))


def shape(schema: Schema) -> Struct:
    return AvroWriter(json.dumps(schema)).compiled()[0]


def after(*schemas: Schema, widens: bool = True) -> Struct:
    table = Struct()
    for schema in schemas:
        table = grown(table, shape(schema), widens=widens)
    return table


RESOLVED: list[tuple[Any, Any, Any]] = [
    ("int", "long", 5),
    ("int", "double", 5),
    ("int", "float", 5),
    ("long", "double", 2**53),
    ("float", "double", 0.5),
    ("string", "bytes", "é"),
    ("bytes", "string", b"ab"),
    (["null", "int"], ["null", "long"], None),
    (["null", "int"], ["null", "long"], 7),
    (["int", "string"], "string", "x"),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, [1, 2]),
    ({"type": "map", "values": "float"}, {"type": "map", "values": "double"}, {"a": 0.5}),
]


@pytest.mark.parametrize(("writer", "reader", "value"), RESOLVED)
def test_types_are_promoted_as_avro_promotes_them(writer: Any, reader: Any, value: Any) -> None:
    old, new = record(("x", writer)), record(("x", reader))
    found, rest = stored(old, shape(new), {"x": value}, is_fixed=True)
    raw = io.BytesIO(encoded(old, {"x": value}))
    expected = fastavro.schemaless_reader(raw, old, new)
    assert isinstance(expected, dict)
    got = found.get("x")
    assert (dict(got) if isinstance(expected["x"], dict) else got) == expected["x"]
    assert rest is NOTHING


def test_the_readers_defaults_and_aliases() -> None:
    old = record(("item", "string"), ("extra", {"type": "map", "values": "bytes"}))
    line = {"type": "record", "name": "L", "fields": [{"name": "n", "type": "long", "default": 2}]}
    money = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    new = record(
        ("product", "string", "?", ["item"]),
        ("count", "long", 3),
        ("maybe", ["null", "string"], None),
        ("either", ["int", "string"], 4),
        ("line", line, {}),
        ("price", money, "\u0001\u0002"),
        ("raw", "bytes", "\u00ff"),
    )
    found, rest = stored(old, shape(new), {"item": "tea", "extra": {"a": b"\1"}}, is_fixed=True)
    assert found == {
        "product": "tea",
        "count": 3,
        "either": {"int": 4},
        "line": {"n": 2},
        "price": Decimal("2.58"),
        "raw": b"\xff",
    }
    assert rest == {"extra": {"a": "AQ=="}}


@pytest.mark.parametrize(
    ("writer", "reader", "reason"),
    [
        (record(("x", "string")), record(("x", "int")), "field x is STRING, and INT in the table"),
        (record(("x", "long")), record(("x", "int")), "field x is BIGINT, and INT in the table"),
        (record(), record(("y", "int")), "there is no field y, and --schema has no default for it"),
        (
            record(("x", {"type": "array", "items": record(("z", "int"))})),
            record(("x", {"type": "array", "items": record(("z", "boolean"))})),
            "field x.element.z is INT, and BOOLEAN in the table",
        ),
    ],
)
def test_a_schema_that_does_not_fit_names_the_field(writer: Any, reader: Any, reason: str) -> None:
    for name, schema in (("W", writer), ("V", reader)):
        for field in schema["fields"]:
            if isinstance(field["type"], dict):
                field["type"]["items"]["name"] = name
    with pytest.raises(Incompatible) as refusal:
        placing(shape(writer), shape(reader), is_fixed=True)
    assert str(refusal.value) == reason


def test_a_long_that_a_double_does_not_hold_is_refused() -> None:
    with pytest.raises(Refused, match="field x: 9007199254740993 is not exact as DOUBLE"):
        stored(record(("x", "long")), shape(record(("x", "double"))), {"x": 2**53 + 1})


def test_columns_are_appended_and_become_wider() -> None:
    first = record(("a", "int"), ("l", {"type": "array", "items": "float"}))
    second = record(("b", "string"), ("a", "long"), ("l", {"type": "array", "items": "double"}))
    table = after(first, second)
    assert struct_type(table).simpleString() == "struct<a:bigint,l:array<double>,b:string>"
    assert stored(first, table, {"a": 1, "l": [0.5]}) == ({"a": 1, "l": [0.5]}, NOTHING)
    with pytest.raises(Incompatible, match="field a is BIGINT, and INT in the table"):
        after(first, second, widens=False)


@pytest.mark.parametrize("order", [1, -1])
def test_a_renamed_field_keeps_its_column(order: int) -> None:
    old, new = record(("item", "string")), record(("product", "string", "", ["item"]))
    table = after(*[old, new][::order])
    assert len(table.fields) == 1
    for name, schema in (("item", old), ("product", new)):
        found, rest = stored(schema, table, {name: "tea"})
        assert (found, rest) == ({table.fields[0].name: "tea"}, NOTHING)


def test_a_union_grows_by_branches_and_keeps_values_of_one_type() -> None:
    one, two = record(("x", ["null", "int"])), record(("x", ["int", "string"]))
    three = record(("x", ["boolean", "string", "int"]))
    table = after(two, three, one)
    assert struct_type(table).simpleString() == (
        "struct<x:struct<int:int,string:string,boolean:boolean>>"
    )
    assert stored(one, table, {"x": 5}) == ({"x": {"int": 5}}, NOTHING)
    assert stored(three, table, {"x": True}) == ({"x": {"boolean": True}}, NOTHING)
    table = after(one, two)
    assert stored(two, table, {"x": 5}) == ({"x": 5}, NOTHING)
    with pytest.raises(Refused, match="field x is STRING, and INT in the table"):
        stored(two, table, {"x": "text"})


def test_what_no_column_can_hold_is_left() -> None:
    empty = {"type": "record", "name": "E", "fields": []}
    schema = record(("id", "int"), ("ID", "double"), ("e", empty), ("n", "null"))
    table = after(schema)
    assert struct_type(table).simpleString() == "struct<id:int>"
    value = {"id": 1, "ID": float("nan"), "e": {}, "n": None}
    assert stored(schema, table, value) == ({"id": 1}, {"ID": "nan", "e": {}})


def test_a_list_of_records_keeps_what_is_left_of_each() -> None:
    def orders(*fields: tuple[Any, ...]) -> dict[str, Any]:
        line = {**record(*fields), "name": "L"}
        return record(("l", {"type": "array", "items": line}))

    value = {"l": [{"n": 1, "m": 2}, {"n": 3, "m": 4}]}
    found = stored(
        orders(("n", "int"), ("m", "int")), shape(orders(("n", "int"))), value, is_fixed=True
    )
    assert found == ({"l": [{"n": 1}, {"n": 3}]}, {"l": [{"m": 2}, {"m": 4}]})


def test_a_recursive_schema_is_refused() -> None:
    schema = record(("next", ["null", "R"]))
    with pytest.raises(Incompatible, match="type R contains itself"):
        shape(schema)


def test_referenced_schemas_are_known_by_their_full_names() -> None:
    inner = {**record(("n", "int")), "name": "Line", "namespace": "a.b"}
    middle = {**record(("line", "a.b.Line")), "name": "Order", "namespace": "a"}
    outer = record(("order", "a.Order"))
    writer = AvroWriter(json.dumps(outer), (json.dumps(inner), json.dumps(middle)))
    found, read = writer.compiled()
    assert struct_type(found).simpleString() == "struct<order:struct<line:struct<n:int>>>"
    assert read(b"\x02", 0) == {"order": {"line": {"n": 1}}}


@given(st.binary(max_size=12))
def test_any_bytes_have_a_header_or_a_reason(raw: bytes) -> None:
    for read in (header, header_with_indexes):
        try:
            (found, _), end = read(raw)
        except Refused:
            continue
        assert raw[:5] == b"\0" + found.to_bytes(4, "big")
        assert end <= len(raw)


def test_a_schema_that_appears_after_the_examination_is_a_reason() -> None:
    schema = record(("id", "long"))
    writers = Writers({(1, ()): AvroWriter(json.dumps(schema))}, {})
    decoder = RegisteredDecoder(header, writers, Columns(shape(schema)), DEFAULT_LIMITS)
    body = encoded(schema, {"id": 7})
    stored_value, rest = decoder.decode(b"\0\0\0\0\1" + body, (0, 0))
    assert (stored_value, rest) == ({"id": 7}, None)
    reason = "^schema 2 was not known when the records were examined$"
    for offset in (1, 2):
        with pytest.raises(Refused, match=reason):
            decoder.decode(b"\0\0\0\0\2" + body, (0, offset))
