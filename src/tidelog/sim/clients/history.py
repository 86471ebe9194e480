"""What clients have observed: acknowledged writes in order of time, errors and losses."""

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
    """The checksum of the sent batch, which covers only fields that brokers do not change."""
    acks: int
    sent_at: Millis
    """When the batch was first sent."""
    answered_at: Millis

    @property
    def last_offset(self) -> Offset:
        return self.base_offset + self.records - 1


class Lost(NamedTuple):
    """Acknowledged or committed records that are lost."""

    partition: TopicPartition
    first: Offset
    records: int
    acks: int
    was_reported: bool
    """Whether an unclean election of the partition's leader has shown that records may be lost."""


@dataclass
class History:
    acknowledged: list[ClientWrite] = field(default_factory=list)
    refused: Counter[ErrorCode] = field(default_factory=Counter)
    unanswered: int = 0
    """Produce requests without a response, because a connection was lost or the client gave up."""
    records_read: int = 0
    lost: list[Lost] = field(default_factory=list)
    """Acknowledged writes that no log holds after all faults have ended."""

    @property
    def records_acknowledged(self) -> int:
        return sum(write.records for write in self.acknowledged)

    @property
    def longest_wait_ms(self) -> Millis:
        """The longest time from the first send of a write to its acknowledgement."""
        return max((write.answered_at - write.sent_at for write in self.acknowledged), default=0)
