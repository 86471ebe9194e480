"""The quorum's own APIs, on a controller's listener.

    Vote (key 52)  0-2    BeginQuorumEpoch (53)  0-1    EndQuorumEpoch (54)  0-1
    FetchSnapshot (59)  0-1

and, on any listener, DescribeQuorum (55), versions 0-2 (KIP-595): a broker passes it on to the
leader, which alone knows how far the others have come. Timestamps since version 1 (KIP-836),
directory ids and the controllers' addresses since version 2 (KIP-853).

Voters change one at a time, by a record that the leader appends (KIP-853), on any listener:

    AddRaftVoter (key 80)  0-1    RemoveRaftVoter (81)  0

and on a controller's listener UpdateRaftVoter (82), version 0, by which a voter says where it is.

A voter answers for itself, whoever leads. Pre-votes from Vote 2 on (KIP-996); voters have an id
and a directory from Vote 1, BeginQuorumEpoch 1 and EndQuorumEpoch 1 on (KIP-853).
"""

from tidelog.api.handler import Handling, Request
from tidelog.model.effects import AskQuorum, ChangeMetadata


def ask(request: Request) -> Handling:
    """Answered by this node's own part in the quorum."""
    return (yield AskQuorum(request.message))


def describe_quorum(request: Request) -> Handling:
    """The quorum's leader, its voters and observers, and how far each has come."""
    return (yield ChangeMetadata(request.message))


def add_raft_voter(request: Request) -> Handling:
    """Adds a controller to the quorum's voters."""
    return (yield ChangeMetadata(request.message))


def remove_raft_voter(request: Request) -> Handling:
    """Removes a controller from the quorum's voters."""
    return (yield ChangeMetadata(request.message))


def update_raft_voter(request: Request) -> Handling:
    """Tells the quorum's leader where a voter is, and what it supports."""
    return (yield ChangeMetadata(request.message))
