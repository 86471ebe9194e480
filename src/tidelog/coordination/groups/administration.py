"""ListGroups (key 16), DescribeGroups (key 15) and DeleteGroups (key 42).

Each function handles the groups of one `__consumer_offsets` partition. The API layer queries every
coordinator and merges the responses.
"""

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

from tidelog.coordination.core import Change, ShardCore
from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic.group import ClassicGroup, GroupState
from tidelog.coordination.offsets.offset_messages import NO_THROTTLE
from tidelog.coordination.records import GroupMetadataKey
from tidelog.model.errors import ErrorCode

GROUP_TYPE = "classic"

_GROUP_ID_NOT_FOUND_SINCE = 6

# -- ListGroups ------------------------------------------------------------------------------------


def list_groups(core: ShardCore, request: ListGroupsRequest, ticket: int) -> None:
    states = {name.lower() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    listed = tuple(
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=GROUP_TYPE,
        )
        for group in core.groups.values()
        if (not states or group.state.value.lower() in states)
        and (not types or GROUP_TYPE in types)
    )
    response = ListGroupsResponse(
        throttle_time=NO_THROTTLE, error_code=ErrorCode.none, groups=listed
    )
    core.answer(ticket, response)


# -- DescribeGroups --------------------------------------------------------------------------------


def describe_groups(
    core: ShardCore, request: DescribeGroupsRequest, version: int, ticket: int
) -> None:
    described = tuple(_describe(core, group_id, version) for group_id in request.groups)
    response = DescribeGroupsResponse(throttle_time=NO_THROTTLE, groups=described)
    core.answer(ticket, response)


def _describe(core: ShardCore, group_id: str, version: int) -> DescribedGroup:
    group = core.groups.get(group_id)
    if group is None:
        dead = GroupState.DEAD.value
        if version < _GROUP_ID_NOT_FOUND_SINCE:
            return replies.not_described(group_id, ErrorCode.none, state=dead)
        message = f"Group {group_id} not found."
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


def delete_groups(core: ShardCore, request: DeleteGroupsRequest, ticket: int) -> None:
    """Remove empty groups and their offsets; the tombstones of the offsets are written first."""
    changes: list[Change] = []
    removed: dict[str, ClassicGroup] = {}
    results: list[DeletableGroupResult] = []
    for group_id in request.groups_names:
        group = core.groups.get(group_id)
        error = _check_delete(group)
        if error is ErrorCode.none:
            assert group is not None
            changes += group_tombstones(core, group_id)
            removed[group_id] = core.groups.pop(group_id)
        results.append(DeletableGroupResult(group_id=group_id, error_code=error))

    def settled(error: ErrorCode) -> None:
        if error is not ErrorCode.none:
            core.answer(ticket, replies.refusal(request, error, 0))
            return
        response = DeleteGroupsResponse(throttle_time=NO_THROTTLE, results=tuple(results))
        core.answer(ticket, response)

    if changes:
        core.write_parts(changes, settled, undo=lambda part: restore(core, removed, part))
    else:
        settled(ErrorCode.none)


def _check_delete(group: ClassicGroup | None) -> ErrorCode:
    if group is None:
        return ErrorCode.group_id_not_found
    if group.state is not GroupState.EMPTY:
        return ErrorCode.non_empty_group
    return ErrorCode.none


def group_tombstones(core: ShardCore, group_id: str) -> list[Change]:
    """Tombstones for a group and for its offsets, both committed and in flight."""
    keys = {key: None for key, _ in core.offsets.of_group(group_id)}
    keys.update(core.offsets_in_flight(group_id))
    changes: list[Change] = [(key, None) for key in keys]
    changes.append((GroupMetadataKey(group_id), None))
    return changes


def restore(core: ShardCore, removed: dict[str, ClassicGroup], unwritten: list[Change]) -> None:
    """Restore groups whose removal could not be written, unless they have been created again.

    A group is also restored if its own tombstone was written, but some tombstones of its offsets
    were not.
    """
    for key, _ in unwritten:
        if isinstance(key, GroupMetadataKey):
            core.groups.setdefault(key.group, removed[key.group])
        elif core.offsets.get(key.group, key.topic, key.partition) is not None:
            core.ensure_group(key.group)
