"""The APIs of the metadata quorum, on a controller listener.

    Vote (key 52)  0-2    BeginQuorumEpoch (53)  0-1    EndQuorumEpoch (54)  0-1
    FetchSnapshot (59)  0-1

On any listener, DescribeQuorum (55), versions 0-2 (KIP-595): a broker forwards it to the leader,
the only node that knows each replica's log end offset. Timestamps since version 1 (KIP-836),
directory ids and the controllers' addresses since version 2 (KIP-853).

The leader adds or removes one voter at a time by appending a record (KIP-853), on any listener:

    AddRaftVoter (key 80)  0-1    RemoveRaftVoter (81)  0

On a controller listener, UpdateRaftVoter (82), version 0, updates the addresses of a voter.

A voter answers these requests itself, whether it leads or not. Pre-votes from Vote 2 on (KIP-996);
voters have an id and a directory from Vote 1, BeginQuorumEpoch 1 and EndQuorumEpoch 1 on (KIP-853).
"""

from tidelog.api.handler import Handling, Request
from tidelog.model.effects import AskQuorum, ChangeMetadata


def ask(request: Request) -> Handling:
    """Returns the answer of this node's quorum replica."""
    return (yield AskQuorum(request.message))


def describe_quorum(request: Request) -> Handling:
    """Describes the quorum's leader, voters and observers, with the log end offset of each."""
    return (yield ChangeMetadata(request.message))


def add_raft_voter(request: Request) -> Handling:
    """Adds a controller to the quorum's voters."""
    return (yield ChangeMetadata(request.message))


def remove_raft_voter(request: Request) -> Handling:
    """Removes a controller from the quorum's voters."""
    return (yield ChangeMetadata(request.message))


def update_raft_voter(request: Request) -> Handling:
    """Updates a voter's addresses and supported versions."""
    return (yield ChangeMetadata(request.message))
