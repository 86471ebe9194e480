"""Hypothesis strategies for messages of any class, from the fields of the class."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from typing import Any

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.static.protocol import Entity

from tidelog.protocol.messages.schema import (
    API_NAMES,
    MessageField,
    fields_of,
    request_class,
    response_class,
    versions_of,
)

HAND_TUNED = (0, 1)
"""Produce and Fetch, which have their own codecs."""

EVERY_API_VERSION = [
    (api_key, version) for api_key in API_NAMES for version in versions_of(api_key)
]
EVERY_CLASS = [
    load(api_key, version)
    for api_key, version in EVERY_API_VERSION
    for load in (request_class, response_class)
]

TEXT = st.text(max_size=8)


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def milliseconds(bits: int) -> st.SearchStrategy[timedelta]:
    return integers(bits).map(lambda count: timedelta(milliseconds=count))


PRIMITIVES: Mapping[str, st.SearchStrategy[Any]] = {
    "int8": integers(8),
    "int16": integers(16),
    "int32": integers(32),
    "int64": integers(64),
    "uint16": st.integers(0, 2**16 - 1),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": TEXT,
    "bytes": st.binary(max_size=8),
    "records": st.binary(max_size=8),
    "uuid": st.none() | st.uuids(),
    "error_code": st.sampled_from(ErrorCode),
    "timedelta_i32": milliseconds(32),
    "timedelta_i64": milliseconds(40),
    "datetime_i64": st.integers(0, 2**32).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
}


@cache
def entities(cls: type[Entity]) -> st.SearchStrategy[Any]:
    """Any message of this class."""
    return st.builds(cls, **{field.name: _values(field) for field in fields_of(cls)})


def _values(field: MessageField) -> st.SearchStrategy[Any]:
    values = entities(field.entity) if field.entity else PRIMITIVES[field.kafka_type]
    if field.is_array:
        values = st.lists(values, max_size=2).map(tuple)
    return st.none() | values if field.is_nullable else values


def whole_milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)


def written_by_kio(entity: Any) -> bytes:
    out = BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()
