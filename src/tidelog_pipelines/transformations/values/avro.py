"""Checks Avro schemas before a job starts."""

import json


def complaint(schema: str) -> str | None:
    """The reason why a schema cannot be used. None if it can be used."""
    try:
        found = json.loads(schema)
    except ValueError as error:
        return f"it is not JSON ({error})"
    if not isinstance(found, dict) or found.get("type") != "record" or "fields" not in found:
        return "it is not the schema of a record"
    return None
