"""The marker for an effect whose result will arrive later."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, TypeAlias

Resume: TypeAlias = Callable[[Any], None]
"""Called once with the effect's result; the handler then continues."""


class _Parked(Enum):
    PARKED = "parked"


PARKED: Literal[_Parked.PARKED] = _Parked.PARKED
Parked: TypeAlias = Literal[_Parked.PARKED]
