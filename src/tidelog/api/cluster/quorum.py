"""The APIs of the metadata quorum, on a controller listener.

    Vote (key 52)  0-2    BeginQuorumEpoch (53)  0-1    EndQuorumEpoch (54)  0-1
    FetchSnapshot (59)  0-1

Every voter, not only the leader, answers these four requests itself. Vote 2 adds pre-votes
(KIP-996). From version 1 of Vote, BeginQuorumEpoch and EndQuorumEpoch on, a voter is identified by
its id and its directory id (KIP-853).

DescribeQuorum (55), versions 0-2 (KIP-595), is served on any listener. A broker forwards the
request to the leader, the only node that knows each replica's log end offset. Version 1 adds
timestamps (KIP-836). Version 2 adds directory ids and the controllers' addresses (KIP-853).

Two more APIs are served on any listener. For each request, the leader adds or removes one voter by
appending a record (KIP-853):

    AddRaftVoter (key 80)  0-1    RemoveRaftVoter (81)  0

UpdateRaftVoter (82), version 0, is served on a controller listener. This request updates a voter's
addresses.
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
