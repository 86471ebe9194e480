"""What the coordinator of a partition may ask of its node, and who is asking it."""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

LogRecord: TypeAlias = tuple[bytes, bytes | None]
"""Key and value of a record of `__consumer_offsets`; no value is a tombstone."""


class ClientInfo(NamedTuple):
    client_id: str | None
    host: str
    """The client's address, without its port."""


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """AnswerRequest the request that came with this ticket; exactly one per ticket."""

    ticket: int
    response: Any


@dataclass(frozen=True, slots=True)
class AppendRecords:
    """Append these records as one batch with acks=all, then say so through `GroupShard.written`."""

    write_id: int
    records: tuple[LogRecord, ...]


GroupEffect: TypeAlias = AnswerRequest | AppendRecords
