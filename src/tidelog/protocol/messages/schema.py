"""kio's message classes as data: the class of a message in a version, and its fields.

kio declares every version of every message as a frozen dataclass in a separate module. A module is
imported when its version is first used, so a broker does not load hundreds of modules that it never
uses.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.static.protocol import Entity

from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest

API_NAMES: Mapping[int, str] = api_key_map
"""Every API key that kio knows, with kio's name of the API."""

NEVER = 1 << 15
"""Greater than every version."""

# fmt: off
_FLEXIBLE_SINCE: Mapping[int, int] = {
    0: 9, 1: 12, 2: 6, 3: 9, 8: 8, 9: 6, 10: 3, 11: 6, 12: 4, 13: 4, 14: 4, 15: 5, 16: 3, 18: 3,
    19: 5, 20: 4, 21: 2, 22: 2, 23: 4, 24: 3, 25: 3, 26: 3, 27: 1, 28: 3, 29: 2, 30: 2, 31: 2,
    32: 4, 33: 2, 34: 2, 35: 2, 36: 2, 37: 2, 38: 2, 39: 2, 40: 2, 41: 2, 42: 2, 43: 2, 44: 1,
    48: 1, 49: 1, 53: 1, 54: 1, 17: NEVER, 47: NEVER,
}
# fmt: on
FLEXIBLE_SINCE: Mapping[int, int] = {key: _FLEXIBLE_SINCE.get(key, 0) for key in API_NAMES}
"""The first version of each known API that has compact lengths and tagged fields."""


def is_flexible(api_key: int, version: int) -> bool:
    """Whether this version has compact lengths and tagged fields (KIP-482).

    Unknown newer versions count as flexible, so that the headers of their requests can be read.
    """
    return version >= _FLEXIBLE_SINCE.get(api_key, 0)


@cache
def versions_of(api_key: int) -> range:
    """The versions that kio knows; empty for an unknown API key."""
    name = API_NAMES.get(api_key)
    if name is None:
        return range(0)
    known = schema_name_map[name]
    return range(min(known), max(known) + 1)


class CannotLoad(Exception):
    """The module of a message could not be read, as when no file descriptor is free (F65).

    This is not an `OSError`, because an `OSError` would count as an error of a log directory.
    """


_EXTENDED_REQUESTS: Mapping[tuple[int, int], type[Entity]] = {(63, 2): BrokerHeartbeatRequest}
"""Messages that have tagged fields of Tidelog, by API key and version."""


@cache
def request_class(api_key: int, version: int) -> type[Entity]:
    extended = _EXTENDED_REQUESTS.get((api_key, version))
    if extended is not None:
        return extended
    try:
        return load_request_schema(api_key, version)
    except OSError as failure:
        raise CannotLoad(str(failure)) from failure


@cache
def response_class(api_key: int, version: int) -> type[Entity]:
    try:
        return load_response_schema(api_key, version)
    except OSError as failure:
        raise CannotLoad(str(failure)) from failure


class MessageField(NamedTuple):
    """One field of a message and its encoding."""

    name: str
    kafka_type: str
    """kio's name of the primitive type; empty for a nested message."""
    entity: type[Entity] | None
    is_array: bool
    is_nullable: bool
    tag: int | None
    default: Any

    def absent(self) -> Any:
        """The value of the field in a version that does not have it."""
        if self.default is not MISSING:
            return self.default
        if self.is_array:
            return ()
        if self.entity is not None:
            return self.entity(**{field.name: field.absent() for field in fields_of(self.entity)})
        if self.kafka_type == "records" and not self.is_nullable:
            return b""
        return NEUTRAL[self.kafka_type]


NEUTRAL: Mapping[str, Any] = {
    "int8": 0,
    "int16": 0,
    "int32": 0,
    "int64": 0,
    "uint16": 0,
    "float64": 0.0,
    "bool": False,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": None,
    "error_code": ErrorCode.none,
    "timedelta_i32": timedelta(),
    "timedelta_i64": timedelta(),
    "datetime_i64": datetime(1970, 1, 1, tzinfo=UTC),
}


@cache
def fields_of(cls: type[Entity]) -> tuple[MessageField, ...]:
    """The fields of a message class, in wire order."""
    return tuple(_field(f.name, f.type, f.metadata, f.default) for f in fields(cls))


@cache
def is_flat(cls: type[Entity]) -> bool:
    """Whether neither the message nor a nested structure has arrays, so that it is always small."""
    return not any(
        field.is_array or (field.entity is not None and not is_flat(field.entity))
        for field in fields_of(cls)
    )


def _field(name: str, hint: Any, metadata: Mapping[str, Any], default: Any) -> MessageField:
    inner, is_nullable = _without_none(hint)
    is_array = get_origin(inner) is tuple
    if is_array:
        inner, _ = _without_none(get_args(inner)[0])
    entity: Any = inner if is_dataclass(inner) else None
    return MessageField(
        name,
        metadata.get("kafka_type", ""),
        entity,
        is_array,
        is_nullable,
        metadata.get("tag"),
        default,
    )


def _without_none(hint: Any) -> tuple[Any, bool]:
    options = get_args(hint)
    if NoneType not in options:
        return hint, False
    (inner,) = (option for option in options if option is not NoneType)
    return inner, True
