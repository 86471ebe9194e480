"""The current leader and its endpoint in error responses (KIP-951)."""

from collections.abc import Iterable

from tidelog.api.handler import Request
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, TopicPartition
from tidelog.protocol.pieces import CurrentLeader, NodeEndpoint

_ABOUT_LEADERSHIP = (ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch)


def current_leader(
    request: Request, error: ErrorCode, partition: TopicPartition
) -> CurrentLeader | None:
    """The leader known to this broker, if the error is about leadership."""
    if error not in _ABOUT_LEADERSHIP:
        return None
    found = request.image.partition(partition)
    if found is None:
        return None
    if found.leader == request.node_id and error is ErrorCode.not_leader_or_follower:
        # This broker considers itself deposed but does not know the new leader (ADR 12). If the
        # response named this broker, clients would retry here at once, and librdkafka would not
        # ask any other broker.
        return None
    return CurrentLeader(found.leader, found.leader_epoch)


def endpoints_of(request: Request, nodes: Iterable[NodeId]) -> list[NodeEndpoint]:
    """The addresses of these nodes on the client's own listener."""
    endpoints = []
    for node in nodes:
        broker = request.image.brokers.get(node)
        endpoint = broker.endpoints.get(request.listener) if broker is not None else None
        if broker is not None and endpoint is not None:
            endpoints.append(NodeEndpoint(node, endpoint.host, endpoint.port, broker.rack))
    return endpoints
