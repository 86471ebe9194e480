"""A shard with groups, and members that behave like real clients.

Every record is encoded and decoded again on its way to `replay`, and a fail-over loads a new shard
from the bytes of the log.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_heartbeat.v1.request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

from tidelog.config.group_settings import ConsumerGroupSettings, GroupSettings
from tidelog.controller.image.image import ClusterImage, PartitionImage, TopicImage
from tidelog.coordination.groups.consumer.group import ConsumerGroup
from tidelog.coordination.groups.kind import GroupRecord
from tidelog.coordination.groups.machine import GroupMachine
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.runtime.decision import (
    ClientInfo,
    CoordinatorRequest,
    Instant,
    LogRecord,
    ProducerIdAndEpoch,
    RecordOrigin,
    TicketAnswer,
)
from tidelog.coordination.runtime.shard import CoordinatorShard, ShardOutput
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, Offset
from tidelog.security.authorizer import AuthorizerSettings

GROUP = "group"
START: Millis = 100_000
REBALANCE_MS = 60_000


class CountingDice:
    def __init__(self) -> None:
        self._count = 0

    def below(self, bound: int) -> int:
        return 0

    def uuid(self) -> UUID:
        self._count += 1
        return UUID(int=self._count)


class CheckedCoordinator(GroupMachine):
    """The coordinator of all groups, which checks that every record survives its encoding."""

    def replay(self, record: GroupRecord, origin: RecordOrigin) -> None:
        assert self.decode(*self.encode(record)) == record
        super().replay(record, origin)


class MemoryLog:
    """A log that commits every append at once, unless it refuses it."""

    largest_batch = 1_048_588

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.refuses_with = ErrorCode.none

    @property
    def high_watermark(self) -> Offset:
        return len(self.records)

    def append(
        self, records: Sequence[LogRecord], producer: ProducerIdAndEpoch | None
    ) -> Offset | ErrorCode:
        if self.refuses_with is not ErrorCode.none:
            return self.refuses_with
        self.records += records
        return len(self.records)

    def await_commit(self, end: Offset) -> None:
        raise AssertionError("everything is committed at once")


@dataclass
class FakeMember:
    """What a client knows: its epoch, and the partitions that it owns."""

    member_id: str
    epoch: int = 0
    owned: dict[UUID, set[int]] = field(default_factory=dict)
    assignment: dict[UUID, set[int]] | None = None
    """The last assignment that the client has received and not yet carried out."""
    instance_id: str | None = None
    topics: tuple[str, ...] = ()
    must_send_all: bool = False
    """Set when a response was lost: the next heartbeat contains everything, as real clients do."""

    def carry_out(self) -> bool:
        """Revoke and add partitions as the last assignment says; whether there was one."""
        if self.assignment is None:
            return False
        self.owned, self.assignment = self.assignment, None
        return True

    def hear(self, response: Any) -> None:
        if response.error_code is not ErrorCode.none:
            return
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.assignment = {
                entry.topic_id: set(entry.partitions)
                for entry in response.assignment.topic_partitions
            }


class ConsumerGroupShard:
    def __init__(
        self,
        settings: ConsumerGroupSettings | None = None,
        authorizer: AuthorizerSettings | None = None,
    ) -> None:
        self.settings = settings or ConsumerGroupSettings(assignment_interval_ms=0)
        self._authorizer = authorizer
        self.dice = CountingDice()
        self.log = MemoryLog()
        self.now = START
        self.image = ClusterImage(offset=1)
        self._tickets = 0
        self._answers: dict[int, Any] = {}
        self._load()

    def _load(self) -> None:
        settings = GroupSettings(consumer=self.settings, initial_rebalance_delay_ms=0)
        self.state = GroupShardState(
            settings, self.dice, lambda: MemoryLog.largest_batch, self._authorizer
        )
        self.machine = CheckedCoordinator(self.state)
        for offset, (key, value) in enumerate(self.log.records):
            record = self.machine.decode(key, value)
            assert record is not None
            self.machine.replay(record, RecordOrigin(offset))
        self.shard = CoordinatorShard(self.machine, self.log, len(self.log.records), 5_000)
        self._take(self.shard.start(self.image, self.at))

    @property
    def at(self) -> Instant:
        return Instant(self.now, self.now, self.now, self.image)

    @property
    def group(self) -> ConsumerGroup:
        group = self.state.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def fail_over(self) -> None:
        """Lose the coordinator; another one loads the log."""
        self._load()

    def ask(self, message: Any, *, version: int = 1, client: str = "client") -> Any:
        self._tickets += 1
        request = CoordinatorRequest(
            message, version, ClientInfo(client, "127.0.0.1"), self._tickets
        )
        self._take(self.shard.handle(request, self.at))
        ticket = self._tickets
        self.run_due()
        return self._answers.pop(ticket, None)

    def late_answer(self, ticket: int) -> Any:
        """The response to a request that was left open; None if there is none yet."""
        return self._answers.pop(ticket, None)

    @property
    def last_ticket(self) -> int:
        return self._tickets

    def run_due(self) -> None:
        while (due := self.shard.next_deadline()) is not None and due <= self.now:
            self._take(self.shard.tick(self.at))

    def wait(self, milliseconds: Millis) -> None:
        """Let time pass, and run each deadline at its time."""
        end = self.now + milliseconds
        while (due := self.shard.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self._take(self.shard.tick(self.at))
        self.now = end

    def _take(self, outputs: Sequence[ShardOutput]) -> None:
        for output in outputs:
            assert isinstance(output, TicketAnswer)
            self._answers[output.ticket] = output.response

    # -- Topics ------------------------------------------------------------------------------------

    def put_topic(self, name: str, partitions: int) -> UUID:
        """Create a topic, or add partitions to it."""
        known = self.image.topics.get(name)
        topic_id = UUID(int=1000 + len(self.image.topics)) if known is None else known.topic_id
        placed = {index: PartitionImage((1,), (1,), 1, 0, 0) for index in range(partitions)}
        topics = {**self.image.topics, name: TopicImage(name, topic_id, placed)}
        self._change(topics)
        return topic_id

    def delete_topic(self, name: str) -> None:
        self._change({key: topic for key, topic in self.image.topics.items() if key != name})

    def _change(self, topics: Mapping[str, TopicImage]) -> None:
        old = self.image
        self.image = replace(
            old,
            topics=topics,
            topic_names={topic.topic_id: name for name, topic in topics.items()},
            offset=old.offset + 1,
        )
        self._take(self.shard.image_changed(old, self.at))

    # -- Members -----------------------------------------------------------------------------------

    def join(self, member: FakeMember, *topics: str, **fields: Any) -> Any:
        member.epoch, member.owned, member.assignment = 0, {}, None
        member.topics = topics
        message = heartbeat_of(
            member,
            rebalance_timeout=timedelta(milliseconds=REBALANCE_MS),
            subscribed_topic_names=topics,
            topic_partitions=(),
            **fields,
        )
        response = self.ask(message, client=member.member_id)
        member.hear(response)
        return response

    def beat(self, member: FakeMember, *, report: bool = False, **fields: Any) -> Any:
        """Send a heartbeat; with `report`, it contains the owned partitions."""
        if report or member.must_send_all:
            fields["topic_partitions"] = reported(member.owned)
        if member.must_send_all:
            fields["rebalance_timeout"] = timedelta(milliseconds=REBALANCE_MS)
            fields["subscribed_topic_names"] = member.topics
            member.must_send_all = False
        response = self.ask(heartbeat_of(member, **fields), client=member.member_id)
        member.hear(response)
        return response

    def leave(self, member: FakeMember, epoch: int = -1) -> Any:
        message = heartbeat_of(member, member_epoch=epoch)
        return self.ask(message, client=member.member_id)

    def describe(self) -> Any:
        message = ConsumerGroupDescribeRequest(
            group_ids=(GROUP,), include_authorized_operations=False
        )
        return self.ask(message).groups[0]

    def settle(self, *members: FakeMember, rounds: int = 20) -> None:
        """Send heartbeats of all members until no assignment changes any more."""
        for _ in range(rounds):
            before = len(self.log.records)
            for member in members:
                self.beat(member, report=member.carry_out())
            if len(self.log.records) == before and not any(m.assignment for m in members):
                return
        raise AssertionError("the group does not settle")


def heartbeat_of(member: FakeMember, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    given = {
        "group_id": GROUP,
        "member_id": member.member_id,
        "member_epoch": member.epoch,
        "instance_id": member.instance_id,
        "topic_partitions": None,
        **fields,
    }
    return ConsumerGroupHeartbeatRequest(**given)


def reported(owned: Mapping[UUID, set[int]]) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(partitions)))
        for topic_id, partitions in sorted(owned.items())
        if partitions
    )
