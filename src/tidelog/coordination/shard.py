"""The coordinator of the groups in one partition of `__consumer_offsets`, as a state machine.

The leader of the partition coordinates its groups. The node replays the log into a new shard and
calls `loaded`. The node then passes requests and the time to the shard, and executes the effects
that the shard returns. A ticket identifies a request. Every ticket gets exactly one answer.
`abandon` answers the tickets that are still open.
"""

from collections.abc import Callable, Collection
from typing import Any

from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.leave_group.v5.request import LeaveGroupRequest
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.offset_delete.v0.request import OffsetDeleteRequest
from kio.schema.sync_group.v5.request import SyncGroupRequest

from tidelog.config.group_settings import GroupSettings
from tidelog.coordination import loading
from tidelog.coordination.core import ShardCore, WallClock
from tidelog.coordination.effects import AnswerRequest, ClientInfo, GroupEffect
from tidelog.coordination.groups import administration
from tidelog.coordination.groups.classic import joining, leaving, rebalancing, syncing
from tidelog.coordination.groups.classic.group import GroupState
from tidelog.coordination.groups.replies import refusal
from tidelog.coordination.offsets import committing, expiry
from tidelog.coordination.timers import (
    JoinTimeout,
    RetentionCheck,
    SessionTimeout,
    SyncTimeout,
    TimerKey,
    WriteTimeout,
)
from tidelog.model.dice import Dice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, TopicPartition
from tidelog.protocol.messages.canonical import (
    OffsetCommitRequest,
    OffsetFetchRequest,
    canonical_request,
)
from tidelog.protocol.messages.versions import lift


class GroupShard:
    def __init__(
        self,
        settings: GroupSettings,
        dice: Dice,
        wall_clock: WallClock,
        largest_batch: Callable[[], int],
    ) -> None:
        self._core = ShardCore(settings, dice, wall_clock, largest_batch)
        self._loader: loading.Loader | None = loading.Loader(self._core)
        self._refusing = ErrorCode.coordinator_load_in_progress

    # -- Loading and abandoning --------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None, now: Millis) -> None:
        """Apply the next record of the log; raises RecordFormatError if the record is malformed."""
        assert self._loader is not None
        self._core.now = now
        self._loader.replay(key, value)

    def loaded(self, now: Millis) -> list[GroupEffect]:
        """Start to serve requests after the log has been replayed to its end."""
        self._core.now = now
        self._loader = None
        self._refusing = ErrorCode.none
        loading.start(self._core)
        return self._core.take_effects()

    def abandon(self) -> list[GroupEffect]:
        """Refuse all waiting requests with NOT_COORDINATOR, because leadership is lost."""
        self._refusing = ErrorCode.not_coordinator
        core = self._core
        for group in core.groups.values():
            group.transition_to(GroupState.DEAD, core.wall)
            for member in group.members.values():
                rebalancing.refuse_parked(core, member, self._refusing, member.member_id)
        core.groups.clear()
        core.fail_writes(self._refusing)
        core.timers.clear()
        return [effect for effect in core.take_effects() if isinstance(effect, AnswerRequest)]

    # -- Handling events ---------------------------------------------------------------------------

    def handle(
        self, request: Any, client: ClientInfo, version: int, ticket: int, now: Millis
    ) -> list[GroupEffect]:
        """Handle a client's request; `version` is the version in which the client sent it."""
        core = self._core
        core.now = now
        request = lift(request, canonical_request(request.__api_key__))
        if self._refusing is not ErrorCode.none:
            return [AnswerRequest(ticket, refusal(request, self._refusing, version))]
        match request:
            case HeartbeatRequest():
                syncing.heartbeat(core, request, ticket)
            case OffsetCommitRequest():
                committing.commit(core, request, version, ticket)
            case OffsetFetchRequest():
                committing.fetch(core, request, version, ticket)
            case JoinGroupRequest():
                joining.join(core, request, client, version, ticket)
            case SyncGroupRequest():
                syncing.sync(core, request, ticket)
            case LeaveGroupRequest():
                leaving.leave(core, request, ticket)
            case ListGroupsRequest():
                administration.list_groups(core, request, ticket)
            case DescribeGroupsRequest():
                administration.describe_groups(core, request, version, ticket)
            case DeleteGroupsRequest():
                administration.delete_groups(core, request, ticket)
            case OffsetDeleteRequest():
                committing.delete_offsets(core, request, ticket)
            case _:
                raise AssertionError(f"not a request to a group coordinator: {type(request)}")
        return core.take_effects()

    def written(self, write_id: int, error: ErrorCode, now: Millis) -> list[GroupEffect]:
        """Handle the outcome of an `AppendRecords`; successes arrive in the order of the writes.

        After REQUEST_TIMED_OUT or NOT_ENOUGH_REPLICAS_AFTER_APPEND, the records may be in the log,
        and a final outcome may follow. After any other error, the records are not in the log.
        """
        if self._refusing is ErrorCode.not_coordinator:
            return []
        self._core.now = now
        self._core.settle_write(write_id, error)
        return self._core.take_effects()

    def partitions_deleted(
        self, partitions: Collection[TopicPartition], now: Millis
    ) -> list[GroupEffect]:
        """Delete the offsets that were committed for deleted partitions."""
        if self._refusing is not ErrorCode.none:
            return []
        self._core.now = now
        expiry.partitions_deleted(self._core, partitions)
        return self._core.take_effects()

    def next_deadline(self) -> Millis | None:
        """The latest time at which `tick` should be called."""
        return self._core.timers.next_deadline()

    def tick(self, now: Millis) -> list[GroupEffect]:
        """Run the timers that are due."""
        core = self._core
        core.now = now
        while (key := core.timers.pop_due(now)) is not None:
            self._time_out(key)
        return core.take_effects()

    def _time_out(self, key: TimerKey) -> None:
        core = self._core
        match key:
            case RetentionCheck():
                expiry.check(core)
            case WriteTimeout(write_id):
                core.time_out_write(write_id)
            case SessionTimeout(group_id, member_id) if group_id in core.groups:
                rebalancing.session_timed_out(core, core.groups[group_id], member_id)
            case JoinTimeout(group_id) if group_id in core.groups:
                rebalancing.join_timed_out(core, core.groups[group_id])
            case SyncTimeout(group_id) if group_id in core.groups:
                rebalancing.sync_timed_out(core, core.groups[group_id])
