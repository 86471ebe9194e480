"""The responses of the group APIs, including the error response to each request."""

from functools import singledispatch
from typing import Any

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_describe.v1.response import ConsumerGroupDescribeResponse
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse
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
from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.share_group_describe.v1.response import ShareGroupDescribeResponse
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.sync_group.v5.response import SyncGroupResponse
from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequest
from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponse

from tidelog.coordination.groups.classic.group import ClassicGroup
from tidelog.coordination.groups.classic.member import ClassicMember
from tidelog.coordination.groups.consumer.describing import (
    not_described as not_described_consumer_group,
)
from tidelog.coordination.groups.consumer.heartbeats import heartbeat_response
from tidelog.coordination.groups.share import describing as share_describing
from tidelog.coordination.groups.share import share_offsets
from tidelog.coordination.groups.share import share_responses as share_heartbeat
from tidelog.coordination.offsets.offset_messages import NO_THROTTLE, refused_commit, refused_fetch
from tidelog.coordination.offsets.transactional import refused_txn_commit
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.canonical import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

UNKNOWN_MEMBER_ID = ""

_WRITE_ERRORS = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas_after_append: ErrorCode.coordinator_not_available,
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
    ErrorCode.message_too_large: ErrorCode.unknown_server_error,
    ErrorCode.record_list_too_large: ErrorCode.unknown_server_error,
    ErrorCode.invalid_fetch_size: ErrorCode.unknown_server_error,
}


def write_error(error: ErrorCode) -> ErrorCode:
    """The error that a group member receives for an append error, as in Kafka."""
    return _WRITE_ERRORS.get(error, error)


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
def _(request: TxnOffsetCommitRequest, error: ErrorCode, version: int) -> TxnOffsetCommitResponse:
    return refused_txn_commit(request, error)


@refusal.register
def _(request: OffsetFetchRequest, error: ErrorCode, version: int) -> OffsetFetchResponse:
    if error is ErrorCode.coordinator_not_available:
        # Consumers do not expect this error here, but they retry after NOT_COORDINATOR.
        error = ErrorCode.not_coordinator
    return refused_fetch(request, error, version)


@refusal.register
def _(
    request: ShareGroupHeartbeatRequest, error: ErrorCode, version: int
) -> ShareGroupHeartbeatResponse:
    return share_heartbeat.heartbeat_response(error=error)


@refusal.register
def _(
    request: ShareGroupDescribeRequest, error: ErrorCode, version: int
) -> ShareGroupDescribeResponse:
    return share_describing.refused(request.group_ids, error)


@refusal.register(share_offsets.DescribeOffsets)
@refusal.register(share_offsets.AlterOffsets)
@refusal.register(share_offsets.DeleteOffsets)
def _(request: Any, error: ErrorCode, version: int) -> Any:
    return share_offsets.refused(request, error)


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


@refusal.register
def _(
    request: ConsumerGroupHeartbeatRequest, error: ErrorCode, version: int
) -> ConsumerGroupHeartbeatResponse:
    return heartbeat_response(error=error)


@refusal.register
def _(
    request: ConsumerGroupDescribeRequest, error: ErrorCode, version: int
) -> ConsumerGroupDescribeResponse:
    groups = tuple(not_described_consumer_group(one, error) for one in request.group_ids)
    return ConsumerGroupDescribeResponse(throttle_time=NO_THROTTLE, groups=groups)
