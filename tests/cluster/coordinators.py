"""Finds the coordinator of a group."""

from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId
from tidelog.testing import Cluster


def coordinator_of(cluster: Cluster, group: str) -> NodeId:
    def found() -> NodeId | None:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=(group,))
        [answer] = cluster.ask(request, FindCoordinatorResponse).coordinators
        return answer.node_id if answer.error_code is ErrorCode.none else None

    return cluster.wait_for(found, "a coordinator")
