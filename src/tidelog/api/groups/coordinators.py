"""FindCoordinator (key 10), versions 0-6.

The coordinator of a group is the leader of the `__consumer_offsets` partition that the group id
hashes to. From version 4 on a request may contain several keys (KIP-699). The first request creates
`__consumer_offsets` and is answered once that topic exists. If the partition has no reachable
leader, the response is COORDINATOR_NOT_AVAILABLE, and clients retry.

A request for a transaction coordinator (key type 1) gets COORDINATOR_NOT_AVAILABLE, because Tidelog
has no transaction coordinator yet. Share groups (type 2) and unknown types get INVALID_REQUEST.
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import IntEnum

from kio.schema.find_coordinator.v6.response import Coordinator, FindCoordinatorResponse

from tidelog.api.groups.internal_topics import CONSUMER_OFFSETS, consumer_offsets, creation
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


def handle(request: Request) -> Handling:
    """Finds the broker that coordinates each group."""
    key_type = request.message.key_type
    if key_type == KeyType.GROUP and CONSUMER_OFFSETS not in request.image.topics:
        topic = consumer_offsets(request.settings)
        yield ChangeMetadata(creation([topic], request.settings))
    nodes = ListenerView(request.image, request.listener).nodes
    return FindCoordinatorResponse(
        throttle_time=timedelta(0),
        coordinators=tuple(
            _coordinator(key, request, nodes) for key in request.message.coordinator_keys
        ),
    )


def _coordinator(key: str, request: Request, nodes: Mapping[NodeId, NodeAddress]) -> Coordinator:
    node, error = _NOBODY, ErrorCode.none
    match request.message.key_type:
        case KeyType.GROUP:
            node = _group_coordinator(key, request, nodes)
            error = ErrorCode.coordinator_not_available if node is _NOBODY else ErrorCode.none
        case KeyType.TRANSACTION:
            error = ErrorCode.coordinator_not_available
        case _:
            error = ErrorCode.invalid_request
    return Coordinator(
        key=key,
        node_id=node.id,
        host=node.host,
        port=node.port,
        error_code=error,
        error_message=_message(error, request.version),
    )


def _group_coordinator(
    group_id: str, request: Request, nodes: Mapping[NodeId, NodeAddress]
) -> NodeAddress:
    topic = request.image.topics.get(CONSUMER_OFFSETS)
    if topic is None:
        return _NOBODY
    partition = topic.partitions[partition_for(group_id, len(topic.partitions))]
    return nodes.get(partition.leader, _NOBODY)


def _message(error: ErrorCode, version: int) -> str:
    """On success, Kafka sends the message NONE up to version 3, and an empty message later."""
    if error is ErrorCode.none and version >= _FIRST_WITH_SEVERAL_KEYS:
        return ""
    return _MESSAGES[error]
