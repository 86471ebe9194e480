"""Requests of brokers and controllers to the active controller, on a controller listener.

    AlterPartition (key 56)  2-3    BrokerRegistration (62)   0-4    AllocateProducerIds (67)     0
    ControllerRegistration (70) 0   BrokerHeartbeat (63)      0-2    AssignReplicasToDirs (73)    0

A node that is not the active controller answers NOT_CONTROLLER, and the sender tries another node.
"""

from tidelog.api.handler import Handling, Request
from tidelog.model.effects import ChangeMetadata


def decide(request: Request) -> Handling:
    """Returns the controller's decision once it is committed."""
    return (yield ChangeMetadata(request.message))
