"""What clients did and were told, in the order in which it happened."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, Offset, TopicPartition


class ClientWrite(NamedTuple):
    """A batch that was acknowledged."""

    producer: str
    partition: TopicPartition
    base_offset: Offset
    records: int
    crc: int
    """Of the batch as it was sent; no broker changes what it covers."""
    acks: int
    sent_at: Millis
    """When it was first sent."""
    answered_at: Millis

    @property
    def last_offset(self) -> Offset:
        return self.base_offset + self.records - 1


class Lost(NamedTuple):
    """Records that were acknowledged, or committed, and are gone."""

    partition: TopicPartition
    first: Offset
    records: int
    acks: int
    was_reported: bool
    """An unclean election said that this could be."""


@dataclass
class History:
    acknowledged: list[ClientWrite] = field(default_factory=list)
    refused: Counter[ErrorCode] = field(default_factory=Counter)
    unanswered: int = 0
    """Requests of producers whose connection was lost or given up."""
    records_read: int = 0
    lost: list[Lost] = field(default_factory=list)
    """Found when all was healed: acknowledged writes that no log holds any more."""

    @property
    def records_acknowledged(self) -> int:
        return sum(write.records for write in self.acknowledged)

    @property
    def longest_wait_ms(self) -> Millis:
        """For how long, at worst, a write that was acknowledged in the end had to be repeated."""
        return max((write.answered_at - write.sent_at for write in self.acknowledged), default=0)
