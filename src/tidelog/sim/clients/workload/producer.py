"""Two producers: the idempotent one retries until it succeeds, and the plain one never retries."""

from collections import deque
from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, TopicPartition
from tidelog.protocol.records.batch import read_header
from tidelog.sim.clients.history import ClientWrite
from tidelog.sim.clients.messages import ask, produce_to
from tidelog.sim.clients.talk import Talk
from tidelog.sim.clients.workload.batches import Batches, Made, renumber
from tidelog.sim.clients.workload.client import ClientSurroundings, WorkloadClient
from tidelog.sim.runs.plan import Workload

INIT_PRODUCER_ID = 22
MAX_IN_FLIGHT = 5
MAX_QUEUED = 30
TIMEOUT_MS: Millis = 1_500


class _Batch:
    __slots__ = ("is_in_flight", "made", "sent_at", "sequence")

    def __init__(self, made: Made, sequence: int, now: Millis) -> None:
        self.made = made
        self.sequence = sequence
        self.sent_at = now
        self.is_in_flight = False

    def renew(self, producer_id: int, producer_epoch: int, sequence: int) -> None:
        """Assign the records to another producer id."""
        content = bytearray(self.made.content)
        renumber(memoryview(content), producer_id, producer_epoch, sequence)
        self.made = Made(bytes(content), self.made.records, read_header(content).crc)
        self.sequence = sequence


