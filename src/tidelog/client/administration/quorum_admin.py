"""Requests of the command line about the controller quorum and the cluster.

If the quorum has no leader, no node can describe the quorum. The command line then probes the nodes
one by one and names the unreachable nodes, because without them the quorum may have no majority.
"""

from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.describe_cluster.v2.response import DescribeClusterResponse
from kio.schema.describe_quorum.v2 import request as quorum
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse

from tidelog.client.admin import RequestRefused
from tidelog.client.client import Address, Client
from tidelog.client.connection import BrokerConnection, ConnectionLost
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC, NodeId
from tidelog.model.user_error import UserError

BROKERS, CONTROLLERS = 1, 2
"""DescribeCluster's endpoint types."""

PROBE_SECONDS = 2.0

_NO_LEADER = (
    ErrorCode.request_timed_out,
    ErrorCode.not_leader_or_follower,
    ErrorCode.not_controller,
    ErrorCode.leader_not_available,
    ErrorCode.broker_not_available,
)


def describe_cluster(client: Client, *, controllers: bool = False) -> DescribeClusterResponse:
    """Ask for the cluster id and either the controllers or all brokers, including fenced ones."""
    answer = client.ask(
        DescribeClusterRequest(
            include_cluster_authorized_operations=False,
            endpoint_type=CONTROLLERS if controllers else BROKERS,
            include_fenced_brokers=not controllers,
        ),
        DescribeClusterResponse,
    )
    if answer.error_code is not ErrorCode.none:
        raise RequestRefused(answer.error_code, answer.error_message)
    return answer


def describe_quorum(client: Client, *, controllers: bool = False) -> DescribeQuorumResponse:
    """Describe the quorum as its leader sees it. Controllers do not forward this request."""
    try:
        answer = client.ask(_QUESTION, DescribeQuorumResponse)
    except UserError:
        # If a broker finds no controller, it sends no answer, and the request times out.
        raise _without_leader(client, controllers) from None
    if (error := _error(answer)) is ErrorCode.none:
        return answer
    if error not in _NO_LEADER:
        raise RequestRefused(error, answer.error_message)
    if controllers:
        for address in _addresses(client, controllers):
            found = _ask(address)
            if found is not None and _error(found) is ErrorCode.none:
                return found
    raise _without_leader(client, controllers)


def active_controller(client: Client) -> NodeId | None:
    """The leader of the quorum; None if it is unknown."""
    try:
        answer = client.ask(_QUESTION, DescribeQuorumResponse)
    except UserError:
        return None
    if _error(answer) is not ErrorCode.none:
        return None
    leader: NodeId = answer.topics[0].partitions[0].leader_id
    return leader


_QUESTION = quorum.DescribeQuorumRequest(
    topics=(
        quorum.TopicData(
            topic_name=METADATA_TOPIC, partitions=(quorum.PartitionData(partition_index=0),)
        ),
    )
)


def _error(answer: DescribeQuorumResponse) -> ErrorCode:
    if answer.error_code is not ErrorCode.none:
        return answer.error_code
    return answer.topics[0].partitions[0].error_code


def _ask(address: Address) -> DescribeQuorumResponse | None:
    try:
        connection = BrokerConnection(*address, PROBE_SECONDS)
    except ConnectionLost:
        return None
    try:
        return connection.ask(_QUESTION, DescribeQuorumResponse)
    except ConnectionLost:
        return None
    finally:
        connection.close()


def _addresses(client: Client, controllers: bool) -> list[Address]:
    nodes = describe_cluster(client, controllers=controllers).brokers
    told = [Address(node.host, node.port) for node in nodes]
    return list(dict.fromkeys((*client.bootstrap, *told)) if controllers else told)


def _without_leader(client: Client, controllers: bool) -> UserError:
    addresses = _addresses(client, controllers)
    gone = [f"{one.host}:{one.port}" for one in addresses if not _answers(one)]
    kind = "controllers" if controllers else "nodes"
    if not gone:
        return UserError(
            f"the metadata quorum has no leader, though all known {kind} answer ({len(addresses)})."
        )
    return UserError(
        f"the metadata quorum has no leader: of {len(addresses)} {kind}, "
        f"{', '.join(gone)} cannot be reached."
    )


def _answers(address: Address) -> bool:
    try:
        BrokerConnection(*address, PROBE_SECONDS).close()
    except ConnectionLost:
        return False
    return True
