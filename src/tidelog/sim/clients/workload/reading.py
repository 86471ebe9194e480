"""Validates the records of a fetch and splits them into batches."""

from tidelog.model.ids import Offset
from tidelog.protocol.fetch import PartitionFetched
from tidelog.protocol.records.batch import is_valid_crc, iterate
from tidelog.sim.checks.shadow import Batch


def batches_in(fetched: PartitionFetched, position: Offset) -> list[Batch] | None:
    """The complete batches from `position` on; None if a batch is damaged."""
    if not isinstance(fetched.records, memoryview | bytes | bytearray):
        return []
    view = memoryview(fetched.records)
    found: list[Batch] = []
    for at, header in iterate(view):
        if not is_valid_crc(view, at, header):
            return None
        if header.base_offset >= position:
            found.append(
                Batch(
                    header.base_offset,
                    header.last_offset,
                    header.leader_epoch,
                    header.crc,
                    header.producer_id,
                    header.producer_epoch,
                    header.base_sequence,
                )
            )
    return found
