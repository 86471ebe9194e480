"""Administration of partitions: elections, deletion of records, log directories."""

import time
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import NamedTuple

from kio.schema.delete_records.v2 import request as delete_request
from kio.schema.delete_records.v2.response import DeleteRecordsResponse
from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResponse
from kio.schema.elect_leaders.v2 import request as elect_request
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse

from tidelog.client.admin import RequestRefused
from tidelog.client.client import PAUSE_SECONDS, RETRY_SECONDS, BrokerNotReached, Client
from tidelog.client.kafka_exceptions import default_message
from tidelog.client.partitions import by_topic
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NO_OFFSET, NodeId, Offset, TopicPartition

PREFERRED, UNCLEAN = 0, 1
"""ElectLeaders' election types."""

TIMEOUT = timedelta(seconds=30)


class PartitionOutcome(NamedTuple):
    error: ErrorCode
    message: str


class Deleted(NamedTuple):
    error: ErrorCode
    low_watermark: Offset


class StoredReplica(NamedTuple):
    partition: TopicPartition
    size: int
    offset_lag: Offset
    is_future: bool
    """Whether the replica is moving to this directory."""


class DescribedLogDir(NamedTuple):
    path: str
    error: ErrorCode
    replicas: list[StoredReplica]


def elect_leaders(
    client: Client, how: int, partitions: Collection[TopicPartition] | None
) -> dict[TopicPartition, PartitionOutcome]:
    """Elect leaders of these partitions, or (None) of all partitions that need it."""
    request = elect_request.ElectLeadersRequest(
        election_type=how,
        topic_partitions=None
        if partitions is None
        else tuple(
            elect_request.TopicPartitions(
                topic=topic, partitions=tuple(one.partition for one in members)
            )
            for topic, members in by_topic(partitions)
        ),
        timeout=TIMEOUT,
    )
    answer = client.ask(request, ElectLeadersResponse)
    check(answer.error_code)
    return {
        TopicPartition(topic.topic, one.partition_id): PartitionOutcome(
            one.error_code, one.error_message or default_message(one.error_code)
        )
        if one.error_code is not ErrorCode.none
        else PartitionOutcome(ErrorCode.none, "")
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }


def delete_records(
    client: Client, offsets: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, Deleted]:
    """Delete the records before these offsets, at the leader of each partition.

    Retries while leaders move. A partition that does not exist is an error at once.
    """
    deadline = time.monotonic() + RETRY_SECONDS
    found: dict[TopicPartition, Deleted] = {}
    waiting = sorted(offsets)
    while waiting:
        for leader, partitions in _by_leader(client, waiting).items():
            found |= _delete_at(client, leader, {one: offsets[one] for one in partitions})
        waiting = [one for one in waiting if _may_be_retried(found[one].error)]
        if not waiting or time.monotonic() > deadline:
            break
        client.notice.waiting(f"partition {waiting[0]} has no leader")
        time.sleep(PAUSE_SECONDS)
    client.notice.over()
    return found


def _may_be_retried(error: ErrorCode) -> bool:
    return error.retriable and error is not ErrorCode.unknown_topic_or_partition


def _by_leader(
    client: Client, partitions: Collection[TopicPartition]
) -> dict[NodeId | None, list[TopicPartition]]:
    """The partitions of each leader; those that do not exist have the leader None."""
    leaders = {
        TopicPartition(topic.name or "", one.partition_index): one.leader_id
        for topic in client.metadata(tuple(sorted({one.topic for one in partitions}))).topics
        for one in topic.partitions
    }
    led: dict[NodeId | None, list[TopicPartition]] = {}
    for one in partitions:
        led.setdefault(leaders.get(one), []).append(one)
    return led


def _delete_at(
    client: Client, leader: NodeId | None, offsets: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, Deleted]:
    if leader is None:
        return dict.fromkeys(offsets, Deleted(ErrorCode.unknown_topic_or_partition, NO_OFFSET))
    if leader == NO_NODE:
        return dict.fromkeys(offsets, Deleted(ErrorCode.leader_not_available, NO_OFFSET))
    request = delete_request.DeleteRecordsRequest(
        topics=tuple(
            delete_request.DeleteRecordsTopic(
                name=topic,
                partitions=tuple(
                    delete_request.DeleteRecordsPartition(
                        partition_index=one.partition, offset=offsets[one]
                    )
                    for one in members
                ),
            )
            for topic, members in by_topic(offsets)
        ),
        timeout=TIMEOUT,
    )
    try:
        answer = client.ask_node(leader, request, DeleteRecordsResponse)
    except BrokerNotReached:
        return dict.fromkeys(offsets, Deleted(ErrorCode.leader_not_available, NO_OFFSET))
    return {
        TopicPartition(topic.name, one.partition_index): Deleted(one.error_code, one.low_watermark)
        for topic in answer.topics
        for one in topic.partitions
    }


def describe_log_dirs(client: Client, node: NodeId) -> list[DescribedLogDir]:
    """The log directories of a broker, with all replicas in them."""
    answer = client.ask_node(node, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    check(answer.error_code)
    return [
        DescribedLogDir(
            directory.log_dir,
            directory.error_code,
            sorted(
                StoredReplica(
                    TopicPartition(topic.name, one.partition_index),
                    one.partition_size,
                    one.offset_lag,
                    one.is_future_key,
                )
                for topic in directory.topics
                for one in topic.partitions
            ),
        )
        for directory in answer.results
    ]


def check(error: ErrorCode, message: str | None = None) -> None:
    if error is not ErrorCode.none:
        raise RequestRefused(error, message or default_message(error))
