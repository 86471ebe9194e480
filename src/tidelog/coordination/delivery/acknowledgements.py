"""Acknowledgements of delivered records, as members send them, and Kafka's checks of their form."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from tidelog.coordination.delivery.in_flight import RecordState
from tidelog.model.ids import Offset


class AcknowledgeType(IntEnum):
    GAP = 0
    """The log has no record at this offset."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    """Renew the acquisition lock and keep the record (KIP-1222)."""


NEXT_STATE = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


class AcknowledgementBatch(NamedTuple):
    first: Offset
    last: Offset
    types: tuple[int, ...]
    """One type for the whole batch, or one for each offset."""

    def parts(self) -> list[tuple[Offset, Offset, AcknowledgeType]]:
        """The ranges of consecutive offsets with the same type."""
        if len(self.types) == 1:
            return [(self.first, self.last, AcknowledgeType(self.types[0]))]
        parts: list[tuple[Offset, Offset, AcknowledgeType]] = []
        for offset, number in enumerate(self.types, self.first):
            kind = AcknowledgeType(number)
            if parts and parts[-1][2] is kind:
                parts[-1] = (parts[-1][0], offset, kind)
            else:
                parts.append((offset, offset, kind))
        return parts


def form_error(batches: Sequence[AcknowledgementBatch], *, may_renew: bool) -> str | None:
    """The reason to refuse the batches of one partition as INVALID_REQUEST; None if valid."""
    previous_last = -1
    for batch in batches:
        if batch.first > batch.last:
            return (
                f"Acknowledgement batch has first offset {batch.first} "
                f"greater than last offset {batch.last}"
            )
        if batch.first <= previous_last:
            return "Acknowledgement batches are not in order, or they overlap"
        previous_last = batch.last
        if not batch.types:
            return "Acknowledge types are missing"
        if len(batch.types) > 1 and len(batch.types) != batch.last - batch.first + 1:
            return "The number of acknowledge types differs from the number of offsets"
        largest = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
        if not all(0 <= kind <= largest for kind in batch.types):
            return "Unknown acknowledge type"
    return None
