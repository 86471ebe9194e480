"""One configuration key: its type, default, check, scope and status, and how text is parsed.

Error messages are those of Apache Kafka, because users search for them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from math import isfinite, nan
from typing import NamedTuple, TypeAlias

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


class ConfigScope(Enum):
    """Where a key can be set, and whether it can be changed while brokers run."""

    STATIC = "static"
    """The key can be set in the configuration file only."""
    PER_BROKER = "per broker"
    """The key can be set in the file or dynamically, and may differ between brokers."""
    CLUSTER_WIDE = "cluster-wide"
    """The key can be set in the file or dynamically, and should be the same on all brokers."""
    PER_TOPIC = "per topic"
    PER_GROUP = "per group"
    PER_SUBSCRIPTION = "per client metrics subscription"

    @property
    def is_dynamic_broker_scope(self) -> bool:
        return self in (ConfigScope.PER_BROKER, ConfigScope.CLUSTER_WIDE)


class ConfigStatus(Enum):
    ENFORCED = "enforced"
    NO_EFFECT = "no effect here"
    """The key is accepted. Kafka needs it, but Tidelog does not."""
    NOT_YET = "not yet"
    """The key is accepted. Tidelog does not yet have the feature that the key configures."""


class Support(NamedTuple):
    """The status of a key and, unless the key is enforced, the reason for that status."""

    status: ConfigStatus
    reason: str = ""


ENFORCED = Support(ConfigStatus.ENFORCED)


class BadValue(ValueError):
    """A text is not a valid value of its key; the message names the key and the text."""

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
"""Takes the key's name and a parsed value; raises `BadValue` if the value is not allowed."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    name: str
    type: ConfigType
    default: str | None
    documentation: str
    check: Check | None = None
    internal: bool = False
    """Whether the key is for experts; DescribeConfigs hides such a key unless it is set."""
    scope: ConfigScope = ConfigScope.STATIC
    support: Support = ENFORCED

    @property
    def status(self) -> ConfigStatus:
        return self.support.status

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str | None) -> Value:
        """Parse and check a text; raise `BadValue` if it is not valid."""
        value = None if text is None else _convert(self.name, self.type, text)
        if self.check is not None:
            self.check(self.name, value)
        return value


def boolean(
    name: str,
    default: bool,
    documentation: str,
    *,
    scope: ConfigScope = ConfigScope.STATIC,
    support: Support = ENFORCED,
) -> ConfigKey:
    text = str(default).lower()
    return ConfigKey(name, ConfigType.BOOLEAN, text, documentation, scope=scope, support=support)


def int16(
    name: str,
    default: int | None,
    documentation: str,
    check: Check | None = None,
    *,
    scope: ConfigScope = ConfigScope.STATIC,
    support: Support = ENFORCED,
) -> ConfigKey:
    return ConfigKey(
        name,
        ConfigType.SHORT,
        _number(default),
        documentation,
        check,
        scope=scope,
        support=support,
    )


def int32(
    name: str,
    default: int | None,
    documentation: str,
    check: Check | None = None,
    *,
    scope: ConfigScope = ConfigScope.STATIC,
    support: Support = ENFORCED,
) -> ConfigKey:
    return ConfigKey(
        name,
        ConfigType.INT,
        _number(default),
        documentation,
        check,
        scope=scope,
        support=support,
    )


def int64(
    name: str,
    default: int | None,
    documentation: str,
    check: Check | None = None,
    *,
    scope: ConfigScope = ConfigScope.STATIC,
    support: Support = ENFORCED,
) -> ConfigKey:
    return ConfigKey(
        name,
        ConfigType.LONG,
        _number(default),
        documentation,
        check,
        scope=scope,
        support=support,
    )


def double(
    name: str,
    default: str,
    documentation: str,
    check: Check | None = None,
    *,
    scope: ConfigScope = ConfigScope.STATIC,
    support: Support = ENFORCED,
) -> ConfigKey:
    return ConfigKey(
        name,
        ConfigType.DOUBLE,
        default,
        documentation,
        check,
        scope=scope,
        support=support,
    )


def string(
    name: str,
    default: str | None,
    documentation: str,
    check: Check | None = None,
    *,
    scope: ConfigScope = ConfigScope.STATIC,
    support: Support = ENFORCED,
) -> ConfigKey:
    return ConfigKey(
        name,
        ConfigType.STRING,
        default,
        documentation,
        check,
        scope=scope,
        support=support,
    )


def strings(
    name: str,
    default: str | None,
    documentation: str,
    check: Check | None = None,
    *,
    scope: ConfigScope = ConfigScope.STATIC,
    support: Support = ENFORCED,
) -> ConfigKey:
    return ConfigKey(
        name,
        ConfigType.LIST,
        default,
        documentation,
        check,
        scope=scope,
        support=support,
    )


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
            return parse_whole_number(name, type_, trimmed)
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


def parse_whole_number(name: str, type_: ConfigType, text: str) -> int:
    """Parse a decimal number that fits the type."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    # No valid number has over 100 digits. For thousands of digits, int() would raise another error.
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
    """Split a comma-separated text; an empty text has no items."""
    if not text:
        return ()
    return tuple(item.strip() for item in text.split(","))
