"""Reads fetched batches as a read_committed consumer does."""

from tidelog.model.ids import Offset, ProducerId
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import ControlType, control_type, read_records


def take_committed(
    data: memoryview, offset: Offset, aborted: list[tuple[Offset, ProducerId]], seen: list[bytes]
) -> Offset:
    """Add the values from `offset` on to `seen`, and skip the records of aborted transactions.

    `aborted` has the first offset and the producer of each, in order. Returns the next offset.
    """
    skipped: set[ProducerId] = set()
    for at, header in iterate(data):
        while aborted and aborted[0][0] <= header.last_offset:
            skipped.add(aborted.pop(0)[1])
        records = read_records(data[at : at + header.size])
        if header.is_control:
            if control_type(records[0]) is ControlType.ABORT:
                skipped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in skipped):
            seen += [one.value or b"" for one in records if one.offset >= offset]
        offset = header.next_offset
    return offset
