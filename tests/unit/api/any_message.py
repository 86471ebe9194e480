"""Hypothesis strategies for every message of Kafka's protocol."""

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from tests.unit.api.support import TOPIC_ID

from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.schema import MessageField, fields_of

NAMES = ("", "orders", "nope", "a b", "__consumer_offsets", "1", "7", "retention.ms", "1" * 5000)


def whole_numbers(bits: int) -> st.SearchStrategy[int]:
    bound = 1 << (bits - 1)
    likely = [n for n in (-2, -1, 0, 1, 2, 4, 8, 9, 16, 32) if -bound <= n < bound]
    return st.sampled_from(likely) | st.integers(-bound, bound - 1)


def durations(bits: int) -> st.SearchStrategy[timedelta]:
    bound = min(1 << (bits - 1), 1 << 46)
    return st.integers(-bound, bound - 1).map(lambda ms: timedelta(milliseconds=ms))


PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": whole_numbers(8),
    "int16": whole_numbers(16),
    "int32": whole_numbers(32),
    "int64": whole_numbers(64),
    "uint16": st.integers(0, (1 << 16) - 1),
    "uint32": st.integers(0, (1 << 32) - 1),
    "timedelta_i32": durations(32),
    "timedelta_i64": durations(64),
    "string": st.sampled_from(NAMES) | st.text(max_size=20),
    "bytes": st.binary(max_size=20),
    "records": st.none() | st.binary(max_size=200),
    "uuid": st.none() | st.just(TOPIC_ID) | st.uuids(),
    "error_code": st.sampled_from(ErrorCode),
}


def value(field: MessageField) -> st.SearchStrategy[Any]:
    one = PRIMITIVES[field.kafka_type] if field.entity is None else message(field.entity)
    if field.is_array:
        one = st.lists(one, max_size=3).map(tuple)
    nullable = field.is_nullable and field.kafka_type not in ("uuid", "records")
    return st.none() | one if nullable else one


def message(cls: Any) -> st.SearchStrategy[Any]:
    return st.builds(cls, **{field.name: value(field) for field in fields_of(cls)})