class IdempotentProducer(WorkloadClient):
    """Writes with acks=all and up to five batches in flight, and retries in order (F44)."""

    def __init__(
        self, around: ClientSurroundings, name: str, partition: TopicPartition, workload: Workload
    ) -> None:
        super().__init__(around, name)
        self.partition = partition
        self._workload = workload
        self._batches = Batches(name, self.dice, workload.records)
        self._id, self._epoch, self._sequence = -1, -1, 0
        self._queue: deque[_Batch] = deque()
        self._talk: Talk | None = None
        self._is_waiting = False
        self._has_begun = False
        self._introduce()

    @property
    def is_known(self) -> bool:
        """Whether the producer has a producer id."""
        return self._id >= 0

    @property
    def pending(self) -> int:
        """The number of batches that are not acknowledged yet."""
        return len(self._queue)

    def _introduce(self) -> None:
        """Get a producer id from any node."""
        host = self.any_host()
        if host is None:
            self.world.after(self.later(), self._introduce)
            return
        talk = self.talk_to(host.id)

        def answered(answer: Any) -> None:
            talk.close()
            if answer is None or answer.error_code is not ErrorCode.none:
                self.world.after(self.later(), self._introduce)
                return
            self._id, self._epoch = answer.producer_id, answer.producer_epoch
            self._renumber()
            if not self._has_begun:
                self._has_begun = True
                self._produce()

        talk.begin(ask(INIT_PRODUCER_ID, transactional_id=None), then=answered)

    def _renumber(self) -> None:
        """Assign unacknowledged batches to the new producer id and send them."""
        self._sequence = 0
        for one in self._queue:
            one.renew(self._id, self._epoch, self._sequence)
            self._sequence += one.made.records
        self._is_waiting = False
        if self._queue:
            self._send()

    def _produce(self) -> None:
        if not self.around.is_over:
            self._write(self._workload.burst)
            self.world.after(self._workload.every_ms, self._produce)

    def produce_more(self) -> None:
        """Send a few additional batches now."""
        if self.is_known and not self.around.is_over:
            self._write(1 + self.dice.below(3))

    def _write(self, batches: int) -> None:
        for _ in range(batches):
            if self.is_known and len(self._queue) < MAX_QUEUED:
                now = self.world.now
                made = self._batches.make(now, self._id, self._epoch, self._sequence)
                self._queue.append(_Batch(made, self._sequence, now))
                self._sequence += made.records
        self._send()

    def _send(self) -> None:
        if self._is_waiting:
            return
        if self._talk is None or self._talk.is_lost:
            leader = self.leader_of(self.partition)
            if leader is None:
                self._wait()
                return
            self._talk = self.talk_to(leader.node)
        talk = self._talk
        for place, one in enumerate(self._queue):
            if place == MAX_IN_FLIGHT or talk is not self._talk:
                return
            if not one.is_in_flight:
                one.is_in_flight = True
                self._begin(talk, one)

    def _begin(self, talk: Talk, one: _Batch) -> None:
        topic, index = self.partition

        def answered(answer: Any) -> None:
            if talk is self._talk:
                self._answered(one, answer)

        records = {index: one.made.content}
        talk.begin(produce_to(topic, records, timeout_ms=TIMEOUT_MS), then=answered)

    def _answered(self, one: _Batch, answer: Any) -> None:
        if answer is None:
            self.around.history.unanswered += 1
            self._fail()
            return
        [(_, [produced])] = answer.topics
        if produced.error in (ErrorCode.none, ErrorCode.duplicate_sequence_number):
            self._queue.remove(one)
            if produced.error is ErrorCode.none:
                self._acknowledge(one, produced.base_offset)
            self._send()
            return
        self.around.history.refused[produced.error] += 1
        if produced.error is ErrorCode.out_of_order_sequence_number and self._is_forgotten(one):
            self._id = -1
        self._fail()

    def _is_forgotten(self, one: _Batch) -> bool:
        """Whether the leader refuses a batch because earlier batches of the producer were lost.

        If no records were lost, the error may come from a deposed leader.
        """
        return one is self._queue[0] and self.around.checker.scene.by_name[self.partition].lost > 0

    def _acknowledge(self, one: _Batch, base_offset: int) -> None:
        write = ClientWrite(
            self.name,
            self.partition,
            base_offset,
            one.made.records,
            one.made.crc,
            -1,
            one.sent_at,
            self.world.now,
        )
        self.around.history.acknowledged.append(write)
        self.around.checker.acknowledged(write)

    def _fail(self) -> None:
        """Close the connection, and send all batches again in order on another connection."""
        talk, self._talk = self._talk, None
        if talk is not None:
            talk.close()
        for one in self._queue:
            one.is_in_flight = False
        self._wait()

    def _wait(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self.world.after(self.later(), self._go_on)

    def _go_on(self) -> None:
        if not self.is_known:
            self._introduce()
            return
        self._is_waiting = False
        if self._queue:
            self._send()


class PlainProducer(WorkloadClient):
    """Sends each batch once, with the given acks, and never retries."""

    def __init__(
        self,
        around: ClientSurroundings,
        name: str,
        partition: TopicPartition,
        workload: Workload,
        acks: int,
    ) -> None:
        super().__init__(around, name)
        self.partition = partition
        self._workload = workload
        self._acks = acks
        self._batches = Batches(name, self.dice, workload.records)
        self._talk: Talk | None = None
        self._produce()

    def _produce(self) -> None:
        if not self.around.is_over:
            for _ in range(self._workload.burst):
                self._send()
            self.world.after(self._workload.every_ms, self._produce)

    def produce_more(self) -> None:
        """Send a few additional batches now."""
        if not self.around.is_over:
            for _ in range(1 + self.dice.below(3)):
                self._send()

    def _send(self) -> None:
        if self._talk is None or self._talk.is_lost:
            leader = self.leader_of(self.partition)
            if leader is None:
                return
            self._talk = self.talk_to(leader.node)
        talk, sent_at = self._talk, self.world.now
        made = self._batches.make(sent_at)
        topic, index = self.partition
        wish = produce_to(topic, {index: made.content}, acks=self._acks, timeout_ms=TIMEOUT_MS)
        if self._acks == 0:
            talk.tell(wish)
        else:
            talk.begin(wish, then=lambda answer: self._answered(made, sent_at, answer))

    def _answered(self, made: Made, sent_at: Millis, answer: Any) -> None:
        if answer is None:
            self.around.history.unanswered += 1
            return
        [(_, [produced])] = answer.topics
        if produced.error is not ErrorCode.none:
            self.around.history.refused[produced.error] += 1
            if self._talk is not None:
                self._talk.close()
            return
        write = ClientWrite(
            self.name,
            self.partition,
            produced.base_offset,
            made.records,
            made.crc,
            self._acks,
            sent_at,
            self.world.now,
        )
        self.around.history.acknowledged.append(write)
        self.around.checker.acknowledged(write)
