"""FindCoordinator (key 10), versions 0-6.

The coordinator of a group is the leader of the `__consumer_offsets` partition that the group id
hashes to. The coordinator of a transactional id is found in `__transaction_state` in the same way.
From version 4 on a request may contain several keys (KIP-699). The first request creates the topic
and is answered once the topic exists. If the partition has no reachable leader, the response is
COORDINATOR_NOT_AVAILABLE, and clients retry.

The key of a share coordinator (type 2, KIP-932) names a group, a topic id and a partition; other
keys and unknown types get INVALID_REQUEST.
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import IntEnum

from kio.schema.find_coordinator.v6.response import Coordinator, FindCoordinatorResponse

from tidelog.api.groups.internal_topics import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    creatable_topic,
    creation,
)
from tidelog.api.handler import Handling, Request
from tidelog.api.view import ListenerView, NodeAddress
from tidelog.coordination.partitioning import partition_for
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId

_FIRST_WITH_SEVERAL_KEYS = 4
_NOBODY = NodeAddress(-1, "", -1, None)

_MESSAGES = {
    ErrorCode.none: "NONE",
    ErrorCode.coordinator_not_available: "The coordinator is not available.",
    ErrorCode.invalid_request: (
        "This most likely occurs because of a request being malformed by the client library or "
        "the message was sent to an incompatible broker. See the broker logs for more details."
    ),
}


class KeyType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


_TOPICS: Mapping[int, str] = {
    KeyType.GROUP: CONSUMER_OFFSETS,
    KeyType.TRANSACTION: TRANSACTION_STATE,
    KeyType.SHARE: SHARE_GROUP_STATE,
}
"""The topic in which the coordinators of each type keep their state."""


def handle(request: Request) -> Handling:
    """Finds the broker that coordinates each group or transactional id."""
    name = _TOPICS.get(request.message.key_type)
    is_valid = any(_is_valid(key, request) for key in request.message.coordinator_keys)
    if name is not None and is_valid and name not in request.image.topics:
        topic = creatable_topic(name, request.settings)
        assert topic is not None
        yield ChangeMetadata(creation([topic], request.settings), is_brokers_own=True)
    nodes = ListenerView(request.image, request.listener).nodes
    return FindCoordinatorResponse(
        throttle_time=timedelta(0),
        coordinators=tuple(
            _coordinator(key, request, nodes) for key in request.message.coordinator_keys
        ),
    )


def _coordinator(key: str, request: Request, nodes: Mapping[NodeId, NodeAddress]) -> Coordinator:
    node, error = _NOBODY, ErrorCode.invalid_request
    topic = _TOPICS.get(request.message.key_type)
    if topic is not None and _is_valid(key, request):
        node = _leader(topic, key, request, nodes)
        error = ErrorCode.coordinator_not_available if node is _NOBODY else ErrorCode.none
    return Coordinator(
        key=key,
        node_id=node.id,
        host=node.host,
        port=node.port,
        error_code=error,
        error_message=_message(error, request.version),
    )


def _is_valid(key: str, request: Request) -> bool:
    """Whether the key of a share coordinator names a group, a topic id and a partition."""
    if request.message.key_type != KeyType.SHARE:
        return True
    front, _, partition = key.rpartition(":")
    group, _, topic_id = front.rpartition(":")
    return bool(group and topic_id) and partition.isdecimal()


def _leader(
    name: str, key: str, request: Request, nodes: Mapping[NodeId, NodeAddress]
) -> NodeAddress:
    topic = request.image.topics.get(name)
    if topic is None:
        return _NOBODY
    partition = topic.partitions[partition_for(key, len(topic.partitions))]
    return nodes.get(partition.leader, _NOBODY)


def _message(error: ErrorCode, version: int) -> str:
    """On success, Kafka sends the message NONE up to version 3, and an empty message later."""
    if error is ErrorCode.none and version >= _FIRST_WITH_SEVERAL_KEYS:
        return ""
    return _MESSAGES[error]
