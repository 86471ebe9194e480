"""Unwraps Debezium's change events: an envelope holds a row before and after a change.

The envelope has the fields `op`, `before` and `after`, and other fields that are left out. Kafka
Connect's JSON converter may put the envelope into another object, together with the schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidelog_pipelines.transformations.values.json_validation import ParsesValues
from tidelog_pipelines.transformations.values.registered import ReadBody, Writer
from tidelog_pipelines.transformations.values.shapes import Incompatible, Struct
from tidelog_pipelines.transformations.values.strict_json import Refused

NO_ENVELOPE, DEBEZIUM = "none", "debezium"
ENVELOPES = (NO_ENVELOPE, DEBEZIUM)
WRITES, DELETE = frozenset("cru"), "d"
"""The operations create, read (of a snapshot) and update have a row after the change."""
WITHOUT_A_ROW = {"t": "truncate", "m": "message"}
WRAPPER = {"schema", "payload"}


def row_after(envelope: Mapping[str, Any]) -> Any:
    """The row after a change; None if the change deletes it; raises `Refused`."""
    op = envelope.get("op")
    if not isinstance(op, str):
        raise Refused("the value is not a Debezium envelope: it has no op")
    if op == DELETE:
        return None
    if op in WITHOUT_A_ROW:
        raise Refused(f"the Debezium envelope is a {WITHOUT_A_ROW[op]} (op {op}), not of one row")
    if op not in WRITES:
        raise Refused(f"the value is not a Debezium envelope: it has op {op[:20]!r}")
    after = envelope.get("after")
    if not isinstance(after, dict):
        raise Refused(f"the Debezium envelope has op {op}, but no row in after")
    return after


class EnvelopeParser:
    """Parses envelopes in JSON."""

    def __init__(self, parser: ParsesValues) -> None:
        self._parser = parser

    def parse(self, raw: bytes) -> dict[str, Any] | None:
        """The row after the change; None if the change deletes it; raises `Refused`."""
        value: Any = self._parser.parse(raw)
        if value.keys() == WRAPPER:
            value = value["payload"]
            if value is None:
                return None  # a tombstone, as Connect's converter may write it
            if type(value) is not dict:
                raise Refused("the value is not a Debezium envelope: its payload is not an object")
        found: dict[str, Any] | None = row_after(value)
        return found


@dataclass(frozen=True)
class EnvelopeWriter:
    """The schema of envelopes. Only the row after the change is read from an envelope."""

    writer: Writer

    def compiled(self) -> tuple[Struct, ReadBody]:
        """The shape of the rows, and a function that reads one; raises `Incompatible`."""
        shape, read = self.writer.compiled()
        after = shape.get("after")
        if after is None or shape.get("op") is None:
            raise Incompatible("it is not the schema of a Debezium envelope")
        if not isinstance(after.shape, Struct) or after.shape.is_choice:
            raise Incompatible("after is not a record in this schema of a Debezium envelope")
        return after.shape, lambda raw, at: row_after(read(raw, at))
