"""A group coordinator under test, with functions that send requests to it.

The class keeps all answers and writes. It also checks that every ticket (the number of a request)
is answered at most once.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.offset_commit.v10.request import OffsetCommitRequestPartition
from kio.schema.offset_delete.v0.request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment

from tidelog.config.group_settings import GroupSettings
from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.groups.machine import GroupMachine
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.records import (
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)
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
from tidelog.model.ids import Offset
from tidelog.node.clock import Clock
from tidelog.protocol.messages.canonical import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

CLIENT = ClientInfo("client", "127.0.0.1")
SESSION_MS = 10_000
REBALANCE_MS = 60_000
SETTINGS = GroupSettings()
GROUP = "group"
LARGEST_BATCH = 1_048_588


class CountingDice:
    """Ids 1, 2, 3, ..., which are easy to read."""

    def __init__(self) -> None:
        self._count = 0

    def below(self, bound: int) -> int:
        return 0

    def uuid(self) -> UUID:
        self._count += 1
        return UUID(int=self._count)


def member_id(number: int, name: str = "client") -> str:
    """The n-th member id that the shard gives out."""
    return f"{name}-{UUID(int=number)}"


def subscription(*topics: str) -> bytes:
    """The subscription metadata of a consumer, version 0."""
    out = b"\0\0" + len(topics).to_bytes(4, "big")
    for topic in topics:
        encoded = topic.encode()
        out += len(encoded).to_bytes(2, "big") + encoded
    return out + b"\xff\xff\xff\xff"


def joining(
    member: str = "",
    *,
    group: str = GROUP,
    instance: str | None = None,
    protocols: Sequence[tuple[str, bytes]] = (("range", b"meta"),),
    protocol_type: str = "consumer",
    session_ms: int = SESSION_MS,
    rebalance_ms: int = REBALANCE_MS,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout=timedelta(milliseconds=session_ms),
        rebalance_timeout=timedelta(milliseconds=rebalance_ms),
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=tuple(JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols),
    )


def syncing(
    member: str,
    generation: int,
    assignments: dict[str, bytes] | None = None,
    *,
    group: str = GROUP,
    instance: str | None = None,
    protocol_type: str | None = "consumer",
    protocol_name: str | None = "range",
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=to, assignment=what)
            for to, what in (assignments or {}).items()
        ),
    )


def beating(
    member: str, generation: int, *, group: str = GROUP, instance: str | None = None
) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
    )


class LogUnderTest:
    """The partition of a coordinator under test."""

    def __init__(self, records: Sequence[LogRecord]) -> None:
        self.records = list(records)
        """The committed records."""
        self.unwritten: list[tuple[Offset, tuple[LogRecord, ...]]] = []
        """The batches that are appended but not committed, each with the offset after it."""
        self.end: Offset = len(records)
        self.high_watermark: Offset = len(records)
        self.largest_batch = LARGEST_BATCH
        self.refuses_with = ErrorCode.none

    def append(
        self, records: Sequence[LogRecord], producer: ProducerIdAndEpoch | None
    ) -> Offset | ErrorCode:
        if self.refuses_with is not ErrorCode.none:
            return self.refuses_with
        self.end += len(records)
        self.unwritten.append((self.end, tuple(records)))
        return self.end

    def await_commit(self, end: Offset) -> None:
        """Commits are reported by the test."""


class CoordinatorUnderTest:
    """A coordinator; its writes are committed at once, unless `writes_succeed` is False."""

    def __init__(
        self,
        settings: GroupSettings = SETTINGS,
        *,
        writes_succeed: bool = True,
        predecessor: "CoordinatorUnderTest | None" = None,
    ) -> None:
        self.settings = settings
        self.dice = CountingDice() if predecessor is None else predecessor.dice
        self.partition = LogUnderTest(() if predecessor is None else predecessor.log)
        self.wall_clock = Clock(0)
        self.now = 1_000_000 if predecessor is None else predecessor.now
        self.image = ClusterImage() if predecessor is None else predecessor.image
        self.state_of_shard = GroupShardState(
            settings, self.dice, lambda: self.partition.largest_batch
        )
        self.machine = GroupMachine(self.state_of_shard)
        for offset, (key, value) in enumerate(self.log):
            record = self.machine.decode(key, value)
            if record is not None:
                self.machine.replay(record, RecordOrigin(offset))
        self.shard = CoordinatorShard(
            self.machine, self.partition, self.partition.end, settings.offsets_commit_timeout_ms
        )
        self.writes_succeed = writes_succeed
        self.answers: dict[int, Any] = {}
        self._tickets = 0
        self.carry_out(self.shard.start(self.image, self.at))

    @property
    def log(self) -> list[LogRecord]:
        """The committed records."""
        return self.partition.records

    @property
    def unwritten(self) -> list[tuple[Offset, tuple[LogRecord, ...]]]:
        return self.partition.unwritten

    @property
    def at(self) -> Instant:
        clock = self.wall_clock
        return Instant(self.now, self.now + clock.ahead_ms, self.now + clock.settled_ms, self.image)

    # -- Actions of a node -------------------------------------------------------------------------

    def ask(self, request: Any, version: int | None = None, client: ClientInfo = CLIENT) -> int:
        """Send a request, and return its ticket."""
        self._tickets += 1
        version = request.__version__ if version is None else version
        asked = CoordinatorRequest(request, version, client, self._tickets)
        self.carry_out(self.shard.handle(asked, self.at))
        return asked.ticket

    def carry_out(self, outputs: Sequence[ShardOutput]) -> None:
        for output in outputs:
            assert isinstance(output, TicketAnswer)
            assert output.ticket not in self.answers, "answered twice"
            self.answers[output.ticket] = output.response
        if self.writes_succeed:
            self.write_all()

    def write_all(self) -> None:
        while self.unwritten:
            self.commit_next()

    def commit_next(self) -> None:
        """Commit the earliest batch that is not committed."""
        self.partition.high_watermark, records = self.unwritten.pop(0)
        self.partition.records += records
        self.carry_out(self.shard.committed(self.at))

    def refuse_writes(self, error: ErrorCode) -> None:
        """Make the log refuse every append from now on; `ErrorCode.none` ends this."""
        self.partition.refuses_with = error

    def fail_to_commit(self, error: ErrorCode = ErrorCode.not_enough_replicas_after_append) -> None:
        """Report that the appended records cannot be committed at present."""
        self.carry_out(self.shard.not_committed(error, self.at))

    def resign(self) -> None:
        self.writes_succeed = False
        self.carry_out(self.shard.resign())

    def image_changed(self, image: ClusterImage) -> None:
        old, self.image = self.image, image
        self.carry_out(self.shard.image_changed(old, self.at))

    def advance(self, milliseconds: int) -> None:
        """Let time pass, and tick at every deadline, as a node does."""
        end = self.now + milliseconds
        while (due := self.shard.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.carry_out(self.shard.tick(self.at))
        self.now = end

    def successor(self, settings: GroupSettings | None = None) -> "CoordinatorUnderTest":
        """A new coordinator that has loaded this coordinator's log."""
        return CoordinatorUnderTest(settings or self.settings, predecessor=self)

    # -- Requests of members -----------------------------------------------------------------------

    def join(self, member: str = "", *, version: int = 9, **about: Any) -> int:
        return self.ask(joining(member, **about), version)

    def enter(self, **about: Any) -> tuple[str, int]:
        """Ask for a member id and join with it; return the id and the ticket of the join."""
        required = self.answers[self.join(**about)]
        assert required.error_code is ErrorCode.member_id_required
        return required.member_id, self.join(required.member_id, **about)

    def sync(self, member: str, generation: int, *assignments: Any, **about: Any) -> int:
        return self.ask(syncing(member, generation, *assignments, **about))

    def heartbeat(self, member: str, generation: int, **about: Any) -> ErrorCode:
        error: ErrorCode = self.answers[self.ask(beating(member, generation, **about))].error_code
        return error

    def leave(self, *members: str | tuple[str, str | None], group: str = GROUP) -> int:
        """Remove members, each given by its id, or by its id and its instance id."""
        identities = [(who, None) if isinstance(who, str) else who for who in members]
        request = LeaveGroupRequest(
            group_id=group,
            members=tuple(
                MemberIdentity(member_id=id_, group_instance_id=instance)
                for id_, instance in identities
            ),
        )
        return self.ask(request)

    def stable_group(self, count: int = 1, **about: Any) -> list[str]:
        """Make a group with this many members, all with an assignment."""
        entered = [self.enter(**about) for _ in range(count)]
        members = [member for member, _ in entered]
        self.advance(2 * self.settings.initial_rebalance_delay_ms)
        generation = self.answers[entered[0][1]].generation_id
        group = about.get("group", GROUP)
        names = {"protocol_type": about.get("protocol_type", "consumer")}
        for member in reversed(members):
            given = {m: f"to {m}".encode() for m in members} if member is members[0] else {}
            ticket = self.sync(member, generation, given, group=group, **names)
        assert self.answers[ticket].error_code is ErrorCode.none
        return members

    # -- Requests about offsets --------------------------------------------------------------------

    def commit(
        self,
        offsets: dict[tuple[str, int], int],
        *,
        member: str = "",
        generation: int = -1,
        group: str = GROUP,
        instance: str | None = None,
        metadata: str | None = "",
        topic_id: UUID | None = None,
        retention_ms: int = -1,
        version: int = 10,
    ) -> int:
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            group_instance_id=instance,
            retention_time=timedelta(milliseconds=retention_ms),
            topics=tuple(
                OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=topic_id,
                    partitions=(
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_leader_epoch=3,
                            committed_metadata=metadata,
                        ),
                    ),
                )
                for (topic, partition), offset in offsets.items()
            ),
        )
        return self.ask(request, version)

    def commit_error(self, ticket: int) -> ErrorCode:
        """The error of a commit of one partition."""
        error: ErrorCode = self.answers[ticket].topics[0].partitions[0].error_code
        return error

    def fetch(
        self,
        *partitions: tuple[str, int],
        group: str = GROUP,
        require_stable: bool = False,
        topic_id: UUID | None = None,
        version: int = 10,
    ) -> int:
        """Fetch the offsets of these partitions, or of the whole group if none are given."""
        topics = tuple(
            OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=(partition,))
            for topic, partition in partitions
        )
        asked = OffsetFetchRequestGroup(group_id=group, topics=topics or None)
        return self.ask(OffsetFetchRequest(groups=(asked,), require_stable=require_stable), version)

    def committed(self, group: str = GROUP) -> dict[tuple[str, int], int]:
        """All committed offsets of a group, as a consumer reads them."""
        (found,) = self.answers[self.fetch(group=group)].groups
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in found.topics
            for partition in topic.partitions
        }

    def delete_offsets(self, *partitions: tuple[str, int], group: str = GROUP) -> int:
        request = OffsetDeleteRequest(
            group_id=group,
            topics=tuple(
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=(OffsetDeleteRequestPartition(partition_index=partition),),
                )
                for topic, partition in partitions
            ),
        )
        return self.ask(request)

    # -- Requests of administrators ----------------------------------------------------------------

    def describe(self, group: str = GROUP, version: int = 6) -> Any:
        request = DescribeGroupsRequest(groups=(group,), include_authorized_operations=False)
        (described,) = self.answers[self.ask(request, version)].groups
        return described

    def state(self, group: str = GROUP) -> str:
        """The state of a group, also if it depends on records that are not committed."""
        found = self.state_of_shard.groups.get(group)
        return "Dead" if found is None else found.state_name

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[str]:
        request = ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))
        return [listed.group_id for listed in self.answers[self.ask(request)].groups]

    def delete_groups(self, *groups: str) -> int:
        return self.ask(DeleteGroupsRequest(groups_names=groups))

    # -- The records in the log --------------------------------------------------------------------

    def written_groups(self, group: str = GROUP) -> Iterator[GroupMetadataValue | None]:
        """The written records of a group, in order; None for a tombstone."""
        for key_bytes, value_bytes in self.log:
            key = decode_key(key_bytes)
            assert key is not None
            if not isinstance(key, OffsetCommitKey) and key.group == group:
                value = None if value_bytes is None else decode_value(key, value_bytes)
                assert value is None or isinstance(value, GroupMetadataValue)
                yield value

    def written_offsets(self) -> Iterator[tuple[OffsetCommitKey, OffsetCommitValue | None]]:
        for key_bytes, value_bytes in self.log:
            key = decode_key(key_bytes)
            if isinstance(key, OffsetCommitKey):
                value = None if value_bytes is None else decode_value(key, value_bytes)
                assert value is None or isinstance(value, OffsetCommitValue)
                yield key, value
