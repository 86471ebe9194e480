"""One configuration key: its type, default, limits, and how text becomes a value.

Texts that a key refuses are told in the words of Kafka's own tools, since users search for them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from math import isfinite, nan
from typing import TypeAlias

_HOST = re.compile(r"[0-9a-zA-Z\-%._:\[\]]+")

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None


class ConfigType(IntEnum):
    """Kafka's type ids, as DescribeConfigs reports them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class BadValue(ValueError):
    """A text that its key refuses; the message names both."""

    def __init__(self, name: str, text: object, reason: str) -> None:
        super().__init__(f"Invalid value {_shown(text)} for configuration {name}: {reason}")
        self.reason = reason


def _shown(text: object) -> str:
    match text:
        case None:
            return "null"
        case bool():
            return str(text).lower()
        case tuple():
            return f"[{', '.join(text)}]"
        case _:
            return str(text)


Check: TypeAlias = Callable[[str, Value], None]
"""Raises `BadValue` when the key named first may not have the value."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    name: str
    type: ConfigType
    default: str | None
    documentation: str
    check: Check | None = None
    internal: bool = False
    """Accepted but not shown: for tests and experts."""

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str | None) -> Value:
        """The value of a text, checked; `BadValue` when it has none."""
        value = None if text is None else _convert(self.name, self.type, text)
        if self.check is not None:
            self.check(self.name, value)
        return value


def boolean(name: str, default: bool, documentation: str) -> ConfigKey:
    return ConfigKey(name, ConfigType.BOOLEAN, str(default).lower(), documentation)


def int16(
    name: str, default: int | None, documentation: str, check: Check | None = None
) -> ConfigKey:
    return ConfigKey(name, ConfigType.SHORT, _number(default), documentation, check)


def int32(
    name: str, default: int | None, documentation: str, check: Check | None = None
) -> ConfigKey:
    return ConfigKey(name, ConfigType.INT, _number(default), documentation, check)


def int64(
    name: str, default: int | None, documentation: str, check: Check | None = None
) -> ConfigKey:
    return ConfigKey(name, ConfigType.LONG, _number(default), documentation, check)


def double(name: str, default: str, documentation: str, check: Check | None = None) -> ConfigKey:
    return ConfigKey(name, ConfigType.DOUBLE, default, documentation, check)


def string(
    name: str, default: str | None, documentation: str, check: Check | None = None
) -> ConfigKey:
    return ConfigKey(name, ConfigType.STRING, default, documentation, check)


def strings(
    name: str, default: str | None, documentation: str, check: Check | None = None
) -> ConfigKey:
    return ConfigKey(name, ConfigType.LIST, default, documentation, check)


def throttled_rate(name: str, documentation: str) -> ConfigKey:
    """A rate that is only ever set while brokers run, and shown only where it is."""
    unlimited = str((1 << 63) - 1)
    return ConfigKey(name, ConfigType.LONG, unlimited, documentation, at_least(0), internal=True)


def _number(default: int | None) -> str | None:
    return None if default is None else str(default)


_BOUNDS = {
    ConfigType.SHORT: 1 << 15,
    ConfigType.INT: 1 << 31,
    ConfigType.LONG: 1 << 63,
}


def _convert(name: str, type_: ConfigType, text: str) -> Value:
    trimmed = text.strip()
    match type_:
        case ConfigType.BOOLEAN:
            return _boolean(name, trimmed)
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            return _whole_number(name, type_, trimmed)
        case ConfigType.DOUBLE:
            return _double(name, trimmed)
        case ConfigType.LIST:
            return split_list(trimmed)
        case _:
            return trimmed


def _boolean(name: str, text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise BadValue(name, text, "Expected value to be either true or false")


def _whole_number(name: str, type_: ConfigType, text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    # Python does not read numbers of thousands of digits; no number here has a hundred.
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 100:
        raise BadValue(name, text, f"Not a number of type {type_.name}")
    number, bound = int(text), _BOUNDS[type_]
    if not -bound <= number < bound:
        raise BadValue(name, text, f"Not a number of type {type_.name}")
    return number


def _double(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not isfinite(value):
        raise BadValue(name, text, "Not a number of type DOUBLE")
    return value


def split_list(text: str) -> tuple[str, ...]:
    """The items of a comma-separated text; none of an empty one."""
    if not text:
        return ()
    return tuple(item.strip() for item in text.split(","))


def at_least(lowest: int) -> Check:
    def check(name: str, value: Value) -> None:
        if value is None:
            raise BadValue(name, None, "Value must be non-null")
        assert isinstance(value, int | float)
        if value < lowest:
            raise BadValue(name, value, f"Value must be at least {lowest}")

    return check


def unlimited_or_positive(name: str, value: Value) -> None:
    """A retention: some time, or -1 for all of it."""
    if isinstance(value, int) and value < 1 and value != -1:
        raise BadValue(name, value, "Value must be unlimited (-1) or at least 1")


def between(lowest: int, highest: int) -> Check:
    floor = at_least(lowest)

    def check(name: str, value: Value) -> None:
        floor(name, value)
        assert isinstance(value, int | float)
        if value > highest:
            raise BadValue(name, value, f"Value must be no more than {highest}")

    return check


def one_of(*allowed: str) -> Check:
    def check(name: str, value: Value) -> None:
        for item in value if isinstance(value, tuple) else (value,):
            if item not in allowed:
                raise BadValue(name, item, f"String must be one of: {', '.join(allowed)}")

    return check


def one_of_ignoring_case(*allowed: str) -> Check:
    def check(name: str, value: Value) -> None:
        if str(value).upper() not in allowed:
            choices = ", ".join(allowed)
            raise BadValue(name, value, f"String must be one of (case insensitive): {choices}")

    return check


def level_or(unset: int, lowest: int, highest: int) -> Check:
    """A compression level, or the value that means the codec's own default."""

    def check(name: str, value: Value) -> None:
        if value is None:
            raise BadValue(name, None, "Value must be non-null")
        assert isinstance(value, int)
        if value != unset and not lowest <= value <= highest:
            reason = f"Value must be between {lowest} and {highest} or equal to {unset}"
            raise BadValue(name, value, reason)

    return check


def throttled_replicas(name: str, value: Value) -> None:
    """`partition:broker` pairs, or `*` for all."""
    assert isinstance(value, tuple)
    if value in ((), ("*",)):
        return
    for item in value:
        partition, colon, broker = item.partition(":")
        if not (colon and partition.isdigit() and broker.isdigit()):
            raise BadValue(
                name,
                value,
                f"{name} must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
            )


def parse_host_counts(text: str) -> dict[str, int]:
    """The numbers of `host:number, ...`; ValueError where it is not of this form."""
    counts: dict[str, int] = {}
    for item in split_list(text):
        host, colon, count = item.rpartition(":")
        if not (colon and _HOST.fullmatch(host.strip())):
            raise ValueError(f"{item!r} is not of the form host:number")
        counts[host.strip().strip("[]")] = _whole_number("", ConfigType.INT, count.strip())
    return counts


def host_counts(name: str, value: Value) -> None:
    assert isinstance(value, str)
    try:
        counts = parse_host_counts(value)
    except ValueError:
        raise BadValue(name, value, "Expected a list of host:number") from None
    if any(count < 0 for count in counts.values()):
        raise BadValue(name, value, "Value must be at least 0")
