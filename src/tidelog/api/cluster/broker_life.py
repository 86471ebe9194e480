"""What brokers and controllers ask of the active controller, on a controller's listener.

    AlterPartition (key 56)  2-3    BrokerRegistration (62)   0-4    AllocateProducerIds (67)     0
    ControllerRegistration (70) 0   BrokerHeartbeat (63)      0-2    AssignReplicasToDirs (73)    0

A node that is not the active controller answers NOT_CONTROLLER, and the sender looks for another.
"""

from tidelog.api.handler import Handling, Request
from tidelog.model.effects import ChangeMetadata


def decide(request: Request) -> Handling:
    """Answered once the controller's decision is committed."""
    return (yield ChangeMetadata(request.message))
