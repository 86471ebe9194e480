"""Offsets of logs by timestamp, from the leader of each partition."""

import time
from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import NamedTuple

from kio.schema.list_offsets.v7 import request as list_offsets
from kio.schema.list_offsets.v7.response import ListOffsetsResponse
from kio.schema.list_offsets.v11 import request as tiered_offsets
from kio.schema.list_offsets.v11.response import ListOffsetsResponse as TieredOffsetsResponse

from tidelog.client.client import PAUSE_SECONDS, RETRY_SECONDS, BrokerNotReached, Client
from tidelog.client.partitions import by_topic
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NodeId, Offset, TopicPartition

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
"""Kafka's ListOffsets timestamps. The last three need version 8, 9 and 11 of the request."""

TIMEOUT = timedelta(seconds=30)

Timestamp = int


class FoundOffset(NamedTuple):
    error: ErrorCode
    offset: Offset
    """NO_OFFSET if no record has the timestamp."""


def offsets_request(
    partitions: Iterable[TopicPartition], timestamp: Timestamp, replica: NodeId = NO_NODE
) -> list_offsets.ListOffsetsRequest:
    return list_offsets.ListOffsetsRequest(
        replica_id=replica,
        isolation_level=0,
        topics=tuple(
            list_offsets.ListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    list_offsets.ListOffsetsPartition(
                        partition_index=one.partition, timestamp=timestamp
                    )
                    for one in members
                ),
            )
            for topic, members in by_topic(partitions)
        ),
    )


def offsets_at(
    client: Client, partitions: Collection[TopicPartition], timestamp: Timestamp
) -> dict[TopicPartition, FoundOffset]:
    """The offset of each partition; retries while leaders move."""
    deadline = time.monotonic() + RETRY_SECONDS
    found: dict[TopicPartition, FoundOffset] = {}
    waiting = set(partitions)
    while waiting:
        client.metadata(tuple(sorted({one.topic for one in waiting})))
        for leader, led in _by_leader(client, waiting).items():
            found |= _ask(client, leader, led, timestamp)
        waiting = {one for one in waiting if found[one].error.retriable}
        if not waiting or time.monotonic() > deadline:
            break
        client.notice.waiting(f"partition {min(waiting)} has no leader")
        time.sleep(PAUSE_SECONDS)
    client.notice.over()
    return found


def _by_leader(
    client: Client, partitions: Collection[TopicPartition]
) -> dict[NodeId, list[TopicPartition]]:
    led: dict[NodeId, list[TopicPartition]] = {}
    for one in sorted(partitions):
        led.setdefault(client.leader(one), []).append(one)
    return led


def _ask(
    client: Client, leader: NodeId, partitions: list[TopicPartition], timestamp: Timestamp
) -> dict[TopicPartition, FoundOffset]:
    unknown = FoundOffset(ErrorCode.leader_not_available, -1)
    found = dict.fromkeys(partitions, unknown)
    if leader == NO_NODE:
        return found
    answer: ListOffsetsResponse | TieredOffsetsResponse
    try:
        if timestamp >= MAX_TIMESTAMP:
            request = offsets_request(partitions, timestamp)
            answer = client.ask_node(leader, request, ListOffsetsResponse)
        else:
            tiered = _tiered_request(partitions, timestamp)
            answer = client.ask_node(leader, tiered, TieredOffsetsResponse)
    except BrokerNotReached:
        return found
    for topic in answer.topics:
        for one in topic.partitions:
            where = TopicPartition(topic.name, one.partition_index)
            found[where] = FoundOffset(one.error_code, one.offset)
    return found


def _tiered_request(
    partitions: Iterable[TopicPartition], timestamp: Timestamp
) -> tiered_offsets.ListOffsetsRequest:
    return tiered_offsets.ListOffsetsRequest(
        replica_id=NO_NODE,
        isolation_level=0,
        topics=tuple(
            tiered_offsets.ListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    tiered_offsets.ListOffsetsPartition(
                        partition_index=one.partition, timestamp=timestamp
                    )
                    for one in members
                ),
            )
            for topic, members in by_topic(partitions)
        ),
        timeout=TIMEOUT,
    )
