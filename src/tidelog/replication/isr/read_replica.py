"""Which replica a consumer is to read from (KIP-392): the best of its own rack, else the leader.

Only members of the in-sync set that hold the offset are considered: one that lags would be chosen
again and again by a consumer that then falls behind with it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from tidelog.model.ids import Millis, NodeId, Offset


class ReplicaView(NamedTuple):
    """A follower as its leader knows it; the larger, the better to read from."""

    end: Offset
    last_caught_up: Millis
    id: NodeId
    rack: str | None


def rack_aware(
    rack: str, leader_rack: str | None, followers: Iterable[ReplicaView]
) -> NodeId | None:
    """Kafka's RackAwareReplicaSelector; None is the leader."""
    if not rack or rack == leader_rack:
        return None
    near = [(view.end, view.last_caught_up, view.id) for view in followers if view.rack == rack]
    return max(near)[2] if near else None
