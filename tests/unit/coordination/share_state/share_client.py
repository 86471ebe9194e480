"""A share coordinator on a fake log, and the requests that other brokers send to it."""

from typing import Any
from uuid import UUID

from kio.schema.delete_share_group_state.v0 import request as delete
from kio.schema.initialize_share_group_state.v0 import request as initialize
from kio.schema.read_share_group_state.v0 import request as read
from kio.schema.read_share_group_state_summary.v1 import request as summary
from kio.schema.write_share_group_state.v1 import request as write
from tests.unit.coordination.runtime.tally import FakeLog

from tidelog.controller.image.image import ClusterImage, PartitionImage, TopicImage
from tidelog.coordination.delivery.stored_state import StateBatch, StateWrite, StoredState
from tidelog.coordination.runtime.decision import (
    ClientInfo,
    CoordinatorRequest,
    Instant,
    RecordOrigin,
    TicketAnswer,
)
from tidelog.coordination.runtime.shard import CoordinatorShard, ShardOutput
from tidelog.coordination.share_state.share_coordinator import ShareCoordinator, SnapshotSettings
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset

TOPIC = UUID(int=7)
SETTINGS = SnapshotSettings(updates_per_snapshot=3, cold_interval_ms=1_000, prune_interval_ms=700)


def image_of(*topics: UUID) -> ClusterImage:
    partitions = {index: PartitionImage((1,), (1,), 1, 0, 0) for index in range(2)}
    named = {f"topic-{id_.int}": TopicImage(f"topic-{id_.int}", id_, partitions) for id_ in topics}
    return ClusterImage(
        topics=named, topic_names={topic.topic_id: name for name, topic in named.items()}
    )


class ShareStateClient:
    """Asks the share coordinator, and commits what it appends."""

    def __init__(self) -> None:
        self.log = FakeLog()
        self.now = 10_000
        self.image = image_of(TOPIC)
        self._tickets = 0
        self._answers: dict[int, Any] = {}
        self.machine = ShareCoordinator(SETTINGS)
        self.shard = CoordinatorShard(self.machine, self.log, 0, 5_000)
        self._take(self.shard.start(self.image, self.at))

    @property
    def at(self) -> Instant:
        return Instant(self.now, self.now, self.now, self.image)

    def fail_over(self) -> None:
        """Another broker loads the committed log."""
        del self.log.records[self.log.high_watermark :]
        self.machine = ShareCoordinator(SETTINGS)
        for offset, (key, value) in enumerate(self.log.records):
            record = self.machine.decode(key, value)
            assert record is not None
            self.machine.replay(record, RecordOrigin(offset))
        self.shard = CoordinatorShard(self.machine, self.log, len(self.log.records), 5_000)
        self._take(self.shard.start(self.image, self.at))

    def wait(self, ms: int) -> None:
        self.now += ms
        self._take(self.shard.tick(self.at))
        self._commit()

    def change_image(self, image: ClusterImage) -> None:
        old, self.image = self.image, image
        self._take(self.shard.image_changed(old, self.at))
        self._commit()

    def initialize(
        self, start: Offset, *, state_epoch: int = 0, topic: UUID | None = TOPIC, partition: int = 0
    ) -> ErrorCode:
        data = initialize.PartitionData(
            partition=partition, state_epoch=state_epoch, start_offset=start
        )
        topics = (initialize.InitializeStateData(topic_id=topic, partitions=(data,)),)
        request = initialize.InitializeShareGroupStateRequest(group_id="g", topics=topics)
        return ErrorCode(self._result(request).error_code)

    def read(self, leader_epoch: int, *, topic: UUID = TOPIC) -> StoredState | ErrorCode:
        data = read.PartitionData(partition=0, leader_epoch=leader_epoch)
        topics = (read.ReadStateData(topic_id=topic, partitions=(data,)),)
        result = self._result(read.ReadShareGroupStateRequest(group_id="g", topics=topics))
        if result.error_code is not ErrorCode.none:
            return ErrorCode(result.error_code)
        batches = tuple(
            StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
            for b in result.state_batches
        )
        return StoredState(result.start_offset, result.state_epoch, batches)

    def write(self, change: StateWrite) -> ErrorCode:
        return ErrorCode(self._result(self._write_request(change)).error_code)

    def write_uncommitted(self, change: StateWrite, times: int) -> None:
        """Write without a commit."""
        for _ in range(times):
            self._tickets += 1
            message, client = self._write_request(change), ClientInfo("broker-1", "host")
            request = CoordinatorRequest(message, 0, client, self._tickets)
            self._take(self.shard.handle(request, self.at))

    def _write_request(self, change: StateWrite) -> Any:
        data = write.PartitionData(
            partition=0,
            state_epoch=change.state_epoch,
            leader_epoch=change.leader_epoch,
            start_offset=change.start_offset,
            delivery_complete_count=change.delivery_complete_count,
            state_batches=tuple(
                write.StateBatch(
                    first_offset=b.first,
                    last_offset=b.last,
                    delivery_state=b.state,
                    delivery_count=b.delivery_count,
                )
                for b in change.batches
            ),
        )
        topics = (write.WriteStateData(topic_id=TOPIC, partitions=(data,)),)
        return write.WriteShareGroupStateRequest(group_id="g", topics=topics)

    def delete(self) -> ErrorCode:
        topics = (
            delete.DeleteStateData(topic_id=TOPIC, partitions=(delete.PartitionData(partition=0),)),
        )
        request = delete.DeleteShareGroupStateRequest(group_id="g", topics=topics)
        return ErrorCode(self._result(request).error_code)

    def summary(self) -> tuple[int, int, int, int]:
        """The state epoch, leader epoch, start offset and delivery complete count."""
        data = summary.PartitionData(partition=0, leader_epoch=0)
        topics = (summary.ReadStateSummaryData(topic_id=TOPIC, partitions=(data,)),)
        found = self._result(summary.ReadShareGroupStateSummaryRequest(group_id="g", topics=topics))
        assert found.error_code is ErrorCode.none
        return (
            found.state_epoch,
            found.leader_epoch,
            found.start_offset,
            found.delivery_complete_count,
        )

    def _result(self, message: Any) -> Any:
        self._tickets += 1
        request = CoordinatorRequest(message, 0, ClientInfo("broker-1", "host"), self._tickets)
        self._take(self.shard.handle(request, self.at))
        self._commit()
        return self._answers.pop(self._tickets).results[0].partitions[0]

    def _commit(self) -> None:
        self.log.high_watermark = len(self.log.records)
        self._take(self.shard.committed(self.at))

    def _take(self, outputs: list[ShardOutput]) -> None:
        for output in outputs:
            assert isinstance(output, TicketAnswer)
            self._answers[output.ticket] = output.response
