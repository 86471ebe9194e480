"""The effects that a coordinator shard returns to its node, and the identity of a client."""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

LogRecord: TypeAlias = tuple[bytes, bytes | None]
"""The key and value of a record of `__consumer_offsets`; a value of None is a tombstone."""


class ClientInfo(NamedTuple):
    client_id: str | None
    host: str
    """The client's address, without its port."""


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """Send the response to the request with this ticket; each ticket gets exactly one response."""

    ticket: int
    response: Any


@dataclass(frozen=True, slots=True)
class AppendRecords:
    """Append these records as one batch with acks=all; the outcome goes to `GroupShard.written`."""

    write_id: int
    records: tuple[LogRecord, ...]


GroupEffect: TypeAlias = AnswerRequest | AppendRecords
