"""Selects the replica that a consumer reads from: the best in its rack, or the leader (KIP-392).

Only in-sync replicas that hold the offset are considered, because a consumer that reads from a
lagging replica falls behind as well.
"""

from collections.abc import Iterable
from typing import NamedTuple

from tidelog.model.ids import Millis, NodeId, Offset


class ReplicaView(NamedTuple):
    """A follower as its leader knows it."""

    end: Offset
    last_caught_up: Millis
    id: NodeId
    rack: str | None


def rack_aware(
    rack: str, leader_rack: str | None, followers: Iterable[ReplicaView]
) -> NodeId | None:
    """Select a replica as Kafka's RackAwareReplicaSelector does; None means the leader."""
    if not rack or rack == leader_rack:
        return None
    near = [(view.end, view.last_caught_up, view.id) for view in followers if view.rack == rack]
    return max(near)[2] if near else None
