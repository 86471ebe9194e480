"""Reads transaction markers: the records of control batches that end a transaction."""

from struct import Struct
from typing import NamedTuple

from tidelog.protocol.records.records import (
    ControlType,
    UnreadableRecords,
    control_type,
    iterate_records,
)

_VALUE = Struct(">hi")


class EndTransactionMarker(NamedTuple):
    is_abort: bool
    coordinator_epoch: int


def read_marker(batch: memoryview) -> EndTransactionMarker | None:
    """The marker in a control batch; None for other control records and for an empty batch."""
    try:
        record = next(iterate_records(batch), None)
    except UnreadableRecords:
        return None
    if record is None or record.value is None or len(record.value) < _VALUE.size:
        return None
    kind = control_type(record)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    _, coordinator_epoch = _VALUE.unpack_from(record.value)
    return EndTransactionMarker(kind is ControlType.ABORT, coordinator_epoch)
