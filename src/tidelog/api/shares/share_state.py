"""The APIs of the share coordinator, for other brokers only.

InitializeShareGroupState (83, version 0), ReadShareGroupState (84, version 0),
WriteShareGroupState (85, versions 0-1), DeleteShareGroupState (86, version 0) and
ReadShareGroupStateSummary (87, versions 0-1). A request is split by share partition, because the
share partitions may belong to different coordinators.
"""

from tidelog.api.groups.internal_topics import SHARE_GROUP_STATE
from tidelog.api.handler import Handling, Request
from tidelog.coordination.groups.share.share_initialization import coordinator_key
from tidelog.coordination.share_state.share_messages import (
    empty_response,
    joined,
    key_of,
    single_partitions,
)
from tidelog.model.effects import Coordinate


def handle(request: Request) -> Handling:
    """Reads or changes the stored state of share partitions."""
    message = request.message
    responses = []
    for single in single_partitions(message):
        key = coordinator_key(*key_of(single))
        responses.append((yield Coordinate(key, single, SHARE_GROUP_STATE)))
    return joined(responses, empty_response(message))
