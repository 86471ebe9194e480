"""Sends consumers to replicas of their own rack (KIP-392), where replica.selector.class says so."""

from collections.abc import Iterator

from tidelog.config.broker_keys import RACK_AWARE_SELECTOR
from tidelog.controller.image.image import ClusterImage
from tidelog.model.effects import Reader
from tidelog.model.ids import NO_OFFSET, NodeId, Offset
from tidelog.node.partitions.replica import Replica
from tidelog.replication.isr.read_replica import ReplicaView, rack_aware


class ReadReplicas:
    def __init__(self, selector: str | None = None, rack: str | None = None) -> None:
        """`selector` is replica.selector.class, `rack` this broker's own."""
        self.are_in_use = selector == RACK_AWARE_SELECTOR
        """Then followers hear of a new high watermark at once, whether or not records come."""
        self._rack = rack

    def is_news(self, replica: Replica, follower: NodeId) -> bool:
        """Whether a follower is to hear of the high watermark now, even without records."""
        if not self.are_in_use:
            return False
        told, high_watermark = replica.told_watermarks, replica.high_watermark
        is_news = told.get(follower, NO_OFFSET) < high_watermark
        told[follower] = high_watermark
        return is_news

    def choose(
        self, replica: Replica, offset: Offset, reader: Reader, image: ClusterImage
    ) -> NodeId | None:
        """The follower to read from; None if the leader itself is to be read from."""
        if not self.are_in_use:
            return None
        return rack_aware(reader.rack, self._rack, _views(replica, offset, reader, image))


def _views(
    replica: Replica, offset: Offset, reader: Reader, image: ClusterImage
) -> Iterator[ReplicaView]:
    assert replica.leader is not None
    for id, end, last_caught_up in replica.leader.holders(offset):
        broker = image.brokers.get(id)
        if broker is None or not broker.is_active or reader.listener not in broker.endpoints:
            continue
        if 0 <= replica.follower_starts.get(id, NO_OFFSET) <= offset:
            yield ReplicaView(end, last_caught_up, id, broker.rack)
