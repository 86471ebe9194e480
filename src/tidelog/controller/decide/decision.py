"""The input and the output of a decision: a context, and records with the response to send."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from tidelog.config.settings import BrokerSettings
from tidelog.controller.liveness import Sessions
from tidelog.controller.log_ends import NO_LOG_ENDS, LogEnds
from tidelog.model.dice import Dice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, NodeId, Offset
from tidelog.protocol.metadata.metadata_records import MetadataRecord

NOT_THROTTLED = timedelta(0)


class Decision(NamedTuple):
    """Records that take effect together or not at all, and the response in its newest version."""

    records: tuple[MetadataRecord, ...]
    response: Any
    makes_voters_dynamic: bool = False
    """Whether the decision raises kraft.version. If so, the quorum appends the voters' records."""


class Refusal(NamedTuple):
    """The error code and message of a refused request."""

    error: ErrorCode
    message: str | None = None


NO_FAULT = Refusal(ErrorCode.none)


@dataclass(frozen=True, slots=True)
class DecideContext:
    now: Millis
    dice: Dice
    settings: BrokerSettings
    next_offset: Offset
    """The offset of the decision's first record. A new registration uses it as its broker epoch."""
    sessions: Sessions
    kraft_version: int = 0
    """1 if the voter set can change (KIP-853); read from the metadata log, not from the image."""
    voters_without_directory_id: tuple[NodeId, ...] = ()
    """Voters whose directory ids the leader does not know."""
    log_ends: LogEnds = NO_LOG_ENDS
    """The reported log ends of partitions without a leader (quorum rule)."""
