"""ListGroups (key 16), DescribeGroups (key 15) and DeleteGroups (key 42).

Each function handles the groups of one `__consumer_offsets` partition. The API layer queries every
coordinator and merges the responses.
"""

from typing import Any

from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_groups.v2.response import DeletableGroupResult, DeleteGroupsResponse
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.describe_groups.v6.response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListedGroup, ListGroupsResponse

from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic.group import ClassicGroup, GroupState
from tidelog.coordination.groups.kind import GroupDecision, GroupKind, GroupRecord
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.offsets.offset_messages import NO_THROTTLE
from tidelog.coordination.runtime.decision import CoordinatorRequest, Instant, RecordOrigin
from tidelog.model.errors import ErrorCode

_GROUP_ID_NOT_FOUND_SINCE = 6


class GroupAdministration(GroupKind):
    """The requests that concern groups of every kind. This part has no state and no records."""

    type_name = "administration"
    messages = frozenset({ListGroupsRequest, DescribeGroupsRequest, DeleteGroupsRequest})
    keys = ()

    def __init__(self, shard: GroupShardState) -> None:
        self._shard = shard

    def decide(self, request: CoordinatorRequest, at: Instant) -> GroupDecision:
        match request.message:
            case ListGroupsRequest() as message:
                return _list_groups(self._shard, message)
            case DescribeGroupsRequest() as message:
                return _describe_groups(self._shard, message, request.version)
            case DeleteGroupsRequest() as message:
                return _delete_groups(self._shard, message)
        raise AssertionError(request)

    def replay(self, key: Any, value: Any | None, origin: RecordOrigin) -> None:
        raise AssertionError(key)


# -- ListGroups ------------------------------------------------------------------------------------


def _list_groups(shard: GroupShardState, request: ListGroupsRequest) -> GroupDecision:
    states = {name.lower() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    listed = tuple(
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.listed_protocol_type,
            group_state=group.state_name,
            group_type=group.type_name,
        )
        for group in shard.groups.values()
        if (not states or group.state_name.lower() in states)
        and (not types or group.type_name in types)
    )
    return GroupDecision(
        response=ListGroupsResponse(
            throttle_time=NO_THROTTLE, error_code=ErrorCode.none, groups=listed
        )
    )


# -- DescribeGroups --------------------------------------------------------------------------------


def _describe_groups(
    shard: GroupShardState, request: DescribeGroupsRequest, version: int
) -> GroupDecision:
    described = tuple(_describe(shard, group_id, version) for group_id in request.groups)
    return GroupDecision(
        response=DescribeGroupsResponse(throttle_time=NO_THROTTLE, groups=described)
    )


def _describe(shard: GroupShardState, group_id: str, version: int) -> DescribedGroup:
    group = shard.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        dead = GroupState.DEAD.value
        if version < _GROUP_ID_NOT_FOUND_SINCE:
            return replies.not_described(group_id, ErrorCode.none, state=dead)
        message = f"Group {group_id} {'not found' if group is None else 'is not a classic group'}."
        return replies.not_described(group_id, ErrorCode.group_id_not_found, message, dead)
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        error_code=ErrorCode.none,
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=_described_members(group),
    )


def _described_members(group: ClassicGroup) -> tuple[DescribedGroupMember, ...]:
    """The descriptions of the members. As in Kafka, only a stable group shows subscriptions."""
    stable = group.state is GroupState.STABLE
    return tuple(
        DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata_for(group.protocol_name) if stable else b"",
            member_assignment=member.assignment,
        )
        for member in group.members.values()
    )


# -- DeleteGroups ----------------------------------------------------------------------------------


def _delete_groups(shard: GroupShardState, request: DeleteGroupsRequest) -> GroupDecision:
    """Remove groups and their offsets; the tombstones of the offsets are written first."""
    records: list[GroupRecord] = []
    results: list[DeletableGroupResult] = []
    for group_id in request.groups_names:
        group = shard.groups.get(group_id)
        error = ErrorCode.group_id_not_found if group is None else group.check_delete()
        if group is not None and error is ErrorCode.none:
            records += ((key, None) for key, _ in shard.offsets.of_group(group_id))
            records += ((key, None) for key in shard.offsets.pending.of_group(group_id))
            records += group.tombstones()
        results.append(DeletableGroupResult(group_id=group_id, error_code=error))
    response = DeleteGroupsResponse(throttle_time=NO_THROTTLE, results=tuple(results))
    return GroupDecision(records=tuple(records), response=response, is_atomic=False)
