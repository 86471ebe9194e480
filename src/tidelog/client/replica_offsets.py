"""The log end offset of each replica, as reported by the replica itself.

If the replica id in a ListOffsets request is Kafka's debugging id (-2), each replica, leader or
follower, answers with its log end offset. If the replica id is a consumer's id (-1), the leader
answers with the high watermark. The client queries the brokers one after another, so under load
their answers are some milliseconds apart.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kio.schema.list_offsets.v7.response import ListOffsetsResponse

from tidelog.client import admin
from tidelog.client.client import Client
from tidelog.client.log_offsets import LATEST, offsets_request
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, Offset, TopicPartition
from tidelog.model.user_error import UserError

PAGE = 2000
_CONSUMER, _DEBUGGER = -1, -2


class ReplicaOffsets(NamedTuple):
    node: NodeId
    log_end_offset: Offset | None
    """None if the broker does not report the offset."""
    is_in_sync: bool


class PartitionOffsets(NamedTuple):
    partition: TopicPartition
    leader: NodeId
    high_watermark: Offset | None
    replicas: tuple[ReplicaOffsets, ...]

    @property
    def leader_end(self) -> Offset | None:
        ends = (one.log_end_offset for one in self.replicas if one.node == self.leader)
        return next(ends, None)

    @property
    def follower_ends(self) -> Iterator[Offset]:
        """The known log end offsets of followers."""
        for one in self.replicas:
            if one.node != self.leader and one.log_end_offset is not None:
                yield one.log_end_offset

    def lag(self, replica: ReplicaOffsets) -> Offset | None:
        """The number of records of the leader's log that the replica lacks."""
        end = self.leader_end
        if end is None or replica.log_end_offset is None:
            return None
        return max(0, end - replica.log_end_offset)


def look(client: Client, topics: Sequence[str]) -> list[PartitionOffsets]:
    """The partitions of these topics with the offsets that their replicas report."""
    described = [
        (TopicPartition(topic.name, one.number), one)
        for topic in admin.describe(client, topics, PAGE)
        for one in topic.partitions
    ]
    held: dict[NodeId, list[TopicPartition]] = {}
    led: dict[NodeId, list[TopicPartition]] = {}
    for where, one in described:
        led.setdefault(one.leader, []).append(where)
        for node in one.replicas:
            held.setdefault(node, []).append(where)
    up = client.node_ids()
    # Logs grow during the queries. High watermarks are queried before log ends, so that a watermark
    # does not exceed the leader's log end. The brokers that lead most partitions are queried last,
    # so that most followers do not exceed their leader.
    marks = {node: _ends(client, node, led[node], _CONSUMER) for node in led if node in up}
    followers_first = sorted(held, key=lambda node: len(led.get(node, ())))
    ends = {
        node: _ends(client, node, held[node], _DEBUGGER) for node in followers_first if node in up
    }
    return [
        PartitionOffsets(
            where,
            one.leader,
            marks.get(one.leader, {}).get(where),
            tuple(
                ReplicaOffsets(node, ends.get(node, {}).get(where), node in one.isr)
                for node in one.replicas
            ),
        )
        for where, one in described
    ]


def high_watermarks(client: Client, topics: Sequence[str]) -> dict[TopicPartition, Offset]:
    """The high watermarks of the partitions of these topics, if the leaders answer."""
    led: dict[NodeId, list[TopicPartition]] = {}
    for topic in admin.describe_from_metadata(client, topics) if topics else ():
        for one in topic.partitions:
            led.setdefault(one.leader, []).append(TopicPartition(topic.name, one.number))
    found: dict[TopicPartition, Offset] = {}
    for node, partitions in led.items():
        found |= _ends(client, node, partitions, _CONSUMER)
    return found


def _ends(
    client: Client, node: NodeId, partitions: Iterable[TopicPartition], reader: int
) -> dict[TopicPartition, Offset]:
    request = offsets_request(partitions, LATEST, reader)
    try:
        answer = client.ask_node(node, request, ListOffsetsResponse)
    except UserError:
        return {}  # the broker does not answer, so its offsets are unknown
    return {
        TopicPartition(topic.name, one.partition_index): one.offset
        for topic in answer.topics
        for one in topic.partitions
        if one.error_code is ErrorCode.none
    }
