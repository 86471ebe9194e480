"""A small coordinator under the runtime: named tallies that clients raise and await.

`Raise` stores a tally. `Look` reads one. `Await` stays open until a tally reaches a value or its
patience ends. `Report` sends the tally to a broker once it is committed, and the broker's answer is
stored as a tally of its own.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.runtime.decision import (
    ClientInfo,
    CoordinatorDecision,
    CoordinatorRequest,
    Instant,
    LogRecord,
    OutgoingRequest,
    ProducerIdAndEpoch,
    RecordOrigin,
    TicketAnswer,
    ToBroker,
)
from tidelog.coordination.runtime.machine import CoordinatorMachine
from tidelog.coordination.runtime.shard import CoordinatorShard, ShardOutput
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, Offset

COMMIT_TIMEOUT_MS = 5_000
PATIENCE_MS = 10_000


class Raise(NamedTuple):
    name: str
    value: int


class RaiseMany(NamedTuple):
    names: tuple[str, ...]
    is_atomic: bool


class Look(NamedTuple):
    name: str


class Peek(NamedTuple):
    """Look without waiting for the commit."""

    name: str


class Await(NamedTuple):
    name: str
    value: int


class Report(NamedTuple):
    name: str
    value: int
    broker: int


class Tally(NamedTuple):
    """A record."""

    name: str
    value: int


class Parked(NamedTuple):
    ticket: int
    name: str
    value: int
    deadline: Millis


class Released(NamedTuple):
    ticket: int


Decided: TypeAlias = CoordinatorDecision[Tally]


class TallyCoordinator(CoordinatorMachine[Tally]):
    def __init__(self) -> None:
        self.tallies: dict[str, int] = {}
        self.parked: dict[int, Parked] = {}
        self.settlements: list[tuple[Hashable, ErrorCode]] = []
        self.has_loaded = False

    def encode(self, record: Tally) -> LogRecord:
        return record.name.encode(), str(record.value).encode()

    def decode(self, key: bytes, value: bytes | None) -> Tally | None:
        return None if value is None else Tally(key.decode(), int(value))

    def replay(self, record: Tally, origin: RecordOrigin) -> None:
        self.tallies[record.name] = record.value

    def transaction_ended(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        self.tallies["committed" if committed else "aborted"] = producer.producer_id

    def apply(self, change: Any) -> None:
        if isinstance(change, Parked):
            self.parked[change.ticket] = change
        else:
            assert isinstance(change, Released)
            del self.parked[change.ticket]

    def refuse(self, request: CoordinatorRequest, error: ErrorCode) -> Any:
        return error

    def decide(self, request: CoordinatorRequest, at: Instant) -> Decided:
        match request.message:
            case Raise(name, value):
                return Decided((Tally(name, value),), value, then=("raised", name))
            case RaiseMany(names, is_atomic):
                records = tuple(Tally(name, 1) for name in names)
                return Decided(records, len(names), is_atomic=is_atomic)
            case Look(name):
                return Decided(response=self.tallies.get(name, 0))
            case Peek(name):
                return Decided(response=self.tallies.get(name, 0), at_once=True)
            case Await(name, value):
                parked = Parked(request.ticket, name, value, at.now + PATIENCE_MS)
                return Decided(changes=(parked,))
            case Report(name, value, broker):
                ask = OutgoingRequest(ToBroker(broker), ("report", value), 0, reply_to=name)
                return Decided((Tally(name, value),), "reported", requests=(ask,))
        raise AssertionError(request)

    def loaded(self, at: Instant) -> Iterator[Decided]:
        self.has_loaded = True
        yield Decided((Tally("loads", self.tallies.get("loads", 0) + 1),))

    def settled(self, then: Hashable, error: ErrorCode, at: Instant) -> Iterator[Decided]:
        self.settlements.append((then, error))
        for parked in list(self.parked.values()):
            if self.tallies.get(parked.name, 0) >= parked.value:
                answer = TicketAnswer(parked.ticket, parked.value)
                yield Decided(answers=(answer,), changes=(Released(parked.ticket),))

    def answered(self, reply_to: Hashable, answer: Any, at: Instant) -> Iterator[Decided]:
        yield Decided((Tally(f"{reply_to} answered", int(answer)),))

    def image_changed(self, old: ClusterImage, at: Instant) -> Iterator[Decided]:
        yield Decided((Tally("image", at.image.offset),))

    def tick(self, at: Instant) -> Iterator[Decided]:
        for parked in list(self.parked.values()):
            if parked.deadline <= at.now:
                # The second decision sees the record of the first.
                timeouts = self.tallies.get("timeouts", 0) + 1
                answer = TicketAnswer(parked.ticket, ErrorCode.request_timed_out)
                yield Decided(
                    (Tally("timeouts", timeouts),),
                    answers=(answer,),
                    changes=(Released(parked.ticket),),
                )

    def next_deadline(self) -> Millis | None:
        return min((parked.deadline for parked in self.parked.values()), default=None)


class FakeLog:
    """A partition whose high watermark moves when the test says so."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.batches: list[int] = []
        self.high_watermark: Offset = 0
        self.largest_batch = 1_000
        self.refuses_with = ErrorCode.none
        self.awaited: list[Offset] = []

    def append(
        self, records: Sequence[LogRecord], producer: ProducerIdAndEpoch | None
    ) -> Offset | ErrorCode:
        if self.refuses_with is not ErrorCode.none:
            return self.refuses_with
        self.records += records
        self.batches.append(len(records))
        return len(self.records)

    def await_commit(self, end: Offset) -> None:
        self.awaited.append(end)


class TallyShard:
    """A shard of the example coordinator, with its log and the responses that it has sent."""

    def __init__(self, *loaded: Tally) -> None:
        self.machine = TallyCoordinator()
        self.log = FakeLog()
        self.log.records = [self.machine.encode(record) for record in loaded]
        for offset, record in enumerate(loaded):
            self.machine.replay(record, RecordOrigin(offset))
        self.now = 1_000
        self.image = ClusterImage()
        self.shard = CoordinatorShard(self.machine, self.log, len(loaded), COMMIT_TIMEOUT_MS)
        self.answers: dict[int, Any] = {}
        self.sent: list[OutgoingRequest] = []
        self._tickets = 0

    @property
    def at(self) -> Instant:
        return Instant(self.now, self.now, self.now, self.image)

    def take(self, outputs: Sequence[ShardOutput]) -> None:
        for output in outputs:
            if isinstance(output, TicketAnswer):
                assert output.ticket not in self.answers, "answered twice"
                self.answers[output.ticket] = output.response
            else:
                self.sent.append(output)

    def ask(self, message: Any) -> int:
        self._tickets += 1
        request = CoordinatorRequest(message, 0, ClientInfo("client", "host"), self._tickets)
        self.take(self.shard.handle(request, self.at))
        return self._tickets

    def commit(self, up_to: Offset | None = None) -> None:
        self.log.high_watermark = len(self.log.records) if up_to is None else up_to
        self.take(self.shard.committed(self.at))

    def advance(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.take(self.shard.tick(self.at))
