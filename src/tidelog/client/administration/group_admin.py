"""Lists and deletes groups, and reads, sets and deletes their committed offsets."""

import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_groups.v2.response import DeleteGroupsResponse
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListGroupsResponse
from kio.schema.offset_commit.v8 import request as offset_commit
from kio.schema.offset_commit.v8.response import OffsetCommitResponse
from kio.schema.offset_delete.v0 import request as offset_delete
from kio.schema.offset_delete.v0.response import OffsetDeleteResponse
from kio.schema.offset_fetch.v8 import request as offset_fetch
from kio.schema.offset_fetch.v8.response import OffsetFetchResponse

from tidelog.client.administration.partition_admin import check
from tidelog.client.client import PAUSE_SECONDS, RETRY_SECONDS, Client
from tidelog.client.coordinators import MOVED, ask_coordinator
from tidelog.client.partitions import by_topic
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, Offset, TopicPartition

NO_GENERATION = -1
NO_EPOCH = -1
CONSUMER_TYPES = ("classic", "consumer")


class ListedGroup(NamedTuple):
    name: str
    type: str
    state: str
    protocol_type: str

    @property
    def is_consumer_group(self) -> bool:
        """Whether Kafka's tool for consumer groups lists the group."""
        if self.type == "Consumer":
            return True
        return self.type in ("Classic", "") and self.protocol_type in ("consumer", "")


class Committed(NamedTuple):
    offset: Offset
    leader_epoch: int | None


def consumer_groups(
    client: Client, *, states: Collection[str] = (), types: Collection[str] = ()
) -> list[ListedGroup]:
    """The classic and consumer groups of all brokers, sorted by name."""
    request = ListGroupsRequest(
        states_filter=tuple(states), types_filter=tuple(types or CONSUMER_TYPES)
    )
    found = set()
    for node in client.node_ids():
        found |= {
            ListedGroup(
                one.group_id, one.group_type.capitalize(), one.group_state, one.protocol_type
            )
            for one in _listed(client, node, request).groups
        }
    return sorted(one for one in found if one.is_consumer_group)


def _listed(client: Client, node: NodeId, request: ListGroupsRequest) -> ListGroupsResponse:
    """The groups of one broker, once it has loaded them."""
    deadline = time.monotonic() + RETRY_SECONDS
    while True:
        answer = client.ask_node(node, request, ListGroupsResponse)
        if answer.error_code not in MOVED or time.monotonic() > deadline:
            check(answer.error_code)
            client.notice.over()
            return answer
        client.notice.waiting(f"broker {node} loads its groups")
        time.sleep(PAUSE_SECONDS)


def committed_offsets(client: Client, group: str) -> dict[TopicPartition, Committed]:
    """Every committed offset of the group."""
    request = offset_fetch.OffsetFetchRequest(
        groups=(offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=None),)
    )
    _, answer = ask_coordinator(
        client, group, request, OffsetFetchResponse, lambda answer: answer.groups[0].error_code
    )
    (found,) = answer.groups
    check(found.error_code)
    return {
        TopicPartition(topic.name, one.partition_index): Committed(
            one.committed_offset,
            one.committed_leader_epoch if one.committed_leader_epoch >= 0 else None,
        )
        for topic in found.topics
        for one in topic.partitions
        if one.error_code is ErrorCode.none and one.committed_offset >= 0
    }


def commit_offsets(client: Client, group: str, offsets: Mapping[TopicPartition, Offset]) -> None:
    """Set committed offsets of a group that has no members."""
    request = offset_commit.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=NO_GENERATION,
        member_id="",
        group_instance_id=None,
        topics=tuple(
            offset_commit.OffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=one.partition,
                        committed_offset=offsets[one],
                        committed_leader_epoch=NO_EPOCH,
                        committed_metadata="",
                    )
                    for one in members
                ),
            )
            for topic, members in by_topic(offsets)
        ),
    )
    _, answer = ask_coordinator(
        client,
        group,
        request,
        OffsetCommitResponse,
        lambda answer: answer.topics[0].partitions[0].error_code,
    )
    for topic in answer.topics:
        for one in topic.partitions:
            check(one.error_code)


def delete_offsets(
    client: Client, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Delete committed offsets. Raises RequestRefused if the error concerns the whole group."""
    request = offset_delete.OffsetDeleteRequest(
        group_id=group,
        topics=tuple(
            offset_delete.OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(
                    offset_delete.OffsetDeleteRequestPartition(partition_index=one.partition)
                    for one in members
                ),
            )
            for topic, members in by_topic(partitions)
        ),
    )
    _, answer = ask_coordinator(
        client, group, request, OffsetDeleteResponse, lambda answer: answer.error_code
    )
    check(answer.error_code)
    return {
        TopicPartition(topic.name, one.partition_index): one.error_code
        for topic in answer.topics
        for one in topic.partitions
    }


def delete_group(client: Client, group: str) -> ErrorCode:
    request = DeleteGroupsRequest(groups_names=(group,))
    _, answer = ask_coordinator(
        client, group, request, DeleteGroupsResponse, lambda answer: answer.results[0].error_code
    )
    error: ErrorCode = answer.results[0].error_code
    return error
