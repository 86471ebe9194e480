"""A transaction coordinator over a log in memory, with clients and partition leaders for it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from kio.schema.write_txn_markers.v2.response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

from tidelog.controller.features import TRANSACTION_VERSION
from tidelog.controller.image.image import ClusterImage, PartitionImage, TopicImage
from tidelog.coordination.runtime.decision import (
    ClientInfo,
    CoordinatorRequest,
    Instant,
    LogRecord,
    NoAnswer,
    OutgoingRequest,
    ProducerIdAndEpoch,
    RecordOrigin,
    ToBroker,
)
from tidelog.coordination.runtime.shard import CoordinatorShard, ShardOutput
from tidelog.coordination.transactions.machine import (
    TransactionMachine,
    TransactionSettings,
)
from tidelog.coordination.transactions.requests import EndTransaction, InitProducer
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, Offset, TopicPartition

SETTINGS = TransactionSettings(
    id_expiration_ms=100_000, abort_interval_ms=10_000, expiry_interval_ms=50_000
)
WALL = 1_000_000
"""How far the wall clock is ahead of the monotonic clock."""


class LogInMemory:
    """The coordinator's partition, whose commits a test can hold back or refuse."""

    def __init__(self, records: Sequence[LogRecord] = ()) -> None:
        self.records = list(records)
        self.high_watermark: Offset = len(self.records)
        self.largest_batch = 1_000_000
        self.is_held = False
        self.refuses: ErrorCode | None = None
        self.awaited: Offset | None = None

    def append(
        self, records: Sequence[LogRecord], producer: ProducerIdAndEpoch | None
    ) -> Offset | ErrorCode:
        assert producer is None
        if self.refuses is not None:
            return self.refuses
        self.records += records
        if not self.is_held:
            self.high_watermark = len(self.records)
        return len(self.records)

    def await_commit(self, end: Offset) -> None:
        self.awaited = end


class CoordinatorUnderTest:
    def __init__(self, log: LogInMemory | None = None, epoch: int = 1) -> None:
        self.log = log or LogInMemory()
        self.epoch = epoch
        self.now = 0
        self.leaders: dict[TopicPartition, NodeId] = {
            TopicPartition(topic, index): 1 + index % 2
            for topic in ("t", "u", "__consumer_offsets")
            for index in range(3)
        }
        self.transaction_version = 2
        self.answers: dict[int, Any] = {}
        self.outgoing: list[OutgoingRequest] = []
        self.next_producer_id = 1000
        self._tickets = 0
        self._image = self._build_image()
        self._load()

    def _load(self) -> None:
        self.machine = TransactionMachine(SETTINGS, self.epoch)
        for offset, (key, value) in enumerate(self.log.records):
            record = self.machine.decode(key, value)
            assert record is not None
            self.machine.replay(record, RecordOrigin(offset))
        self.shard = CoordinatorShard(self.machine, self.log, len(self.log.records), 5_000)
        self._carry_out(self.shard.start(self._image, self.at))

    @property
    def at(self) -> Instant:
        return Instant(self.now, self.now + WALL, self.now + WALL, self._image)

    # -- metadata ----------------------------------------------------------------------------------

    def _build_image(self) -> ClusterImage:
        topics: dict[str, dict[int, PartitionImage]] = {}
        for (topic, index), leader in self.leaders.items():
            topics.setdefault(topic, {})[index] = PartitionImage((1, 2), (1, 2), leader, 0, 0)
        return ClusterImage(
            topics={
                name: TopicImage(name, UUID(int=number), partitions)
                for number, (name, partitions) in enumerate(topics.items(), 1)
            },
            features={TRANSACTION_VERSION: self.transaction_version},
        )

    def change_image(self) -> None:
        old, self._image = self._image, self._build_image()
        self._carry_out(self.shard.image_changed(old, self.at))

    # -- requests ----------------------------------------------------------------------------------

    def ask(self, message: Any) -> int:
        """Send a request, once more with a new producer id if the coordinator needs one."""
        ticket = self._ask(message)
        answer = self.answers.get(ticket)
        if isinstance(message, InitProducer | EndTransaction) and (
            answer is not None and answer.needs_producer_id
        ):
            new_id, self.next_producer_id = self.next_producer_id, self.next_producer_id + 1
            return self._ask(replace(message, new_producer_id=new_id))
        return ticket

    def _ask(self, message: Any) -> int:
        self._tickets += 1
        client = ClientInfo("client", "127.0.0.1")
        request = CoordinatorRequest(message, 0, client, self._tickets)
        self._carry_out(self.shard.handle(request, self.at))
        return self._tickets

    def result(self, message: Any) -> Any:
        return self.answers[self.ask(message)]

    def _carry_out(self, outputs: list[ShardOutput]) -> None:
        for output in outputs:
            if isinstance(output, OutgoingRequest):
                self.outgoing.append(output)
            else:
                self.answers[output.ticket] = output.response

    # -- the log, time and failovers ---------------------------------------------------------------

    def commit_log(self) -> None:
        self.log.high_watermark = len(self.log.records)
        self._carry_out(self.shard.committed(self.at))

    def advance(self, milliseconds: int) -> None:
        end = self.now + milliseconds
        while (due := self.shard.next_deadline()) is not None and due <= end:
            self.now = max(self.now + 1, due) if due <= self.now else due
            self._carry_out(self.shard.tick(self.at))
        self.now = max(self.now, end)

    def fail_over(self, *, keeps: int | None = None) -> None:
        """Another coordinator takes over; `keeps` is the number of records that survive."""
        self._carry_out(self.shard.resign())
        self.log = LogInMemory(self.log.records[:keeps])
        self.outgoing.clear()
        self.epoch += 1
        self._load()

    # -- partition leaders -------------------------------------------------------------------------

    def answer_markers(self, errors: dict[TopicPartition, ErrorCode] | None = None) -> None:
        """Answer the oldest WriteTxnMarkers request; partitions without an error succeed."""
        request = self.outgoing.pop(0)
        response = WriteTxnMarkersResponse(
            markers=tuple(
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=tuple(
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=tuple(
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index,
                                    error_code=(errors or {}).get(
                                        TopicPartition(topic.name, index), ErrorCode.none
                                    ),
                                )
                                for index in topic.partition_indexes
                            ),
                        )
                        for topic in marker.topics
                    ),
                )
                for marker in request.message.markers
            )
        )
        self._carry_out(self.shard.answered(request, response, self.at))

    def lose_markers(self) -> None:
        """The oldest WriteTxnMarkers request is not answered."""
        lost = self.outgoing.pop(0)
        self._carry_out(self.shard.answered(lost, NoAnswer("lost"), self.at))

    def destinations(self) -> list[NodeId]:
        return [one.to.broker for one in self.outgoing if isinstance(one.to, ToBroker)]
