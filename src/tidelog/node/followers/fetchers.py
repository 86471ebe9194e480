"""The partitions that this node follows, grouped by leader broker: one fetcher per leader."""

from collections.abc import Callable

from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import Endpoint
from tidelog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicPartition
from tidelog.node.channels import Channels, broker_endpoint
from tidelog.node.clock import Clock
from tidelog.node.controller.recently_fenced import RecentlyFencedBrokers
from tidelog.node.followers.replica_fetcher import ReplicaFetcher
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.partitions.replica import Replica
from tidelog.node.partitions.throttles import Throttles
from tidelog.node.peers import LONG_ANSWER_BYTES, Peers


class Fetchers:
    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        peers: Peers,
        current: CurrentImage,
        broker_epoch: Callable[[], BrokerEpoch],
        storage_failed: Callable[[TopicPartition, OSError], None],
        throttles: Throttles,
        recently_fenced: RecentlyFencedBrokers,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._timers = clock.timers
        self._channels: Channels[NodeId] = Channels(peers, LONG_ANSWER_BYTES)
        self._current = current
        self._broker_epoch = broker_epoch
        self._storage_failed = storage_failed
        self._throttles = throttles
        self._recently_fenced = recently_fenced
        self._by_leader: dict[NodeId, tuple[Endpoint, ReplicaFetcher]] = {}
        self._leader_of: dict[TopicPartition, tuple[NodeId, LeaderEpoch]] = {}

    def follow(self, replica: Replica, leader: NodeId, epoch: LeaderEpoch) -> None:
        """Start to fetch the partition from this leader, or restart in a new leader epoch (F05)."""
        if self._leader_of.get(replica.partition) == (leader, epoch):
            return  # only the in-sync set has changed, so the fetch continues (F31)
        self.drop(replica)
        fetcher = self._fetcher(leader)
        if fetcher is not None:
            self._leader_of[replica.partition] = (leader, epoch)
            fetcher.follow(replica, epoch)

    def drop(self, replica: Replica) -> None:
        followed = self._leader_of.pop(replica.partition, None)
        if followed is not None and followed[0] in self._by_leader:
            self._by_leader[followed[0]][1].drop(replica)

    def flushed(self, replica: Replica) -> None:
        followed = self._leader_of.get(replica.partition)
        if followed is not None and followed[0] in self._by_leader:
            self._by_leader[followed[0]][1].flushed(replica)

    def brokers_changed(self) -> None:
        """Close idle fetchers, and reconnect to leaders whose address has changed."""
        for leader, (endpoint, fetcher) in list(self._by_leader.items()):
            if fetcher.is_idle:
                fetcher.close()
                del self._by_leader[leader]
            elif self._endpoint(leader) not in (endpoint, None):
                self._move(leader, fetcher)

    def _move(self, leader: NodeId, old: ReplicaFetcher) -> None:
        followed = old.followed()
        old.close()
        del self._by_leader[leader]
        fetcher = self._fetcher(leader)
        assert fetcher is not None
        for replica, epoch in followed:
            fetcher.follow(replica, epoch)

    def _fetcher(self, leader: NodeId) -> ReplicaFetcher | None:
        if leader not in self._by_leader:
            endpoint = self._endpoint(leader)
            if endpoint is None:
                return None
            channel = self._channels.replace(leader, (endpoint.host, endpoint.port))
            fetcher = ReplicaFetcher(
                self._settings,
                self._clock,
                channel,
                self._broker_epoch,
                self._storage_failed,
                self._throttles,
                lost=lambda: self._recently_fenced.lost(leader),
                found=lambda: self._recently_fenced.found(leader),
            )
            self._by_leader[leader] = (endpoint, fetcher)
        return self._by_leader[leader][1]

    def _endpoint(self, leader: NodeId) -> Endpoint | None:
        return broker_endpoint(
            self._current.image, leader, self._settings.inter_broker_listener_name
        )
