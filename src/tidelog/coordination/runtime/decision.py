"""The input and the output of a coordinator's decision.

A `CoordinatorDecision` describes everything that follows from one input. Nothing of it takes effect
unless its records are appended. Nothing of it leaves the shard before all records that the decision
is based on are committed, unless the decision is `at_once`.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from tidelog.controller.image.image import ClusterImage
from tidelog.model.ids import Millis, NodeId, Offset, ProducerId
from tidelog.security.principal import ANONYMOUS, Principal

R = TypeVar("R")

LogRecord: TypeAlias = tuple[bytes, bytes | None]
"""The key and value of a record of a coordinator's topic; a value of None is a tombstone."""

Ticket: TypeAlias = int
"""The number of a request in its shard. Each ticket gets exactly one response."""


class ClientInfo(NamedTuple):
    client_id: str | None
    host: str
    """The client's address, without its port."""
    principal: Principal = ANONYMOUS


class Instant(NamedTuple):
    """The time and the metadata at which a decision is made."""

    now: Millis
    """The monotonic clock, which deadlines use."""
    wall: Millis
    """The wall clock, for timestamps that outlive this coordinator."""
    settled_wall: Millis
    """The wall clock without recent steps forward. Stored state expires by this clock."""
    image: ClusterImage


@dataclass(frozen=True, slots=True)
class CoordinatorRequest:
    """A request of a client or of another broker, in the newest version of its message."""

    message: Any
    version: int
    """The version in which the client sent the request."""
    client: ClientInfo
    ticket: Ticket


class _Later(Enum):
    LATER = "later"


LATER: Literal[_Later.LATER] = _Later.LATER
"""The response of a request that stays open. A later decision answers its ticket."""


class TicketAnswer(NamedTuple):
    """The response to a request that an earlier decision left open."""

    ticket: Ticket
    response: Any


# -- Requests to other brokers ---------------------------------------------------------------------


class ToBroker(NamedTuple):
    broker: NodeId


class ToLeader(NamedTuple):
    """The broker that leads this partition when the request is sent."""

    topic: str
    partition: int


class ToController(NamedTuple):
    """The active controller."""


Destination: TypeAlias = ToBroker | ToLeader | ToController


class NoAnswer(NamedTuple):
    """The result of an outgoing request that was not answered, or could not be sent."""

    reason: str


class OutgoingRequest(NamedTuple):
    """A request to another broker, or to this one.

    Its response, or `NoAnswer`, goes to `CoordinatorMachine.answered`.
    """

    to: Destination
    message: Any
    version: int
    reply_to: Hashable
    """Identifies the request when its response arrives. The runtime does not look into it."""
    lowest_version: int | None = None
    """The lowest version that can be sent to a broker that does not support `version`. If it is
    None, the request is sent in `version` without asking the broker."""


# -- Decisions -------------------------------------------------------------------------------------


class ProducerIdAndEpoch(NamedTuple):
    producer_id: ProducerId
    epoch: int


class RecordOrigin(NamedTuple):
    """Where a replayed record is in the log."""

    offset: Offset
    producer: ProducerIdAndEpoch | None = None
    """The producer, if the record belongs to a transaction that may still be aborted."""


class CoordinatorDecision(NamedTuple, Generic[R]):
    records: tuple[R, ...] = ()
    """Appended as one batch, then replayed. If the append is refused, nothing of the decision takes
    effect, and the request and `then` get the error."""
    response: Any = LATER
    """The response to the request, or `LATER`."""
    answers: tuple[TicketAnswer, ...] = ()
    """Responses to requests that earlier decisions left open."""
    changes: tuple[Any, ...] = ()
    """Changes of state that is not stored, such as sessions and parked requests. The machine
    applies them in order, right after it has replayed the records."""
    requests: tuple[OutgoingRequest, ...] = ()
    """Requests to other brokers. They do not time out while they wait for the commit."""
    then: Hashable | None = None
    """Given to `CoordinatorMachine.settled` once, when the records are committed, were refused, or
    have not been committed in time."""
    at_once: bool = False
    """Whether responses and requests leave now, because they show nothing that is stored."""
    is_atomic: bool = True
    """Whether the records must be in one batch. Otherwise they are split to fit into batches."""
    producer: ProducerIdAndEpoch | None = None
    """The producer whose open transaction the records belong to."""
