"""A node has one fetcher per leader, as long as the node follows partitions of that leader."""

from uuid import UUID

from tests.unit.log.support import new_log
from tests.unit.node.following import Owner

from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import BrokerImage, ClusterImage, Endpoint
from tidelog.model.ids import NodeId, TopicPartition
from tidelog.model.outbound import Connect, Outbound, Send
from tidelog.node.clock import Clock
from tidelog.node.controller.recently_fenced import RecentlyFencedBrokers
from tidelog.node.followers.fetchers import Fetchers
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.partitions.replica import Replica
from tidelog.node.partitions.throttles import Throttles
from tidelog.node.peers import Peers
from tidelog.node.ready import ReadyQueue
from tidelog.sim.machines.cluster import node_settings

ME, LEADER, OTHER = 1, 2, 3
SETTINGS: BrokerSettings = node_settings(ME, 3)


def broker(id: NodeId) -> BrokerImage:
    return BrokerImage(id, 10, UUID(int=id), {"PLAINTEXT": Endpoint(f"node{id}", 9092, 0)})


class Follower:
    def __init__(self) -> None:
        self.clock, self.ready = Clock(0), ReadyQueue()
        self.outbound: list[Outbound] = []
        self.current = CurrentImage()
        self.current.image = ClusterImage(brokers={id: broker(id) for id in (ME, LEADER, OTHER)})
        self.fetchers = Fetchers(
            SETTINGS,
            self.clock,
            Peers(self.clock, self.ready, self.outbound.append),
            self.current,
            lambda: 5,
            lambda partition, failure: None,
            Throttles(ME, self.clock),
            RecentlyFencedBrokers(self.clock, self.current),
        )
        name = TopicPartition("orders", 0)
        self.replica = Replica(name, UUID(int=0xA), new_log(), 0, self.clock, Owner())

    def asked_for(self) -> list[Outbound]:
        """Connections and requests since the last call."""
        asked = [one for one in self.outbound if isinstance(one, Connect | Send)]
        self.outbound.clear()
        return asked


def test_f31_the_same_leader_in_the_same_epoch_is_followed_on_as_before() -> None:
    """Most images repeat the leader and epoch. Restarting the fetcher would cost a round trip."""
    follower = Follower()
    follower.fetchers.follow(follower.replica, LEADER, 7)
    assert len(follower.asked_for()) == 1
    for _ in range(3):
        follower.fetchers.follow(follower.replica, LEADER, 7)
        follower.fetchers.brokers_changed()
    assert follower.asked_for() == []


def test_another_leader_is_followed_by_a_connection_of_its_own() -> None:
    follower = Follower()
    follower.fetchers.follow(follower.replica, LEADER, 7)
    follower.asked_for()
    follower.fetchers.follow(follower.replica, OTHER, 8)
    [connect] = follower.asked_for()
    assert isinstance(connect, Connect)
    assert connect.host == "node3"
