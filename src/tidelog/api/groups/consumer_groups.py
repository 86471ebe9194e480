"""The consumer protocol of KIP-848.

    ConsumerGroupHeartbeat (key 68)  0-1     ConsumerGroupDescribe (69)  0-1

A member joins, stays in and leaves a group with heartbeats only, and the coordinator computes the
assignment. Heartbeat 1 adds regular expressions, and member ids that the client chooses. Describe 1
adds the types of members. Both get UNSUPPORTED_VERSION while the feature `group.version` is at
level 0, or while `group.coordinator.rebalance.protocols` does not contain `consumer`.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_describe.v1.response import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

from tidelog.api.access.permits import GROUP_OPERATIONS, permitted_operations
from tidelog.api.handler import Handling, Request
from tidelog.api.slicing import PAUSE, Pace
from tidelog.controller.features import GROUP_VERSION
from tidelog.coordination.groups.consumer.describing import not_described
from tidelog.coordination.groups.consumer.heartbeats import heartbeat_response
from tidelog.model.effects import Coordinate
from tidelog.model.errors import ErrorCode
from tidelog.security.acls import AclResource

_PROTOCOL = "consumer"


def _is_served(request: Request) -> bool:
    served = request.settings.group_coordinator_rebalance_protocols
    return _PROTOCOL in served and request.image.features.get(GROUP_VERSION, 0) >= 1


def heartbeat(request: Request) -> Handling:
    """Joins a group, stays in it or leaves it; the response contains the assignment."""
    if not _is_served(request):
        return heartbeat_response(error=ErrorCode.unsupported_version)
    return (yield Coordinate(request.message.group_id, request.message))


def describe(request: Request) -> Handling:
    """Describes the epochs, members and assignments of consumer groups."""
    wants_operations = request.message.include_authorized_operations
    described: list[DescribedGroup] = []
    pace = Pace()
    for group_id in dict.fromkeys(request.message.group_ids):
        if not _is_served(request):
            described.append(not_described(group_id, ErrorCode.unsupported_version))
            continue
        if not group_id:
            described.append(not_described(group_id, ErrorCode.invalid_group_id))
            continue
        message = ConsumerGroupDescribeRequest(
            group_ids=(group_id,), include_authorized_operations=wants_operations
        )
        response: Any = yield Coordinate(group_id, message)
        described += response.groups
        if pace.is_due(1 + sum(len(group.members) for group in response.groups)):
            yield PAUSE
    if wants_operations:
        described = [_with_operations(request, group) for group in described]
    return ConsumerGroupDescribeResponse(throttle_time=timedelta(0), groups=tuple(described))


def _with_operations(request: Request, group: DescribedGroup) -> DescribedGroup:
    if group.error_code is not ErrorCode.none:
        return group
    kind = AclResource.GROUP
    operations = permitted_operations(request, GROUP_OPERATIONS, kind, group.group_id)
    return replace(group, authorized_operations=operations)
