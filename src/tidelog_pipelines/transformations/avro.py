"""Tells a bad Avro value from a good one whose fields are all null.

Spark turns a value that it cannot decode into a row of nulls. Read with a schema that has one more
field, with a default, a good value has that field set, and a bad one has not.
"""

import json
from typing import Any

READ_FLAG = "tidelog_was_read"


def flagged_schema(schema: str) -> str:
    """The reader's schema for a writer's: the same record with one more field."""
    record: dict[str, Any] = json.loads(schema)
    flag = {"name": READ_FLAG, "type": "boolean", "default": True}
    return json.dumps({**record, "fields": [*record["fields"], flag]})


def complaint(schema: str) -> str | None:
    """What is wrong with a schema, as far as we rely on it."""
    try:
        found = json.loads(schema)
    except ValueError as error:
        return f"it is not JSON ({error})"
    if not isinstance(found, dict) or found.get("type") != "record" or "fields" not in found:
        return "it is not the schema of a record"
    return None
