"""The requests of a member of a share group, and what their responses say (KIP-932)."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from kio.schema.share_acknowledge.v2 import request as ack
from kio.schema.share_fetch.v2 import request as fetch

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, Offset, TopicId
from tidelog.sim.clients.messages import ask

HEARTBEAT, SHARE_FETCH, SHARE_ACKNOWLEDGE = 76, 78, 79
JOINING, LEAVING = 0, -1
ACCEPT, RELEASE, REJECT = 1, 2, 3

ShareRef = tuple[TopicId, int]
Acks = Mapping[ShareRef, Sequence[tuple[Offset, Offset, int]]]
"""The first and the last offset of each range, and its acknowledge type."""


class Delivered(NamedTuple):
    """Records that a member has acquired."""

    share: ShareRef
    first: Offset
    last: Offset
    delivery_count: int


def heartbeat(group: str, member: str, epoch: int, topics: Sequence[str]) -> Any:
    return ask(
        HEARTBEAT,
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=tuple(topics),
    )


def assigned(answer: Any) -> list[ShareRef] | None:
    """The partitions of a member; None if its assignment has not changed."""
    if answer.assignment is None:
        return None
    return [
        (topic.topic_id, index)
        for topic in answer.assignment.topic_partitions
        for index in topic.partitions
    ]


def share_fetch(
    group: str,
    member: str,
    epoch: int,
    shares: Sequence[ShareRef],
    acks: Acks | None = None,
    *,
    most: int = 500,
    wait_ms: Millis = 500,
) -> Any:
    """A fetch that adds partitions to the session, and acknowledges records first."""
    asked = {**dict.fromkeys(shares, ()), **(acks or {})}
    return ask(
        SHARE_FETCH,
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        max_wait=timedelta(milliseconds=wait_ms),
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=most,
        batch_size=most,
        topics=tuple(
            fetch.FetchTopic(
                topic_id=topic,
                partitions=(
                    fetch.FetchPartition(
                        partition_index=index,
                        acknowledgement_batches=tuple(
                            fetch.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=(kind,)
                            )
                            for first, last, kind in ranges
                        ),
                    ),
                ),
            )
            for (topic, index), ranges in asked.items()
        ),
    )


def share_acknowledge(group: str, member: str, epoch: int, acks: Acks) -> Any:
    return ask(
        SHARE_ACKNOWLEDGE,
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        topics=tuple(
            ack.AcknowledgeTopic(
                topic_id=topic,
                partitions=(
                    ack.AcknowledgePartition(
                        partition_index=index,
                        acknowledgement_batches=tuple(
                            ack.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=(kind,)
                            )
                            for first, last, kind in ranges
                        ),
                    ),
                ),
            )
            for (topic, index), ranges in acks.items()
        ),
    )


def delivered(answer: Any) -> list[Delivered]:
    return [
        Delivered(
            (topic.topic_id, one.partition_index),
            acquired.first_offset,
            acquired.last_offset,
            acquired.delivery_count,
        )
        for topic in answer.responses
        for one in topic.partitions
        for acquired in one.acquired_records
    ]


def errors_of(answer: Any) -> dict[ShareRef, ErrorCode]:
    """The error of each partition that a response to a fetch or an acknowledgement names."""
    return {
        (topic.topic_id, one.partition_index): ErrorCode(one.error_code)
        for topic in answer.responses
        for one in topic.partitions
    }
