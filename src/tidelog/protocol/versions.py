"""Turns a message of any version into its canonical shape, and back.

Fields are matched by name, nested messages likewise. A field that the other shape lacks takes the
default of its schema, or Kafka's implicit one (0, "", no elements); a null that the other shape has
no room for does too. `reshape` covers what names cannot. Both directions are compiled once per pair
of classes, and the message itself is returned when it has the wanted class already.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

from kio.static.protocol import Entity

from tidelog.protocol.reshape import RESHAPES, Fields
from tidelog.protocol.schema import Field, fields_of

Convert: TypeAlias = Callable[[Any], Any]


def lift(entity: Entity, canonical: type[Entity]) -> Any:
    """The canonical form of a message of any version."""
    return (
        entity if type(entity) is canonical else _converter(type(entity), canonical, True)(entity)
    )


def lower(entity: Entity, cls: type[Entity]) -> Any:
    """A canonical message in the shape of one version; what that version cannot say is dropped."""
    return entity if type(entity) is cls else _converter(type(entity), cls, False)(entity)


@cache
def _converter(source: type[Entity], target: type[Entity], lifting: bool) -> Convert:
    known = {field.name: field for field in fields_of(source)}
    constant: dict[str, Any] = {}
    copied: list[tuple[str, Convert | None]] = []
    for field in fields_of(target):
        if field.name in known and _is_nested(field) == _is_nested(known[field.name]):
            copied.append((field.name, _fitting(field, known[field.name], lifting)))
        else:
            constant[field.name] = field.absent()
    reshaped = _reshaped(source, target, lifting)

    def convert(entity: Any) -> Any:
        values = constant.copy()
        for name, fit in copied:
            value = getattr(entity, name)
            values[name] = value if fit is None else fit(value)
        if reshaped is not None:
            values.update(reshaped(entity))
        return target(**values)

    return convert


def _is_nested(field: Field) -> bool:
    return field.entity is not None


def _fitting(field: Field, origin: Field, lifting: bool) -> Convert | None:
    """How a value of the field `origin` is made to fit `field`; None when it fits as it is."""
    if field.entity is None and (field.is_nullable or not origin.is_nullable):
        return None
    return lambda value: _fit(value, field, lifting)


def _fit(value: Any, field: Field, lifting: bool) -> Any:
    if value is None:
        return None if field.is_nullable else field.absent()
    if field.entity is None:
        return value
    if not field.is_array:
        return _fit_entity(value, field.entity, lifting)
    return tuple([_fit_entity(element, field.entity, lifting) for element in value])


def _fit_entity(value: Any, target: type[Entity], lifting: bool) -> Any:
    if isinstance(value, Mapping):
        return target(**_complete(value, target, lifting))
    source: type[Entity] = type(value)
    return value if source is target else _converter(source, target, lifting)(value)


def _complete(values: Fields, target: type[Entity], lifting: bool) -> dict[str, Any]:
    return {
        field.name: _fit(values[field.name], field, lifting)
        if field.name in values
        else field.absent()
        for field in fields_of(target)
    }


def _reshaped(source: type[Entity], target: type[Entity], lifting: bool) -> Convert | None:
    old = source if lifting else target
    _, _, api, *_, kind = old.__module__.split(".")
    reshape = RESHAPES.get(f"{api}.{kind}.{old.__name__}")
    if reshape is None or old.__version__ not in reshape.versions:
        return None
    give = reshape.up if lifting else reshape.down
    wanted = {field.name: field for field in fields_of(target)}

    def fields(entity: Any) -> Fields:
        # What this old version cannot carry (an error message, say) is dropped here as well.
        given = give(entity)
        return {
            name: _fit(value, wanted[name], lifting)
            for name, value in given.items()
            if name in wanted
        }

    return fields
