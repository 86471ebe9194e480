"""Runs one coordinator machine over one partition: decide, append, replay, answer at the watermark.

Invariants: the machine's state is exactly what the log holds, plus changes that are not stored. A
response leaves when the high watermark has passed everything that its decision saw and wrote. Each
open request gets exactly one response.

Waiting entries are kept in the order of their decisions, in which both their offsets and their
deadlines grow, so only the first entry has to be looked at.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Generic, Protocol, TypeAlias

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.runtime.decision import (
    LATER,
    CoordinatorDecision,
    CoordinatorRequest,
    Instant,
    LogRecord,
    NoAnswer,
    OutgoingRequest,
    ProducerIdAndEpoch,
    R,
    RecordOrigin,
    Ticket,
    TicketAnswer,
)
from tidelog.coordination.runtime.machine import CoordinatorMachine
from tidelog.coordination.runtime.sizes import parts_of
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, Offset

TICK_RETRY_MS: Millis = 500
"""The delay before `tick` is called again if one of its decisions was refused, as in Kafka."""


class ShardLog(Protocol):
    """The partition of a shard, on the leader."""

    @property
    def high_watermark(self) -> Offset: ...

    @property
    def largest_batch(self) -> int:
        """max.message.bytes of the partition, which may change at any time."""

    def append(
        self, records: Sequence[LogRecord], producer: ProducerIdAndEpoch | None
    ) -> Offset | ErrorCode:
        """Append one batch; returns the offset after it, or the reason why nothing was written."""

    def await_commit(self, end: Offset) -> None:
        """Call `committed` or `not_committed` of the shard, later, for this offset."""


ShardOutput: TypeAlias = TicketAnswer | OutgoingRequest
"""A response to send, or a request to another broker."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """What leaves the shard, or is decided, once the log is committed up to `end`."""

    end: Offset
    deadline: Millis
    answers: tuple[TicketAnswer, ...]
    requests: tuple[OutgoingRequest, ...]
    then: Any


class CoordinatorShard(Generic[R]):
    """A loaded shard. Each input returns what must be sent to clients and to other brokers."""

    def __init__(
        self,
        machine: CoordinatorMachine[R],
        log: ShardLog,
        end: Offset,
        commit_timeout_ms: Millis,
    ) -> None:
        self.machine = machine
        self._log = log
        self._end = end
        """The offset after the last replayed record."""
        self._timeout_ms = commit_timeout_ms
        self._open: dict[Ticket, CoordinatorRequest] = {}
        self._waiting: deque[_Waiting] = deque()
        self._awaited: Offset = -1
        """The highest offset whose commit the log will report."""
        self._tick_not_before: Millis | None = None
        self._outputs: list[ShardOutput] = []
        self._is_over = False

    # -- Inputs ------------------------------------------------------------------------------------

    def start(self, image_before: ClusterImage, at: Instant) -> list[ShardOutput]:
        """Begin to serve; `image_before` is the image from before the load."""
        self._run(self.machine.loaded(at), at)
        if image_before is not at.image:
            self._run(self.machine.image_changed(image_before, at), at)
        return self._take_outputs()

    def handle(self, request: CoordinatorRequest, at: Instant) -> list[ShardOutput]:
        assert request.ticket not in self._open
        self._open[request.ticket] = request
        self._carry_out(self.machine.decide(request, at), at, request.ticket)
        return self._take_outputs()

    def committed(self, at: Instant) -> list[ShardOutput]:
        """The high watermark has moved."""
        self._release(at)
        self._await_first()
        return self._take_outputs()

    def not_committed(self, error: ErrorCode, at: Instant) -> list[ShardOutput]:
        """The log cannot commit at present, for example because too few replicas are in sync."""
        self._awaited = -1
        self._release(at)
        for waiting in list(self._waiting):
            self._fail(waiting, error, at)
        self._await_first()
        return self._take_outputs()

    def answered(
        self, request: OutgoingRequest, answer: Any | NoAnswer, at: Instant
    ) -> list[ShardOutput]:
        self._run(self.machine.answered(request.reply_to, answer, at), at)
        return self._take_outputs()

    def image_changed(self, old: ClusterImage, at: Instant) -> list[ShardOutput]:
        self._run(self.machine.image_changed(old, at), at)
        return self._take_outputs()

    def transaction_ended(
        self, producer: ProducerIdAndEpoch, end: Offset, *, committed: bool
    ) -> None:
        """A marker was appended to the partition, with `end` as the offset after it."""
        self._end = end
        self.machine.transaction_ended(producer, committed=committed)

    def tick(self, at: Instant) -> list[ShardOutput]:
        for waiting in list(takewhile(lambda one: one.deadline <= at.now, self._waiting)):
            self._fail(waiting, ErrorCode.request_timed_out, at)
        if self._tick_not_before is None or self._tick_not_before <= at.now:
            self._tick_not_before = None
            if not self._run(self.machine.tick(at), at):
                self._tick_not_before = at.now + TICK_RETRY_MS
        return self._take_outputs()

    def next_deadline(self) -> Millis | None:
        if self._is_over:
            return None
        first = next((one.deadline for one in self._waiting if one.answers or one.then), None)
        due = self.machine.next_deadline()
        if due is not None and self._tick_not_before is not None:
            due = max(due, self._tick_not_before)
        if first is None or due is None:
            return due if first is None else first
        return min(first, due)

    def resign(self) -> list[ShardOutput]:
        """Refuse all open requests, because leadership is lost. The shard is not used again."""
        self._is_over = True
        self._waiting.clear()
        for ticket in list(self._open):
            self._refuse(ticket, ErrorCode.not_coordinator)
        return self._take_outputs()

    # -- Decisions ---------------------------------------------------------------------------------

    def _run(self, decisions: Iterator[CoordinatorDecision[R]], at: Instant) -> bool:
        """Carry out decisions one by one; returns whether all of them were appended."""
        all_appended = True
        for decision in decisions:
            if self._is_over:
                return False
            all_appended &= self._carry_out(decision, at, None)
        return all_appended

    def _carry_out(
        self, decision: CoordinatorDecision[R], at: Instant, ticket: Ticket | None
    ) -> bool:
        error = self._append(decision)
        if error is not ErrorCode.none:
            if ticket is not None:
                self._refuse(ticket, error)
            if decision.then is not None and not self._is_over:
                self._run(self.machine.settled(decision.then, error, at), at)
            return False
        for change in decision.changes:
            self.machine.apply(change)
        answers = decision.answers
        if decision.response is not LATER:
            assert ticket is not None, "a response without a request"
            answers = (*answers, TicketAnswer(ticket, decision.response))
        requests = decision.requests
        if decision.at_once:
            self._send(answers, requests)
            answers = requests = ()
        if answers or requests or decision.then is not None:
            self._wait(_Waiting(self._end, 0, answers, requests, decision.then), at)
        return True

    def _append(self, decision: CoordinatorDecision[R]) -> ErrorCode:
        """Append the records and replay them."""
        if not decision.records:
            return ErrorCode.none
        encoded = [self.machine.encode(record) for record in decision.records]
        parts = parts_of(encoded, self._log.largest_batch, is_atomic=decision.is_atomic)
        if not parts:
            return ErrorCode.message_too_large
        for first, last in parts:
            end = self._log.append(encoded[first:last], decision.producer)
            if isinstance(end, ErrorCode):
                return end
            if self._is_over:
                return ErrorCode.not_coordinator
            self._end = end
            base = end - (last - first)
            for number in range(first, last):
                origin = RecordOrigin(base + number - first, decision.producer)
                self.machine.replay(decision.records[number], origin)
        return ErrorCode.none

    # -- Waiting for the high watermark ------------------------------------------------------------

    def _wait(self, waiting: _Waiting, at: Instant) -> None:
        if not self._waiting and waiting.end <= self._log.high_watermark:
            self._let_go(waiting, at)
            return
        waiting.deadline = at.now + self._timeout_ms
        self._waiting.append(waiting)
        self._await_first()

    def _await_first(self) -> None:
        """Ask the log to report the commit that the last entry needs, unless it already will."""
        if self._waiting and self._awaited < self._waiting[-1].end:
            self._awaited = self._waiting[-1].end
            self._log.await_commit(self._awaited)

    def _release(self, at: Instant) -> None:
        high_watermark = self._log.high_watermark
        if self._awaited <= high_watermark:
            self._awaited = -1
        while self._waiting and self._waiting[0].end <= high_watermark:
            self._let_go(self._waiting.popleft(), at)

    def _let_go(self, waiting: _Waiting, at: Instant) -> None:
        self._send(waiting.answers, waiting.requests)
        if waiting.then is not None:
            self._run(self.machine.settled(waiting.then, ErrorCode.none, at), at)

    def _fail(self, waiting: _Waiting, error: ErrorCode, at: Instant) -> None:
        """Refuse the requests of an entry. Its requests to other brokers keep waiting."""
        answers, then = waiting.answers, waiting.then
        waiting.answers, waiting.then = (), None
        if not waiting.requests and waiting in self._waiting:
            self._waiting.remove(waiting)
        for answer in answers:
            self._refuse(answer.ticket, error)
        if then is not None:
            self._run(self.machine.settled(then, error, at), at)

    # -- Outputs -----------------------------------------------------------------------------------

    def _send(self, answers: Sequence[TicketAnswer], requests: Sequence[OutgoingRequest]) -> None:
        for answer in answers:
            # A request whose wait has failed has already been refused.
            if self._open.pop(answer.ticket, None) is not None:
                self._outputs.append(answer)
        self._outputs += requests

    def _refuse(self, ticket: Ticket, error: ErrorCode) -> None:
        request = self._open.pop(ticket, None)
        if request is not None:
            self._outputs.append(TicketAnswer(ticket, self.machine.refuse(request, error)))

    def _take_outputs(self) -> list[ShardOutput]:
        outputs, self._outputs = self._outputs, []
        return outputs
