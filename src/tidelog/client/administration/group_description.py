"""Describes groups of all kinds as one shape: a consumer group first, otherwise a classic group."""

from typing import NamedTuple

from kio.schema.consumer_group_describe.v1 import request as consumer_request
from kio.schema.consumer_group_describe.v1 import response as consumer
from kio.schema.consumer_protocol_assignment.v0.data import ConsumerProtocolAssignment
from kio.schema.describe_groups.v5 import request as older_request
from kio.schema.describe_groups.v5 import response as older
from kio.schema.describe_groups.v6 import request as classic_request
from kio.schema.describe_groups.v6 import response as classic

from tidelog.client.admin import RequestRefused
from tidelog.client.client import Client
from tidelog.client.coordinators import GroupCoordinator, ask_coordinator
from tidelog.client.kafka_exceptions import default_message
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.model.user_error import UserError
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.reader import decode

CONSUMER_PROTOCOL = "consumer"
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""ConsumerGroupDescribe's member types."""

_VERSION_BYTES = 2


class MemberDescription(NamedTuple):
    id: str
    instance_id: str
    """Empty if the member is not static."""
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] = ()
    epoch: int | None = None
    is_upgraded: bool | None = None
    """Whether the member uses the consumer protocol; None if the group is classic."""


class GroupDescription(NamedTuple):
    name: str
    coordinator: GroupCoordinator
    state: str
    assignor: str
    members: tuple[MemberDescription, ...]
    epoch: int | None = None
    target_epoch: int | None = None


def describe_group(client: Client, group: str) -> GroupDescription:
    """Describe a group. Raises RequestRefused with GROUP_ID_NOT_FOUND if it does not exist."""
    if client.speaks(consumer_request.ConsumerGroupDescribeRequest):
        described = _consumer_group(client, group)
        if described is not None:
            return described
    return _classic_group(client, group)


def _consumer_group(client: Client, group: str) -> GroupDescription | None:
    """Describe a group of the consumer protocol; None if the group has another type."""
    coordinator, answer = ask_coordinator(
        client,
        group,
        consumer_request.ConsumerGroupDescribeRequest(
            group_ids=(group,), include_authorized_operations=False
        ),
        consumer.ConsumerGroupDescribeResponse,
        lambda answer: answer.groups[0].error_code,
    )
    (found,) = answer.groups
    if found.error_code in (ErrorCode.group_id_not_found, ErrorCode.unsupported_version):
        return None
    _check(found.error_code, found.error_message)
    return GroupDescription(
        group,
        coordinator,
        found.group_state,
        found.assignor_name,
        tuple(_consumer_member(member) for member in found.members),
        found.group_epoch,
        found.assignment_epoch,
    )


def _consumer_member(member: consumer.Member) -> MemberDescription:
    known = {CLASSIC_MEMBER: False, CONSUMER_MEMBER: True}
    return MemberDescription(
        member.member_id,
        member.instance_id or "",
        member.client_id,
        member.client_host,
        _partitions(member.assignment),
        _partitions(member.target_assignment),
        member.member_epoch,
        known.get(member.member_type),
    )


def _partitions(assignment: consumer.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _classic_group(client: Client, group: str) -> GroupDescription:
    coordinator, found = _ask_classic(client, group)
    _check(found.error_code, getattr(found, "error_message", None))
    if found.protocol_type not in (CONSUMER_PROTOCOL, ""):
        raise UserError(f"GroupId {group} is not a consumer group ({found.protocol_type}).")
    members = tuple(
        MemberDescription(
            member.member_id,
            member.group_instance_id or "",
            member.client_id,
            member.client_host,
            assigned_partitions(member.member_assignment),
        )
        for member in found.members
    )
    return GroupDescription(group, coordinator, found.group_state, found.protocol_data, members)


def _ask_classic(
    client: Client, group: str
) -> tuple[GroupCoordinator, classic.DescribedGroup | older.DescribedGroup]:
    if client.speaks(classic_request.DescribeGroupsRequest):
        coordinator, answer = ask_coordinator(
            client,
            group,
            classic_request.DescribeGroupsRequest(
                groups=(group,), include_authorized_operations=False
            ),
            classic.DescribeGroupsResponse,
            lambda answer: answer.groups[0].error_code,
        )
        return coordinator, answer.groups[0]
    coordinator, older_answer = ask_coordinator(
        client,
        group,
        older_request.DescribeGroupsRequest(groups=(group,), include_authorized_operations=False),
        older.DescribeGroupsResponse,
        lambda answer: answer.groups[0].error_code,
    )
    return coordinator, older_answer.groups[0]


def assigned_partitions(assignment: bytes) -> tuple[TopicPartition, ...]:
    """The partitions in an assignment of the consumer protocol. Later versions append fields."""
    if not assignment:
        return ()
    try:
        decoded = decode(ConsumerProtocolAssignment, assignment, _VERSION_BYTES)
    except MalformedMessage:
        raise UserError("a member's assignment is not one of the consumer protocol.") from None
    return tuple(
        TopicPartition(topic.topic, partition)
        for topic in decoded.assigned_partitions
        for partition in topic.partitions
    )


def _check(error: ErrorCode, message: str | None) -> None:
    if error is not ErrorCode.none:
        raise RequestRefused(error, message or default_message(error))
