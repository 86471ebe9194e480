"""Builds the longest requests of every API from the schemas, so that no API is missed."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.static.protocol import Entity

from tidelog.api.registry import REGISTRY, Api
from tidelog.protocol.messages.headers import request_prefix
from tidelog.protocol.messages.schema import MessageField, fields_of, request_class
from tidelog.protocol.messages.writer import write_steps
from tidelog.protocol.records.records import Record, build_batch
from tidelog.protocol.slices import Meter, finish

CLIENT_ID = "hostile"
ALL = 5_000
"""About as many partitions as a node holds."""
SOME = 1_500
NOBODY = 7
"""The value of integer fields that are not a partition index. No node has this id."""


class Shape(Enum):
    WIDE = "as many outer elements as may be, each with one of everything"
    DEEP = "one outer element, with as many inner ones as may be"
    SAME = "the same elements again and again"


class LongRequest(NamedTuple):
    api: Api
    version: int
    shape: Shape
    is_plausible: bool
    """Whether the request is within the limits of its API.

    If it is, the node must answer the request and must not close the connection.
    """
    frame: bytes
    """The frame with its length."""

    @property
    def name(self) -> str:
        size = "plausible" if self.is_plausible else "possible"
        return f"{self.api.name} {self.version} {self.shape.name.lower()} {size}"


def longest_requests(api: Api, largest_frame: int) -> Iterator[LongRequest]:
    """The longest request within the API's limit, and the longest that fits into a frame."""
    for version in dict.fromkeys((api.min_version, api.max_version)):
        cls = request_class(api.key, version)
        for shape in Shape:
            if not any(field.is_array for field in fields_of(cls)):
                if shape is Shape.WIDE:
                    yield LongRequest(
                        api, version, shape, True, _frame(api, version, cls, shape, 1)
                    )
                continue
            elements = _fitting(api, version, shape, api.limit.elements, api.limit.size)
            served = _frame(api, version, cls, shape, elements)
            yield LongRequest(api, version, shape, True, served)
            yield from _beyond_limit(api, version, shape, largest_frame)


def _beyond_limit(
    api: Api, version: int, shape: Shape, largest_frame: int
) -> Iterator[LongRequest]:
    """The longest request that fits into a frame, if that is more than twice the API's limit."""
    cls = request_class(api.key, version)
    if any(field.is_array for field in fields_of(cls)):
        most = _fitting(api, version, shape, 40 * api.limit.elements, largest_frame)
        if most > 2 * api.limit.elements:
            yield LongRequest(api, version, shape, False, _frame(api, version, cls, shape, most))


def long_request(api: Api, version: int, shape: Shape, elements: int) -> LongRequest:
    """A request with this many elements, or as many as its API allows."""
    cls = request_class(api.key, version)
    elements = min(elements, api.limit.elements)
    return LongRequest(api, version, shape, True, _frame(api, version, cls, shape, elements))


def hostile_requests() -> Iterator[LongRequest]:
    """For every API: a request for all partitions, two shorter ones, and one over the limit."""
    for api in REGISTRY.values():
        oldest, newest = api.min_version, api.max_version
        yield long_request(api, newest, Shape.WIDE, ALL)
        yield long_request(api, newest, Shape.SAME, SOME)
        yield long_request(api, oldest, Shape.DEEP, SOME)
        cls = request_class(api.key, newest)
        if any(field.is_array for field in fields_of(cls)):
            frame = _frame(api, newest, cls, Shape.SAME, 3 * api.limit.elements // 2)
            yield LongRequest(api, newest, Shape.SAME, False, frame)


def _fitting(api: Api, version: int, shape: Shape, elements: int, size: int) -> int:
    """The number of elements to use: `elements`, or as many as fit into a frame of this size."""
    cls = request_class(api.key, version)
    sample = len(_frame(api, version, cls, shape, min(elements, 200))) / min(elements, 200)
    return max(1, min(elements, int(0.8 * size / sample)))


def _frame(api: Api, version: int, cls: type[Entity], shape: Shape, elements: int) -> bytes:
    out = bytearray(request_prefix(api.key, version, 7, CLIENT_ID))
    finish(write_steps(out, _built(cls, shape, elements, 0), Meter()))
    out[:4] = (len(out) - 4).to_bytes(4, "big")
    return bytes(out)


def _built(cls: type[Entity], shape: Shape, elements: int, number: int) -> Any:
    """A message whose arrays have this many elements in total, including nested ones."""
    arrays = [field for field in fields_of(cls) if field.is_array]
    share = max(1, elements // max(1, len(arrays)))
    values = {}
    for field in fields_of(cls):
        values[field.name] = (
            _array(field, shape, share, number) if field.is_array else _value(field, number)
        )
    return cls(**values)


def _array(field: MessageField, shape: Shape, elements: int, number: int) -> tuple[Any, ...]:
    if field.entity is None:
        if shape is Shape.SAME:
            return (_value(field, number),) * elements
        return tuple(_value(field, index) for index in range(elements))
    weight = _weight(field.entity)
    if weight == 0 or shape is not Shape.DEEP:
        count = max(1, elements // (1 + weight))
        if shape is Shape.SAME:
            return (_built(field.entity, Shape.WIDE, weight, number),) * count
        return tuple(_built(field.entity, Shape.WIDE, weight, index) for index in range(count))
    return (_built(field.entity, shape, elements - 1, number),)


def _weight(cls: type[Entity]) -> int:
    """The number of array elements in a structure if each of its arrays has one element."""
    return sum(
        1 + (_weight(field.entity) if field.entity else 0)
        for field in fields_of(cls)
        if field.is_array
    )


_BATCH = build_batch([Record(b"k", b"v", 1_700_000_000_000)])

_VALUES: dict[str, Any] = {
    "float64": 1.0,
    "bool": False,
    "bytes": b"",
    "records": _BATCH,
    "error_code": ErrorCode.none,
    "timedelta_i32": timedelta(),
    "timedelta_i64": timedelta(),
    "datetime_i64": datetime(2024, 1, 1, tzinfo=UTC),
}


def _value(field: MessageField, number: int) -> Any:
    if field.entity is not None:
        return None if field.is_nullable else _built(field.entity, Shape.WIDE, 1, number)
    match field.kafka_type:
        case "string":
            return f"t{number}"
        case "uuid":
            return UUID(int=1 + number)
        case "int8" | "int16":
            return 1
        case "int32" | "int64" | "uint16":
            is_index = (
                field.is_array or "partition_index" in field.name or field.name == "partition"
            )
            return min(number, 65_535) if is_index else NOBODY
        case other:
            return _VALUES[other]
