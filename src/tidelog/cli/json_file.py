"""Reads the JSON files of commands, and refuses wrong ones with the sentences of Kafka's tools."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tidelog.model.ids import TopicPartition
from tidelog.model.user_error import UserError

KINDS = {str: "a string", int: "a number", list: "an array", dict: "an object"}
VERSION = 1
MAX_INT = 2**31 - 1


class JsonObject:
    """A JSON object whose fields must have the expected types."""

    def __init__(self, fields: Any) -> None:
        if not isinstance(fields, dict):
            raise UserError(f"Expected JSON object, received {json.dumps(fields)[:80]}")
        self._fields = fields

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def text(self, name: str) -> str:
        return str(self._field(name, str))

    def number(self, name: str, largest: int = MAX_INT) -> int:
        value = int(self._field(name, int))
        if not -largest - 1 <= value <= largest:
            raise UserError(f"the number of field `{name}` is too large: {value}")
        return value

    def items(self, name: str, kind: type) -> list[Any]:
        """The items of an array, all of this kind."""
        items = self._field(name, list)
        for item in items:
            if not isinstance(item, kind) or isinstance(item, bool):
                shown = json.dumps(items)[:80]
                raise UserError(
                    f"field `{name}` must be an array, each item {KINDS[kind]}: {shown}"
                )
        return list(items)

    def objects(self, name: str) -> Iterator["JsonObject"]:
        return map(JsonObject, self.items(name, dict))

    def partition(self) -> TopicPartition:
        """The fields `topic` and `partition`."""
        return TopicPartition(self.text("topic"), self.number("partition"))

    def check_version(self) -> None:
        version = self.number("version") if "version" in self else VERSION
        if version != VERSION:
            raise UserError(f"Not supported version field value {version}")

    def _field(self, name: str, kind: type) -> Any:
        if name not in self._fields:
            raise UserError(f"No such field exists: `{name}`")
        value = self._fields[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise UserError(f"field `{name}` must be {KINDS[kind]}: {json.dumps(value)[:80]}")
        return value


def read_json(path: str, invalid: str = "The input string is not a valid JSON") -> JsonObject:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        raise UserError(f"Unable to read file {path}") from None
    try:
        return JsonObject(json.loads(text))
    except (ValueError, RecursionError):
        raise UserError(invalid) from None
