"""A transactional producer on a stage, and what a read_committed consumer sees of it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, Millis, NodeId, TopicPartition
from tidelog.protocol.fetch import FetchPartition, FetchRequest
from tidelog.protocol.produce import ProduceRequest
from tidelog.sim.clients.committed_reader import take_committed
from tidelog.sim.clients.messages import answer_in, ask, batch, frame_of
from tidelog.sim.stage.stage import Stage

TRANSACTIONAL_ID = "writer"
TIMEOUT_MS: Millis = 5_000
"""The timeout of the producer's transactions."""
COORDINATOR = TopicPartition("__transaction_state", 0)
PATIENCE_MS: Millis = 10_000
PAUSE_MS: Millis = 50
INIT, END = 22, 26
INIT_VERSION, END_VERSION, PRODUCE_VERSION = 5, 5, 12
"""Versions of a client that speaks transaction version 2."""

_RETRIED = frozenset(
    {
        ErrorCode.concurrent_transactions,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_leader_or_follower,
    }
)


class StageTransactions:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._producer = -1, -1
        self._last_producer = -1, -1
        self._sequence = 0
        self._last_end: Any = None
        self.visible = -1
        """The number of records that the last read has returned."""

    def start(self) -> str:
        """Start a producer, which fences the one before; returns the result in words."""
        timeout = timedelta(milliseconds=TIMEOUT_MS)
        wish = ask(INIT, transactional_id=TRANSACTIONAL_ID, transaction_timeout=timeout)
        answer = self._ask(COORDINATOR, wish, INIT_VERSION, lambda one: one.error_code)
        return self._entered(answer)

    def write(self, partition: TopicPartition) -> str:
        """Write one record in the open transaction; the first record begins a transaction."""
        told = self._write(partition, self._producer, self._sequence)
        if told == "acknowledged":
            self._sequence += 1
        return told

    def write_late(self, partition: TopicPartition) -> str:
        """Write one record with the epoch of the transaction that has ended."""
        return self._write(partition, self._last_producer, 1)

    def end(self, *, commits: bool) -> str:
        producer_id, epoch = self._producer
        self._last_end = ask(
            END,
            transactional_id=TRANSACTIONAL_ID,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=commits,
        )
        return self.end_again()

    def end_again(self) -> str:
        """Send the last request to end a transaction once more, as a delayed network does."""
        answer = self._ask(COORDINATOR, self._last_end, END_VERSION, lambda one: one.error_code)
        return self._entered(answer)

    def read(self, partition: TopicPartition) -> str:
        """Read all committed records; returns the result in words."""
        offset, seen = 0, list[bytes]()
        while True:
            part = FetchPartition(partition.partition, -1, offset, -1, -1, 1 << 20)
            wish = FetchRequest(
                0, 1, 1 << 20, isolation_level=1, topics=[(partition.topic, [part])]
            )
            answer = self._ask(partition, wish, None, lambda one: one.topics[0][1][0].error)
            if answer is None:
                return "without an answer"
            fetched = answer.topics[0][1][0]
            if not fetched.records:
                self.visible = len(seen)
                return f"{self.visible} records"
            aborted = sorted((one[1], one[0]) for one in fetched.aborted or ())
            offset = take_committed(memoryview(bytes(fetched.records)), offset, aborted, seen)

    def _write(self, partition: TopicPartition, producer: tuple[int, int], sequence: int) -> str:
        producer_id, epoch = producer
        records = batch(
            b"record",
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        views: list[tuple[int, memoryview | None]] = [
            (partition.partition, memoryview(bytearray(records)))
        ]
        wish = ProduceRequest(TRANSACTIONAL_ID, -1, PATIENCE_MS, [(partition.topic, views)])
        answer = self._ask(partition, wish, PRODUCE_VERSION, lambda one: one.topics[0][1][0].error)
        if answer is None:
            return "without an answer"
        error: ErrorCode = answer.topics[0][1][0].error
        return "acknowledged" if error is ErrorCode.none else f"refused: {error.name}"

    def _entered(self, answer: Any) -> str:
        if answer is None:
            return "without an answer"
        if answer.error_code is not ErrorCode.none:
            return f"refused: {answer.error_code.name}"
        producer = answer.producer_id, answer.producer_epoch
        self._last_producer = self._producer
        if producer != self._producer:
            self._producer, self._sequence = producer, 0
        return f"epoch {answer.producer_epoch}"

    def _ask(
        self,
        partition: TopicPartition,
        message: Any,
        version: int | None,
        error_of: Callable[[Any], ErrorCode],
    ) -> Any:
        """The answer of the partition's leader; retried for a while if the error is retriable."""
        deadline = self._stage.now + PATIENCE_MS
        answer = None
        while self._stage.now < deadline:
            leader = self._stage.leader(partition)
            if leader != NO_NODE and self._stage.hosts[leader].is_up:
                frame = self._answer_of(leader, frame_of(message, version=version))
                answer = None if frame is None else answer_in(frame, message, version)
                if answer is not None and error_of(answer) not in _RETRIED:
                    return answer
            self._stage.run(PAUSE_MS)
        return answer

    def _answer_of(self, node: NodeId, frame: bytes) -> bytes | None:
        frames: list[bytes | None] = []
        self._stage.client(node).request(frame, frames.append)
        self._stage.run_until(lambda: bool(frames), PATIENCE_MS)
        return frames[0] if frames else None
