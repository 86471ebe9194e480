"""Transaction markers: the records of control batches that end a transaction."""

from struct import Struct
from typing import NamedTuple

from tidelog.model.ids import Millis, ProducerId
from tidelog.protocol.records.records import (
    ControlType,
    Record,
    UnreadableRecords,
    build_batch,
    control_key,
    control_type,
    iterate_records,
)

_VALUE = Struct(">hi")
_VALUE_VERSION = 0


class EndTransactionMarker(NamedTuple):
    is_abort: bool
    coordinator_epoch: int


def marker_batch(
    producer_id: ProducerId, epoch: int, marker: EndTransactionMarker, timestamp: Millis
) -> bytes:
    """The control batch that ends a producer's transaction."""
    kind = ControlType.ABORT if marker.is_abort else ControlType.COMMIT
    value = _VALUE.pack(_VALUE_VERSION, marker.coordinator_epoch)
    return build_batch(
        [Record(control_key(kind), value, timestamp)],
        producer_id=producer_id,
        producer_epoch=epoch,
        is_transactional=True,
        is_control=True,
    )


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
