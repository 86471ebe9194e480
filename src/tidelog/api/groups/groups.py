"""The classic consumer group protocol, and the administration of groups.

    JoinGroup (key 11)  0-9     Heartbeat (12)  0-4     DescribeGroups (15)  0-6
    SyncGroup (14)      0-5     LeaveGroup (13) 0-5     ListGroups (16)      0-5
                                                        DeleteGroups (42)    0-2

The coordinator of a group answers the requests of the group, possibly after a wait. A broker that
does not coordinate the group returns NOT_COORDINATOR. JoinGroup 5 adds static members
(KIP-345). LeaveGroup 3 adds several members per request. ListGroups 4 adds group states (KIP-518),
and ListGroups 5 adds group types (KIP-848). From version 5 on, a SyncGroup without protocol type or
name gets INCONSISTENT_GROUP_PROTOCOL (KIP-559). For an unknown group, DescribeGroups returns
GROUP_ID_NOT_FOUND from version 6 on (KIP-1043). Older versions return a group in the state Dead.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_groups.v2.response import DeletableGroupResult, DeleteGroupsResponse
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.describe_groups.v6.response import DescribedGroup, DescribeGroupsResponse
from kio.schema.list_groups.v5.response import ListedGroup, ListGroupsResponse
from kio.schema.sync_group.v5.response import SyncGroupResponse

from tidelog.api.access.permits import GROUP_OPERATIONS, permitted_operations
from tidelog.api.handler import Handling, Request
from tidelog.api.shares.share_group_offsets import delete_share_state
from tidelog.api.shares.share_groups import is_enabled
from tidelog.api.slicing import PAUSE, Pace
from tidelog.model.effects import Coordinate, CoordinateAll
from tidelog.model.errors import ErrorCode
from tidelog.security.acls import AclResource

_FIRST_WITH_PROTOCOL = 5
_DELETIONS = 50
"""The maximum number of groups deleted in one slice. Each deletion is a write."""


def join_group(request: Request) -> Handling:
    """Joins a group; the response is sent when the rebalance is complete."""
    return _coordinated(request)


def heartbeat(request: Request) -> Handling:
    """Renews a member's session, and reports a rebalance to it."""
    return _coordinated(request)


def leave_group(request: Request) -> Handling:
    """Removes members from a group."""
    return _coordinated(request)


def sync_group(request: Request) -> Handling:
    """Submits the leader's assignments, and returns the member's own assignment."""
    message = request.message
    if request.version >= _FIRST_WITH_PROTOCOL and None in (
        message.protocol_type,
        message.protocol_name,
    ):
        return SyncGroupResponse(
            throttle_time=timedelta(0),
            error_code=ErrorCode.inconsistent_group_protocol,
            assignment=b"",
        )
    return (yield Coordinate(message.group_id, message))


def _coordinated(request: Request) -> Handling:
    return (yield Coordinate(request.message.group_id, request.message))


def list_groups(request: Request) -> Handling:
    """Lists the groups that this broker coordinates."""
    responses: list[ListGroupsResponse] = yield CoordinateAll(request.message)
    groups: list[ListedGroup] = []
    for response in responses:
        # Ignore NOT_COORDINATOR, because the groups have moved to another broker, and that broker
        # lists them. Return any other error, for example while a coordinator loads, so that the
        # client retries.
        if response.error_code not in (ErrorCode.none, ErrorCode.not_coordinator):
            return response
        groups.extend(response.groups)
    return ListGroupsResponse(
        throttle_time=timedelta(0), error_code=ErrorCode.none, groups=tuple(groups)
    )


def describe_groups(request: Request) -> Handling:
    """Describes the state, members and assignments of groups."""
    described: list[DescribedGroup] = []
    wants_operations = request.message.include_authorized_operations
    pace = Pace()
    for group_id in dict.fromkeys(request.message.groups):
        response: Any = yield Coordinate(
            group_id,
            DescribeGroupsRequest(
                groups=(group_id,), include_authorized_operations=wants_operations
            ),
        )
        described += response.groups
        # The time to describe a group grows with the number of its members.
        if pace.is_due(1 + sum(len(group.members) for group in response.groups)):
            yield PAUSE
    if wants_operations:
        described = [_with_operations(request, group) for group in described]
    return DescribeGroupsResponse(throttle_time=timedelta(0), groups=tuple(described))


def _with_operations(request: Request, group: DescribedGroup) -> DescribedGroup:
    if group.error_code is not ErrorCode.none:
        return group
    kind = AclResource.GROUP
    operations = permitted_operations(request, GROUP_OPERATIONS, kind, group.group_id)
    return replace(group, authorized_operations=operations)


def delete_groups(request: Request) -> Handling:
    """Deletes groups without members, and their offsets."""
    results: list[DeletableGroupResult] = []
    pace = Pace(_DELETIONS)
    for group_id in dict.fromkeys(request.message.groups_names):
        error = ErrorCode.none
        if is_enabled(request):
            error = yield from delete_share_state(group_id)
        if error is not ErrorCode.none:
            results.append(DeletableGroupResult(group_id=group_id, error_code=error))
            continue
        response = yield Coordinate(group_id, DeleteGroupsRequest(groups_names=(group_id,)))
        results += response.results
        if pace.is_due():
            yield PAUSE
    return DeleteGroupsResponse(throttle_time=timedelta(0), results=tuple(results))
