"""The offsets of share groups.

DescribeShareGroupOffsets (key 90, versions 0-1), AlterShareGroupOffsets (91, version 0) and
DeleteShareGroupOffsets (92, version 0).

The group coordinator asks the share coordinators and the leaders of the partitions. Offsets can be
altered and deleted while the group has no members.
"""

from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from kio.schema.delete_share_group_offsets.v0.request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kio.schema.describe_share_group_offsets.v1.request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kio.schema.describe_share_group_offsets.v1.response import DescribeShareGroupOffsetsResponse

from tidelog.api.handler import Handling, Request
from tidelog.api.shares.share_groups import is_enabled
from tidelog.coordination.groups.share.share_offsets import refused
from tidelog.model.effects import Coordinate
from tidelog.model.errors import ErrorCode


def describe(request: Request) -> Handling:
    """Describes the start and the lag of share partitions."""
    message = request.message
    if not is_enabled(request):
        return refused(message, ErrorCode.unsupported_version)
    groups: list[Any] = []
    for group in message.groups:
        response = yield Coordinate(group.group_id, replace(message, groups=(group,)))
        groups += response.groups
    return DescribeShareGroupOffsetsResponse(throttle_time=timedelta(), groups=tuple(groups))


def change(request: Request) -> Handling:
    """Changes or deletes the start of share partitions, while the group has no members."""
    message = request.message
    if not is_enabled(request):
        return refused(message, ErrorCode.unsupported_version)
    return (yield Coordinate(message.group_id, message))


def delete_share_state(group_id: str) -> Generator[Any, Any, ErrorCode]:
    """Delete the state of a share group in the share coordinator, before the group is deleted.

    Without this, a later group of the same name would continue where the deleted one ended. Returns
    the error of the first partition whose state could not be deleted. A group of another kind, or
    with members, has nothing to delete here; the deletion of the group refuses the latter.
    """
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    described = yield Coordinate(group_id, DescribeShareGroupOffsetsRequest(groups=(asked,)))
    names = [topic.topic_name for topic in described.groups[0].topics]
    if not names:
        return ErrorCode.none
    topics = tuple(DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names)
    wish = DeleteShareGroupOffsetsRequest(group_id=group_id, topics=topics)
    deleted = yield Coordinate(group_id, wish)
    errors = (ErrorCode(one.error_code) for one in deleted.responses)
    return next((one for one in errors if one is not ErrorCode.none), ErrorCode.none)
