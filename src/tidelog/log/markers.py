"""The one record of a control batch that ends a transaction."""

from struct import Struct
from typing import NamedTuple

from tidelog.protocol.batch import HEADER_SIZE
from tidelog.protocol.varint import read_varint, read_varlong

_KEY = Struct(">hh")
_VALUE = Struct(">hi")
ABORT, COMMIT = 0, 1


class EndTransactionMarker(NamedTuple):
    is_abort: bool
    coordinator_epoch: int


def read_marker(batch: memoryview) -> EndTransactionMarker | None:
    """The marker in a control batch; None for another kind of control record, or no record."""
    if len(batch) == HEADER_SIZE:
        return None
    _, position = read_varint(batch, HEADER_SIZE)  # the record's length
    position += 1  # its attributes
    _, position = read_varlong(batch, position)  # timestamp delta
    _, position = read_varint(batch, position)  # offset delta
    size, position = read_varint(batch, position)
    _, kind = _KEY.unpack_from(batch, position)
    if kind not in (ABORT, COMMIT):
        return None
    _, position = read_varint(batch, position + size)
    _, coordinator_epoch = _VALUE.unpack_from(batch, position)
    return EndTransactionMarker(kind == ABORT, coordinator_epoch)
