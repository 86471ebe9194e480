"""Makes values of rows and of independent decoders comparable."""

import math
from decimal import Decimal
from typing import Any

from pyspark.sql import Row


def plain(value: Any) -> Any:
    """A comparable form of a value.

    Rows become dictionaries without nulls, and all NaNs are equal.
    """
    if isinstance(value, Row | dict):
        fields = value.asDict() if isinstance(value, Row) else value
        return {name: plain(one) for name, one in fields.items() if one is not None}
    if isinstance(value, list):
        pairs = value and all(isinstance(one, tuple) and len(one) == 2 for one in value)
        is_map = pairs and not isinstance(value[0], Row)
        return plain(dict(value)) if is_map else [plain(one) for one in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    return Decimal(value) if isinstance(value, Decimal) else value
