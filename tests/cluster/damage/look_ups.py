"""Look-ups that use a partition's indexes: reads at single offsets, and offsets by time."""

import random
from collections.abc import Mapping
from datetime import timedelta

from kio.schema.fetch.v12 import request as fetch
from kio.schema.fetch.v12.response import FetchResponse
from kio.schema.list_offsets.v7 import request as list_offsets
from kio.schema.list_offsets.v7.response import ListOffsetsResponse
from tests.cluster.damage.batch_files import whole_batches

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NodeId
from tidelog.testing import Cluster, NodeStuck

SOME = 4
ANOTHER_TIME = (
    ErrorCode.not_leader_or_follower,
    ErrorCode.leader_not_available,
    ErrorCode.offset_not_available,
    ErrorCode.fenced_leader_epoch,
)
"""Retriable errors, which do not mean that a record is missing."""


def problems(
    cluster: Cluster,
    topic: str,
    index: int,
    timestamps: Mapping[int, int],
    rng: random.Random,
) -> list[str]:
    """Look up some records at the leader, by offset and by time; return the wrong results."""
    found = []
    leader = cluster.leader_of(topic, index)
    for offset in rng.sample(sorted(timestamps), min(SOME, len(timestamps))):
        error, content = fetch_at(cluster, leader, topic, index, offset)
        held = [one.offsets for one in whole_batches(content)]
        if error not in ANOTHER_TIME and not (held and offset in held[0]):
            found.append(f"{topic}-{index}: a read at {offset} brings {error.name} and {held[:2]}")
        time = timestamps[offset]
        error, by_time = _offset_at(cluster, leader, topic, index, time)
        first = min(one for one, its_time in timestamps.items() if its_time >= time)
        if error not in ANOTHER_TIME and (error is not ErrorCode.none or by_time != first):
            found.append(
                f"{topic}-{index}: wrong data: {time} is at {by_time} ({error.name}), not {first}"
            )
    return found


def fetch_at(
    cluster: Cluster, node: NodeId, topic: str, index: int, offset: int
) -> tuple[ErrorCode, bytes]:
    """The error and the bytes of one fetch from a node."""
    partition = fetch.FetchPartition(
        partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    request = fetch.FetchRequest(
        max_wait=timedelta(0),
        min_bytes=0,
        max_bytes=1 << 20,
        topics=(fetch.FetchTopic(topic=topic, partitions=(partition,)),),
        forgotten_topics_data=(),
    )
    answer = cluster.ask(request, FetchResponse, node).responses[0].partitions[0]
    return answer.error_code, answer.records or b""


def _offset_at(
    cluster: Cluster, node: NodeId, topic: str, index: int, time: int
) -> tuple[ErrorCode, int]:
    partition = list_offsets.ListOffsetsPartition(partition_index=index, timestamp=time)
    request = list_offsets.ListOffsetsRequest(
        replica_id=NO_NODE,
        isolation_level=0,
        topics=(list_offsets.ListOffsetsTopic(name=topic, partitions=(partition,)),),
    )
    try:
        answer = cluster.ask(request, ListOffsetsResponse, node)
    except NodeStuck:
        return ErrorCode.leader_not_available, -1
    (found,) = answer.topics[0].partitions
    return found.error_code, found.offset
