"""The interface of a coordinator: a state machine over the records of one partition.

A coordinator's state is what it has replayed, plus state that is not stored and may be lost in a
failover. The rules:

- `decide` and the other inputs change nothing. They return decisions.
- `replay` is the only way in which stored state changes, when a record was appended and while a
  shard is loaded. `apply` is the only way in which other state changes.
- A decision sees all records that were appended before, also those that are not committed. Its
  response leaves when they are committed. A decision without records is a read.
- An input other than `decide` returns an iterator. The runtime carries out each decision before it
  asks for the next, so a generator sees the effects of its earlier decisions.
- If the records of such a decision are refused, the decision has no effect. After `tick`, the
  machine must still be due: a change, not `tick` itself, cancels a deadline. The runtime calls
  `tick` again after a delay.
- If leadership is lost, the machine is dropped, and the runtime refuses all open requests.
- A request stays open if its response is `LATER`. The machine must keep the ticket and answer it in
  a later decision.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import Any, Generic

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.runtime.decision import (
    CoordinatorDecision,
    CoordinatorRequest,
    Instant,
    LogRecord,
    NoAnswer,
    ProducerIdAndEpoch,
    R,
    RecordOrigin,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis


class CoordinatorMachine(ABC, Generic[R]):
    # -- Records -----------------------------------------------------------------------------------

    @abstractmethod
    def encode(self, record: R) -> LogRecord: ...

    @abstractmethod
    def decode(self, key: bytes, value: bytes | None) -> R | None:
        """Decode a record of the log; None if its type is unknown and must be skipped.

        Raises RecordFormatError if the record is malformed.
        """

    @abstractmethod
    def replay(self, record: R, origin: RecordOrigin) -> None:
        """Apply a record of the log."""

    def transaction_ended(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Apply the end of a producer's transaction, of which this partition holds a marker."""

    def apply(self, change: Any) -> None:
        """Apply a change of state that is not stored."""
        raise AssertionError(f"not a change of this coordinator: {change}")

    # -- Inputs ------------------------------------------------------------------------------------

    @abstractmethod
    def decide(self, request: CoordinatorRequest, at: Instant) -> CoordinatorDecision[R]: ...

    @abstractmethod
    def refuse(self, request: CoordinatorRequest, error: ErrorCode) -> Any:
        """The response to a request that fails with this error.

        The error is COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, the error of a refused append,
        or REQUEST_TIMED_OUT or NOT_ENOUGH_REPLICAS_AFTER_APPEND if the records were appended but
        are not committed. The machine translates the error as Kafka does.
        """

    def loaded(self, at: Instant) -> Iterator[CoordinatorDecision[R]]:
        """Begin to serve, after the whole log has been replayed."""
        return iter(())

    def settled(
        self, then: Hashable, error: ErrorCode, at: Instant
    ) -> Iterator[CoordinatorDecision[R]]:
        """The records of a decision with `then` are committed, or have failed with this error.

        After REQUEST_TIMED_OUT or NOT_ENOUGH_REPLICAS_AFTER_APPEND, the records are in the log and
        may still be committed. After any other error, they were not appended.
        """
        return iter(())

    def answered(
        self, reply_to: Hashable, answer: Any | NoAnswer, at: Instant
    ) -> Iterator[CoordinatorDecision[R]]:
        """An outgoing request was answered, or has failed."""
        return iter(())

    def image_changed(self, old: ClusterImage, at: Instant) -> Iterator[CoordinatorDecision[R]]:
        """The metadata has changed. After loading, `old` is the image at the start of the load."""
        return iter(())

    def tick(self, at: Instant) -> Iterator[CoordinatorDecision[R]]:
        """Decide what is due."""
        return iter(())

    def next_deadline(self) -> Millis | None:
        """The time at which `tick` should be called."""
        return None
