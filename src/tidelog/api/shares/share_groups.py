"""ShareGroupHeartbeat (key 76) and ShareGroupDescribe (key 77), version 1.

The group coordinator decides both. The first heartbeat creates `__share_group_state`, in which the
share coordinator keeps the state of the group's partitions. Both APIs need the feature
share.version.
"""

from datetime import timedelta
from typing import Any

from kio.schema.share_group_describe.v1.response import ShareGroupDescribeResponse

from tidelog.api.groups.internal_topics import SHARE_GROUP_STATE, creation, share_group_state
from tidelog.api.handler import Handling, Request
from tidelog.controller.features import SHARE_VERSION
from tidelog.coordination.groups.share.describing import not_described
from tidelog.coordination.groups.share.share_heartbeats import ShareGroupRefused, check_form
from tidelog.coordination.groups.share.share_responses import heartbeat_response
from tidelog.model.effects import ChangeMetadata, Coordinate
from tidelog.model.errors import ErrorCode

_NOT_ENABLED = "The version of API is not supported."


def is_enabled(request: Request) -> bool:
    """Whether the cluster's finalised features include share groups."""
    return request.image.features.get(SHARE_VERSION, 0) >= 1


def heartbeat(request: Request) -> Handling:
    """Joins a share group, stays in it, or leaves it."""
    message = request.message
    if not is_enabled(request):
        return heartbeat_response(error=ErrorCode.unsupported_version, message=_NOT_ENABLED)
    try:
        check_form(message)
    except ShareGroupRefused as refused:
        return heartbeat_response(error=refused.error, message=refused.message)
    if SHARE_GROUP_STATE not in request.image.topics:
        topic = share_group_state(request.settings)
        yield ChangeMetadata(creation([topic], request.settings), is_brokers_own=True)
    return (yield Coordinate(message.group_id, message))


def describe(request: Request) -> Handling:
    """Describes share groups: epochs, members and assignments."""
    message = request.message
    described: list[Any] = []
    for group_id in message.group_ids:
        if not is_enabled(request):
            refused = not_described(group_id, ErrorCode.unsupported_version, _NOT_ENABLED)
            described.append(refused)
            continue
        single = type(message)(
            group_ids=(group_id,),
            include_authorized_operations=message.include_authorized_operations,
        )
        response = yield Coordinate(group_id, single)
        described += response.groups
    return ShareGroupDescribeResponse(throttle_time=timedelta(), groups=tuple(described))
