"""Directs consumers to replicas in their own rack (KIP-392), if replica.selector.class is set."""

from collections.abc import Iterator

from tidelog.config.keys.broker_keys import RACK_AWARE_SELECTOR
from tidelog.controller.image.image import ClusterImage
from tidelog.model.effects import Reader
from tidelog.model.ids import NO_OFFSET, NodeId, Offset
from tidelog.node.partitions.replica import Replica
from tidelog.replication.isr.read_replica import ReplicaView, rack_aware


class ReadReplicas:
    def __init__(self, selector: str | None = None, rack: str | None = None) -> None:
        """`selector` is replica.selector.class, `rack` is this broker's own rack."""
        self.are_in_use = selector == RACK_AWARE_SELECTOR
        """Whether consumers may read from followers. If so, followers get each new high watermark
        at once.
        """
        self._rack = rack

    def is_news(self, replica: Replica, follower: NodeId) -> bool:
        """Whether to answer a fetch now, so that the follower gets a new high watermark."""
        if not self.are_in_use:
            return False
        sent, high_watermark = replica.sent_watermarks, replica.high_watermark
        is_news = sent.get(follower, NO_OFFSET) < high_watermark
        sent[follower] = high_watermark
        return is_news

    def choose(
        self, replica: Replica, offset: Offset, reader: Reader, image: ClusterImage
    ) -> NodeId | None:
        """The follower to read from; None to read from the leader itself."""
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
