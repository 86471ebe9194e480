"""Reads the fields of an event from JSON values, in Spark's Python workers."""

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from tidelog_pipelines.transformations.values.strict_json import (
    DEFAULT_LIMITS,
    Numeral,
    Parser,
    Refused,
    dump,
    is_unicode,
)


def event_fields(
    name: str, amount: str, time: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function that adds the columns name, amount, time and reason to batches of records."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = _Reader(name, amount, time)
        for batch in batches:
            found = [reader.read(raw) for raw in batch.column("value").to_pylist()]
            names, amounts, times, reasons = zip(*found, strict=True) if found else [()] * 4
            added = {
                "name": pa.array(names, pa.string()),
                "amount": pa.array(amounts, pa.float64()),
                "time": pa.array(times, pa.string()),
                "reason": pa.array(reasons, pa.string()),
            }
            columns = [*batch.columns, *added.values()]
            yield pa.RecordBatch.from_arrays(columns, [*batch.schema.names, *added])

    return run


class _Reader:
    def __init__(self, name: str, amount: str, time: str) -> None:
        self._parser = Parser(DEFAULT_LIMITS)
        self._name, self._amount, self._time = name, amount, time

    def read(self, raw: bytes | None) -> tuple[Any, ...]:
        """Returns (name, amount, time, None) or, for a bad record, (None, None, None, reason)."""
        try:
            if raw is None:
                raise Refused("the record has no value")
            value = self._parser.parse(raw)
            time = self._text(value, self._time) if self._time else None
            return self._text(value, self._name), self._number(value), time, None
        except Refused as refusal:
            return None, None, None, str(refusal)

    def _number(self, value: dict[str, Any]) -> float:
        found = value.get(self._amount)
        if not isinstance(found, int | float | Numeral) or isinstance(found, bool):
            raise Refused(f"the field {self._amount} is not a number")
        try:
            number = float(found)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise Refused(f"the field {self._amount} is too large")
        return number

    def _text(self, value: dict[str, Any], name: str) -> str:
        """A field as text. A scalar that is not a string is written as JSON."""
        found = value.get(name)
        if found is None or isinstance(found, dict | list):
            raise Refused(f"the field {name} is missing, or not a scalar")
        text = found if type(found) is str else dump(found)
        if not is_unicode(text):
            raise Refused(f"the field {name} is not Unicode")
        return text


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
