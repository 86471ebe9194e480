"""DescribeCluster (key 60), versions 0-2; UnregisterBroker (64), version 0.

DescribeCluster returns the cluster id and the nodes: brokers on a broker listener, controllers on a
controller listener (KIP-919, from version 1 on). If the requested endpoint type does not match the
listener, the error is MISMATCHED_ENDPOINT_TYPE. If the type is unknown, the error is
UNSUPPORTED_ENDPOINT_TYPE. From version 2 on, the client may request fenced brokers too (KIP-1073).
With an authorizer, a client needs Alter on the cluster to describe the controllers, as in Kafka.

UnregisterBroker removes the registration of a broker that will not return.
"""

from collections.abc import Iterator
from datetime import timedelta

from kio.schema.describe_cluster.v2.response import DescribeClusterBroker, DescribeClusterResponse

from tidelog.api.access.permits import cluster_operations, permits
from tidelog.api.handler import Handling, Request
from tidelog.api.listeners import ListenerKind, kind_of
from tidelog.api.view import NO_AUTHORIZED_OPERATIONS, ListenerView
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode
from tidelog.security.acls import AclOperation, AclResource

_ENDPOINT_TYPES = {1: ListenerKind.BROKER, 2: ListenerKind.CONTROLLER}


def describe_cluster(request: Request) -> DescribeClusterResponse:
    """Lists the brokers, or on a controller listener the controllers."""
    asked, kind = request.message.endpoint_type, kind_of(request)
    wanted = _ENDPOINT_TYPES.get(asked)
    if wanted is None:
        return _refused(ErrorCode.unsupported_endpoint_type, f"Unsupported endpoint type {asked}")
    if wanted is not kind:
        return _refused(
            ErrorCode.mismatched_endpoint_type,
            f"The request was sent to an endpoint of type {kind.name}, "
            f"but we wanted an endpoint of type {wanted.name}",
        )
    controllers = kind is ListenerKind.CONTROLLER
    if controllers and not permits(request, AclOperation.ALTER, AclResource.CLUSTER):
        return _refused(ErrorCode.cluster_authorization_failed, "Cluster authorization failed.")
    view = ListenerView(request.image, request.listener)
    wants_operations = request.message.include_cluster_authorized_operations
    return DescribeClusterResponse(
        throttle_time=timedelta(0),
        error_code=ErrorCode.none,
        endpoint_type=asked,
        cluster_id=request.image.cluster_id,
        controller_id=request.quorum.leader if controllers else view.controller(request.node_id),
        brokers=tuple(_controllers(request) if controllers else _brokers(request)),
        cluster_authorized_operations=(
            cluster_operations(request) if wants_operations else NO_AUTHORIZED_OPERATIONS
        ),
    )


def _refused(error: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        throttle_time=timedelta(0),
        error_code=error,
        error_message=message,
        cluster_id="",
        brokers=(),
    )


def _brokers(request: Request) -> Iterator[DescribeClusterBroker]:
    image = request.image
    for id_ in sorted(image.brokers):
        broker = image.brokers[id_]
        endpoint = broker.endpoints.get(request.listener)
        if endpoint is None or (broker.fenced and not request.message.include_fenced_brokers):
            continue
        yield DescribeClusterBroker(
            broker_id=id_,
            host=endpoint.host,
            port=endpoint.port,
            rack=broker.rack,
            is_fenced=broker.fenced,
        )


def _controllers(request: Request) -> Iterator[DescribeClusterBroker]:
    controllers = request.image.controllers
    for id_ in sorted(controllers):
        endpoint = controllers[id_].endpoints.get(request.listener)
        if endpoint is not None:
            yield DescribeClusterBroker(
                broker_id=id_, host=endpoint.host, port=endpoint.port, is_fenced=False
            )


def unregister_broker(request: Request) -> Handling:
    """Removes the registration of a broker."""
    return (yield ChangeMetadata(request.message))
