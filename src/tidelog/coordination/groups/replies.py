"""The responses of the group APIs, including the error response to each request."""

from functools import singledispatch
from typing import Any

from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_groups.v2.response import DeletableGroupResult, DeleteGroupsResponse
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.describe_groups.v6.response import DescribedGroup, DescribeGroupsResponse
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse, JoinGroupResponseMember
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.leave_group.v5.response import LeaveGroupResponse, MemberResponse
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListGroupsResponse
from kio.schema.offset_delete.v0.request import OffsetDeleteRequest
from kio.schema.offset_delete.v0.response import OffsetDeleteResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.sync_group.v5.response import SyncGroupResponse

from tidelog.coordination.groups.classic.group import ClassicGroup
from tidelog.coordination.groups.classic.member import ClassicMember
from tidelog.coordination.offsets.offset_messages import NO_THROTTLE, refused_commit, refused_fetch
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.canonical import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

UNKNOWN_MEMBER_ID = ""


def joined(
    group: ClassicGroup,
    member_id: str,
    *,
    leader_id: str | None,
    with_members: bool = False,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    """The response to a member that has joined the current generation."""
    members = group.members.values() if with_members else ()
    return JoinGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=tuple(_as_join_member(group, member) for member in members),
    )


def _as_join_member(group: ClassicGroup, member: ClassicMember) -> JoinGroupResponseMember:
    return JoinGroupResponseMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        metadata=member.metadata_for(group.protocol_name),
    )


def not_joined(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=error,
        protocol_name=None,
        leader="",
        member_id=member_id,
        members=(),
    )


def synced(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    """The response with the member's assignment in the current generation."""
    return SyncGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def not_synced(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(throttle_time=NO_THROTTLE, error_code=error, assignment=b"")


def heartbeat(error: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(throttle_time=NO_THROTTLE, error_code=error)


def left(members: tuple[MemberResponse, ...]) -> LeaveGroupResponse:
    return LeaveGroupResponse(throttle_time=NO_THROTTLE, error_code=ErrorCode.none, members=members)


def not_left(error: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(throttle_time=NO_THROTTLE, error_code=error, members=())


def leave_result(identity: MemberIdentity, error: ErrorCode) -> MemberResponse:
    return MemberResponse(
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        error_code=error,
    )


def not_described(
    group_id: str, error: ErrorCode, message: str | None = None, state: str = ""
) -> DescribedGroup:
    return DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=(),
    )


@singledispatch
def refusal(request: Any, error: ErrorCode, version: int) -> Any:
    """The response to a request that this coordinator cannot handle, for example while it loads."""
    raise AssertionError(f"not a request to a group coordinator: {type(request)}")


@refusal.register
def _(request: JoinGroupRequest, error: ErrorCode, version: int) -> JoinGroupResponse:
    return not_joined(error, request.member_id)


@refusal.register
def _(request: SyncGroupRequest, error: ErrorCode, version: int) -> SyncGroupResponse:
    return not_synced(error)


@refusal.register
def _(request: HeartbeatRequest, error: ErrorCode, version: int) -> HeartbeatResponse:
    # The group that is loading may contain the member, so Kafka sends no error.
    loading = error is ErrorCode.coordinator_load_in_progress
    return heartbeat(ErrorCode.none if loading else error)


@refusal.register
def _(request: LeaveGroupRequest, error: ErrorCode, version: int) -> LeaveGroupResponse:
    return not_left(error)


@refusal.register
def _(request: OffsetCommitRequest, error: ErrorCode, version: int) -> OffsetCommitResponse:
    return refused_commit(request, error)


@refusal.register
def _(request: OffsetFetchRequest, error: ErrorCode, version: int) -> OffsetFetchResponse:
    return refused_fetch(request, error, version)


@refusal.register
def _(request: ListGroupsRequest, error: ErrorCode, version: int) -> ListGroupsResponse:
    return ListGroupsResponse(throttle_time=NO_THROTTLE, error_code=error, groups=())


@refusal.register
def _(request: DescribeGroupsRequest, error: ErrorCode, version: int) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(not_described(group_id, error) for group_id in request.groups),
    )


@refusal.register
def _(request: DeleteGroupsRequest, error: ErrorCode, version: int) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            DeletableGroupResult(group_id=group_id, error_code=error)
            for group_id in request.groups_names
        ),
    )


@refusal.register
def _(request: OffsetDeleteRequest, error: ErrorCode, version: int) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error, throttle_time=NO_THROTTLE, topics=())
