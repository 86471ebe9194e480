"""The response to a heartbeat of a member of a share group."""

from datetime import timedelta

from kio.schema.share_group_heartbeat.v1.response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

from tidelog.coordination.groups.share.share_group import ShareAssignment, by_topic
from tidelog.model.errors import ErrorCode

_NO_TIME = timedelta()


def heartbeat_response(
    *,
    error: ErrorCode = ErrorCode.none,
    message: str | None = None,
    member_id: str | None = None,
    member_epoch: int = 0,
    heartbeat_interval_ms: int = 0,
    assignment: ShareAssignment | None = None,
) -> ShareGroupHeartbeatResponse:
    topics = None
    if assignment is not None:
        topics = Assignment(
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic.topic_id, partitions=topic.partitions)
                for topic in by_topic(assignment)
            )
        )
    return ShareGroupHeartbeatResponse(
        throttle_time=_NO_TIME,
        error_code=error,
        error_message=message,
        member_id=member_id,
        member_epoch=member_epoch,
        heartbeat_interval=timedelta(milliseconds=heartbeat_interval_ms),
        assignment=topics,
    )
