"""Debezium's envelopes are unwrapped to the row after the change, without Spark."""

import io
import json
from typing import Any

import fastavro
import pytest

from tidelog_pipelines.transformations.values.avro_writer import AvroWriter
from tidelog_pipelines.transformations.values.debezium import EnvelopeParser, EnvelopeWriter
from tidelog_pipelines.transformations.values.shapes import Incompatible
from tidelog_pipelines.transformations.values.strict_json import DEFAULT_LIMITS, Parser, Refused

NO_OP = "the value is not a Debezium envelope: it has no op"
ROW: dict[str, Any] = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": ["null", "string"]}],
}
ENVELOPE: dict[str, Any] = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.orders",
    "fields": [
        {"name": "before", "type": ["null", ROW], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}


def parsed(envelope: Any) -> dict[str, Any] | None:
    return EnvelopeParser(Parser(DEFAULT_LIMITS)).parse(json.dumps(envelope).encode())


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_the_row_after_the_change_is_kept(is_wrapped: bool) -> None:
    def of(**envelope: Any) -> dict[str, Any] | None:
        source = {"before": None, "source": {"lsn": 5}, "ts_ms": 1, **envelope}
        return parsed({"schema": {"type": "struct"}, "payload": source} if is_wrapped else source)

    for op in "cru":
        assert of(op=op, after={"id": 1, "op": "x"}) == {"id": 1, "op": "x"}
    assert of(op="d", before={"id": 1}, after=None) is None
    assert of(op="d", before={"id": 1}) is None
    for op, reason in {
        "t": r"the Debezium envelope is a truncate \(op t\), not of one row",
        "m": r"the Debezium envelope is a message \(op m\), not of one row",
        "x": "the value is not a Debezium envelope: it has op 'x'",
        "u": "the Debezium envelope has op u, but no row in after",
    }.items():
        with pytest.raises(Refused, match=reason):
            of(op=op, after=None)


def test_what_is_not_an_envelope_is_refused_with_the_reason() -> None:
    for value in ({}, {"id": 1}, {"op": 1, "after": {}}, {"schema": {}, "payload": {"id": 1}}):
        with pytest.raises(Refused, match=NO_OP):
            parsed(value)
    with pytest.raises(Refused, match="its payload is not an object"):
        parsed({"schema": {}, "payload": 3})
    with pytest.raises(Refused, match="the value is JSON, but not an object"):
        parsed([1])
    assert parsed({"schema": None, "payload": None}) is None
    # A value is Connect's wrapper only if it has exactly these two fields.
    row = {"schema": "a", "payload": "b"}
    assert parsed({"op": "c", "after": row}) == row


def test_the_schema_of_an_envelope_gives_the_columns_of_its_rows() -> None:
    shape, read = EnvelopeWriter(AvroWriter(json.dumps(ENVELOPE))).compiled()
    assert [field.name for field in shape.fields] == ["id", "item"]

    def decoded(**value: Any) -> Any:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(ENVELOPE), value)
        return read(out.getvalue(), 0)

    assert decoded(op="u", after={"id": 1, "item": "tea"}) == {"id": 1, "item": "tea"}
    assert decoded(op="d", before={"id": 1, "item": None}) is None
    with pytest.raises(Refused, match="op t"):
        decoded(op="t")
    with pytest.raises(Refused, match="no row in after"):
        decoded(op="c")


def test_a_schema_that_is_not_of_an_envelope_does_not_fit() -> None:
    with pytest.raises(Incompatible, match="it is not the schema of a Debezium envelope"):
        EnvelopeWriter(AvroWriter(json.dumps(ROW))).compiled()
    odd = [{"name": "after", "type": "string"}, {"name": "op", "type": "string"}]
    with pytest.raises(Incompatible, match="after is not a record"):
        EnvelopeWriter(AvroWriter(json.dumps({**ENVELOPE, "fields": odd}))).compiled()
