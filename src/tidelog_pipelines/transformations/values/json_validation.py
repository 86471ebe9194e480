"""Parses JSON values that have a registry's header, and validates them with their JSON Schema.

The library jsonschema is imported only when values are validated.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from tidelog_pipelines.transformations.values.framing import HEADER_BYTES, not_examined, schema_id
from tidelog_pipelines.transformations.values.strict_json import (
    Limits,
    Numeral,
    Parser,
    Refused,
    as_decimal,
    check_size,
)

LONGEST_REASON = 200


@dataclass(frozen=True)
class JsonSchema:
    """A schema, and the names and texts of the schemas that it refers to."""

    text: str
    references: tuple[tuple[str, str], ...] = ()

    def validator(self) -> Any:
        """A validator of the library jsonschema. Raises `Refused` if the schema is not valid."""
        from jsonschema import SchemaError, validators
        from referencing import Registry, Resource
        from referencing.jsonschema import DRAFT7

        try:
            schema = json.loads(self.text)
            resources = [
                (name, Resource.from_contents(json.loads(text), default_specification=DRAFT7))
                for name, text in self.references
            ]
            kind = validators.validator_for(schema, default=validators.Draft7Validator)
            kind.check_schema(schema)
        except ValueError as error:
            raise Refused(f"it is not JSON ({error})") from None
        except SchemaError as error:
            raise Refused(f"it is not a valid JSON Schema ({_short(error.message)})") from None
        return kind(schema, registry=Registry().with_resources(resources))


@dataclass(frozen=True)
class JsonSchemas:
    """The usable schemas of a batch by id, and the reason for each schema that cannot be used."""

    usable: Mapping[int, JsonSchema]
    refused: Mapping[int, str]


class ParsesValues(Protocol):
    def parse(self, raw: bytes) -> dict[str, Any] | None:
        """The row that these bytes encode; None if they delete it; raises `Refused`."""


def parser(limits: Limits, schemas: JsonSchemas | None) -> ParsesValues:
    """A parser of values. With schemas, values have a registry's header and are validated."""
    return Parser(limits) if schemas is None else ValidatingParser(limits, schemas)


class ValidatingParser:
    def __init__(self, limits: Limits, schemas: JsonSchemas) -> None:
        self._parser = Parser(limits)
        self._limits = limits
        self._schemas = schemas
        self._validators: dict[int, Any] = {}

    def parse(self, raw: bytes) -> dict[str, Any]:
        """The object after the header. Raises `Refused` if the schema does not allow it."""
        check_size(raw, self._limits)
        id = schema_id(raw)
        if id in self._schemas.refused:
            raise Refused(self._schemas.refused[id])
        if id not in self._schemas.usable:
            raise not_examined(id)
        value = self._parser.parse(raw[HEADER_BYTES:])
        if id not in self._validators:
            self._validators[id] = self._schemas.usable[id].validator()
        if (wrong := _first_error(self._validators[id], value)) is not None:
            raise Refused(f"the value is not valid by schema {id}: {wrong}")
        return value


def _first_error(validator: Any, value: Any) -> str | None:
    from jsonschema.exceptions import best_match
    from referencing.exceptions import Unresolvable

    try:
        error = best_match(validator.iter_errors(_with_numbers(value)))
    except Unresolvable as missing:
        return f"it refers to {missing.ref}, which the registry does not give"
    except (TypeError, ArithmeticError, RecursionError) as failure:
        return f"it cannot be checked ({type(failure).__name__})"
    return None if error is None else f"{error.json_path}: {_short(error.message)}"


def _with_numbers(value: Any) -> Any:
    """The value with a Decimal in place of each `Numeral`."""
    if isinstance(value, dict):
        return {name: _with_numbers(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_numbers(one) for one in value]
    if type(value) is Numeral:
        exact = as_decimal(value)
        return Decimal("Infinity") if exact is None else exact
    return value


def _short(words: str) -> str:
    return words if len(words) <= LONGEST_REASON else words[:LONGEST_REASON] + "..."
