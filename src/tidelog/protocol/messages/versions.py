"""Converts a message of any version to its canonical shape, and back.

Fields are matched by name, including the fields of nested messages. A field that the source lacks
takes the default of its schema, or Kafka's implicit default (0, "", no elements). If the target
field is not nullable, a null becomes this default as well. `reshape` covers structural changes.
Each conversion is planned once per pair of classes. A message that already has the target class is
returned as is.

Messages with arrays are converted in slices.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from kio.static.protocol import Entity

from tidelog.protocol.messages.reshape import RESHAPES, Fields
from tidelog.protocol.messages.schema import MessageField, fields_of
from tidelog.protocol.slices import Meter, Steps, finish


def lift(entity: Entity, canonical: type[Entity]) -> Any:
    """The canonical form of a message of any version."""
    return entity if type(entity) is canonical else finish(lift_steps(entity, canonical, Meter()))


def lower(entity: Entity, cls: type[Entity]) -> Any:
    """A canonical message in the shape of one version, without fields unknown to that version."""
    return entity if type(entity) is cls else finish(lower_steps(entity, cls, Meter()))


def lift_steps(entity: Entity, canonical: type[Entity], meter: Meter) -> Steps[Any]:
    """`lift` in slices."""
    return _convert(entity, canonical, True, meter)


def lower_steps(entity: Entity, cls: type[Entity], meter: Meter) -> Steps[Any]:
    """`lower` in slices."""
    return _convert(entity, cls, False, meter)


class _Plan(NamedTuple):
    """How to convert a message of one class to another."""

    constant: dict[str, Any]
    copied: list[tuple[str, MessageField | None]]
    """For each field of both classes: its name, and the target field, or None to copy it as is."""
    reshape: Callable[[Any], Fields] | None
    wanted: Mapping[str, MessageField]


@cache
def _plan(source: type[Entity], target: type[Entity], lifting: bool) -> _Plan:
    known = {field.name: field for field in fields_of(source)}
    constant: dict[str, Any] = {}
    copied: list[tuple[str, MessageField | None]] = []
    for field in fields_of(target):
        if field.name in known and _is_nested(field) == _is_nested(known[field.name]):
            copied.append((field.name, None if _fits(field, known[field.name]) else field))
        else:
            constant[field.name] = field.absent()
    wanted = {field.name: field for field in fields_of(target)}
    return _Plan(constant, copied, _reshape(source, target, lifting), wanted)


def _is_nested(field: MessageField) -> bool:
    return field.entity is not None


def _fits(field: MessageField, origin: MessageField) -> bool:
    """Whether every value of the field `origin` is valid for `field`."""
    return field.entity is None and (field.is_nullable or not origin.is_nullable)


def _reshape(
    source: type[Entity], target: type[Entity], lifting: bool
) -> Callable[[Any], Fields] | None:
    old = source if lifting else target
    _, _, api, *_, kind = old.__module__.split(".")
    reshape = RESHAPES.get(f"{api}.{kind}.{old.__name__}")
    if reshape is None or old.__version__ not in reshape.versions:
        return None
    return reshape.up if lifting else reshape.down


def _convert(entity: Any, target: type[Entity], lifting: bool, meter: Meter) -> Steps[Any]:
    if type(entity) is target:
        return entity
    source: type[Entity] = type(entity)
    plan = _plan(source, target, lifting)
    values = plan.constant.copy()
    for name, field in plan.copied:
        value = getattr(entity, name)
        if field is None:
            values[name] = value
        else:
            values[name] = yield from _fit(value, field, lifting, meter)
    if plan.reshape is not None:
        # Fields that this old version lacks (an error message, for example) are dropped here.
        for name, value in plan.reshape(entity).items():
            if name in plan.wanted:
                values[name] = yield from _fit(value, plan.wanted[name], lifting, meter)
    if meter.spend(len(values) + 1):
        yield
    return target(**values)


def _fit(value: Any, field: MessageField, lifting: bool, meter: Meter) -> Steps[Any]:
    if value is None:
        return None if field.is_nullable else field.absent()
    if field.entity is None:
        return value
    if not field.is_array:
        return (yield from _fit_entity(value, field.entity, lifting, meter))
    elements = []
    for element in value:
        if type(element) is field.entity:
            elements.append(element)
        else:
            elements.append((yield from _fit_entity(element, field.entity, lifting, meter)))
    return tuple(elements)


def _fit_entity(value: Any, target: type[Entity], lifting: bool, meter: Meter) -> Steps[Any]:
    if isinstance(value, Mapping):
        return target(**(yield from _complete(value, target, lifting, meter)))
    return (yield from _convert(value, target, lifting, meter))


def _complete(
    values: Fields, target: type[Entity], lifting: bool, meter: Meter
) -> Steps[dict[str, Any]]:
    completed = {}
    for field in fields_of(target):
        if field.name in values:
            completed[field.name] = yield from _fit(values[field.name], field, lifting, meter)
        else:
            completed[field.name] = field.absent()
    if meter.spend(len(completed) + 1):
        yield
    return completed
