"""A shard of share groups under the coordinator runtime, with its members and a fake log."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from tests.unit.coordination.runtime.tally import FakeLog

from tidelog.config.group_settings import ShareGroupSettings
from tidelog.controller.image.image import ClusterImage, PartitionImage, TopicImage
from tidelog.coordination.groups.kind import GroupRecord
from tidelog.coordination.groups.share.share_group_records import KEY_SCHEMAS, VALUE_SCHEMAS
from tidelog.coordination.groups.share.share_groups import ShareGroups
from tidelog.coordination.runtime.decision import (
    ClientInfo,
    CoordinatorDecision,
    CoordinatorRequest,
    Instant,
    LogRecord,
    NoAnswer,
    OutgoingRequest,
    RecordOrigin,
    TicketAnswer,
)
from tidelog.coordination.runtime.machine import CoordinatorMachine
from tidelog.coordination.runtime.shard import CoordinatorShard, ShardOutput
from tidelog.coordination.share_state import share_messages
from tidelog.coordination.share_state.share_records import SHARE_STATE_TOPIC
from tidelog.model.errors import ErrorCode


def topic_id(name: str) -> UUID:
    return UUID(int=sum(name.encode()) + 1000)


def image_of(**counts: int) -> ClusterImage:
    """An image with these topics, and with the topic of the share coordinator."""
    counts[SHARE_STATE_TOPIC] = 3
    topics = {}
    for name, count in counts.items():
        partitions = {index: PartitionImage((1,), (1,), 1, 0, 0) for index in range(count)}
        topics[name] = TopicImage(name, topic_id(name), partitions)
    return ClusterImage(
        topics=topics, topic_names={topic.topic_id: name for name, topic in topics.items()}
    )


def simple_hash(names: Iterable[str], image: ClusterImage) -> int:
    return hash(
        tuple((name, len(image.topics[name].partitions)) for name in names if name in image.topics)
    )


class OneKind(CoordinatorMachine[GroupRecord]):
    """A group coordinator that knows share groups only."""

    def __init__(self) -> None:
        self.directory: dict[str, Any] = {}
        settings = ShareGroupSettings(assignment_interval_ms=0, max_size=5)
        self.kind = ShareGroups(self.directory, settings, simple_hash)

    def encode(self, record: GroupRecord) -> LogRecord:
        key, value = record
        number, schema = next(
            (number, schema)
            for number, (entity, schema) in KEY_SCHEMAS.items()
            if isinstance(key, entity)
        )
        encoded = None
        if value is not None:
            encoded = VALUE_SCHEMAS[type(key)].encode(value, prefix=0, version=0)
        return schema.encode(key, prefix=number, version=0), encoded

    def decode(self, key: bytes, value: bytes | None) -> GroupRecord:
        _, schema = KEY_SCHEMAS[int.from_bytes(key[:2], "big")]
        decoded = schema.decode(key, 2, version=0)
        if value is None:
            return decoded, None
        return decoded, VALUE_SCHEMAS[type(decoded)].decode(value, 2, version=0)

    def replay(self, record: GroupRecord, origin: RecordOrigin) -> None:
        # The bytes in the log hold the whole state.
        self.kind.replay(*self.decode(*self.encode(record)), origin)

    def apply(self, change: Any) -> None:
        self.kind.apply(change)

    def decide(self, request: CoordinatorRequest, at: Instant) -> CoordinatorDecision[GroupRecord]:
        return self.kind.decide(request, at)

    def refuse(self, request: CoordinatorRequest, error: ErrorCode) -> Any:
        return error

    def loaded(self, at: Instant) -> Any:
        return self.kind.loaded(at)

    def answered(self, reply_to: Any, answer: Any, at: Instant) -> Any:
        return self.kind.answered(reply_to, answer, at)

    def image_changed(self, old: ClusterImage, at: Instant) -> Any:
        return self.kind.image_changed(old, at)

    def tick(self, at: Instant) -> Any:
        return self.kind.tick(at)

    def next_deadline(self) -> int | None:
        return self.kind.next_deadline()


class ShareGroupShard:
    """Share groups and their clients; the share coordinator answers if `initializes` is true."""

    def __init__(self, image: ClusterImage, *, initializes: bool = True) -> None:
        self.image = image
        self.initializes = initializes
        self.now = 1_000
        self.log = FakeLog()
        self.log.largest_batch = 1 << 20
        self._tickets = 0
        self._answers: dict[int, Any] = {}
        self.asked: list[OutgoingRequest] = []
        self._start([])

    def _start(self, records: list[LogRecord]) -> None:
        self.machine = OneKind()
        for offset, (key, value) in enumerate(records):
            self.machine.replay(self.machine.decode(key, value), RecordOrigin(offset))
        self.shard = CoordinatorShard(self.machine, self.log, len(records), 5_000)
        self._take(self.shard.start(self.image, self.at))

    @property
    def at(self) -> Instant:
        return Instant(self.now, self.now, self.now, self.image)

    def fail_over(self) -> None:
        self._start(self.log.records)

    def wait(self, ms: int) -> None:
        self.now += ms
        self._take(self.shard.tick(self.at))
        self._commit()

    def change_image(self, image: ClusterImage) -> None:
        old, self.image = self.image, image
        self._take(self.shard.image_changed(old, self.at))
        self._commit()

    def heartbeat(
        self,
        member: str,
        epoch: int,
        topics: tuple[str, ...] | None = None,
        *,
        group: str = "g",
        rack: str | None = None,
    ) -> Any:
        return self.ask(
            ShareGroupHeartbeatRequest(
                group_id=group,
                member_id=member,
                member_epoch=epoch,
                rack_id=rack,
                subscribed_topic_names=topics,
            )
        )

    def join(self, member: str, *topics: str) -> int:
        """Join, and heartbeat until the member has its assignment; returns the member's epoch."""
        epoch = self.heartbeat(member, 0, topics).member_epoch
        return int(self.heartbeat(member, epoch).member_epoch)

    def assigned(self, member: str) -> list[tuple[str, int]]:
        """The assignment of a member in ShareGroupDescribe."""
        (group,) = self.describe("g")
        (found,) = (one for one in group.members if one.member_id == member)
        return sorted(
            (topic.topic_name, index)
            for topic in found.assignment.topic_partitions
            for index in topic.partitions
        )

    def describe(self, *groups: str) -> Any:
        request = ShareGroupDescribeRequest(group_ids=groups, include_authorized_operations=False)
        return self.ask(request).groups

    def ask(self, message: Any) -> Any:
        self._tickets += 1
        request = CoordinatorRequest(message, 1, ClientInfo("client", "host"), self._tickets)
        self._take(self.shard.handle(request, self.at))
        self._commit()
        return self._answers.pop(self._tickets)

    def _commit(self) -> None:
        self.log.high_watermark = len(self.log.records)
        self._take(self.shard.committed(self.at))

    def _take(self, outputs: list[ShardOutput]) -> None:
        for output in outputs:
            if isinstance(output, TicketAnswer):
                self._answers[output.ticket] = output.response
            else:
                self.asked.append(output)
                self._answer(output)

    def _answer(self, request: OutgoingRequest) -> None:
        answer: Any = NoAnswer("the share coordinator is away")
        if self.initializes:
            parts = [
                share_messages.done(part)
                for part in share_messages.single_partitions(request.message)
            ]
            answer = share_messages.joined(parts, share_messages.empty_response(request.message))
        self._take(self.shard.answered(request, answer, self.at))
        self._commit()
