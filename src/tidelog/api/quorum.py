"""The quorum's own APIs, on a controller's listener.

    Vote (key 52)  0-2    BeginQuorumEpoch (53)  0-1    EndQuorumEpoch (54)  0-1
    FetchSnapshot (59)  0-1

A voter answers for itself, whoever leads. Pre-votes from Vote 2 on (KIP-996); voters have an id
and a directory from Vote 1, BeginQuorumEpoch 1 and EndQuorumEpoch 1 on (KIP-853).
"""

from tidelog.api.handler import Handling, Request
from tidelog.model.effects import AskQuorum


def ask(request: Request) -> Handling:
    """Answered by this node's own part in the quorum."""
    return (yield AskQuorum(request.message))
