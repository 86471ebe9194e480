"""Distinguishes a bad Avro value from a valid one whose fields are all null.

Spark decodes a bad value to a row of nulls. With a reader schema that has one more field with a
default, a valid value has that field set, and a bad value has not.
"""

import json
from typing import Any

READ_FLAG = "tidelog_was_read"


def flagged_schema(schema: str) -> str:
    """The reader schema for a writer schema: the same record with one more field."""
    record: dict[str, Any] = json.loads(schema)
    flag = {"name": READ_FLAG, "type": "boolean", "default": True}
    return json.dumps({**record, "fields": [*record["fields"], flag]})


def complaint(schema: str) -> str | None:
    """Why a schema cannot be used, if it cannot."""
    try:
        found = json.loads(schema)
    except ValueError as error:
        return f"it is not JSON ({error})"
    if not isinstance(found, dict) or found.get("type") != "record" or "fields" not in found:
        return "it is not the schema of a record"
    return None
