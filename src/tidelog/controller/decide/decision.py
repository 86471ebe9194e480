"""What a decision is given, and what it gives: records to append, and the answer to send then."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from tidelog.config.settings import BrokerSettings
from tidelog.controller.liveness import Sessions
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
    """The quorum's own records come with it: kraft.version is raised."""


class Refusal(NamedTuple):
    """Why something asked for is refused."""

    error: ErrorCode
    message: str | None = None


NO_FAULT = Refusal(ErrorCode.none)


@dataclass(frozen=True, slots=True)
class DecideContext:
    now: Millis
    dice: Dice
    settings: BrokerSettings
    next_offset: Offset
    """Where the first record of the decision will stand: a new broker's epoch."""
    sessions: Sessions
    kraft_version: int = 0
    """Whether the quorum's voters can change; the metadata log itself says so, not the image."""
    unheard_voters: tuple[NodeId, ...] = ()
    """Of which the leader does not know on which disks they are."""
