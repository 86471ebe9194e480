"""A cluster of simulated machines; node n is the machine `node<n>`."""

from collections.abc import Mapping

from tidelog.config.settings import BrokerSettings
from tidelog.model.ids import Millis, NodeId
from tidelog.sim.clients.client import PATIENCE_MS, SimClient
from tidelog.sim.machines.host import SimHost
from tidelog.sim.machines.network import SimNetwork
from tidelog.sim.machines.world import World

CLUSTER_ID = "c2ltdWxhdGVkLWNsdXN0ZQ"
BROKER_PORT, CONTROLLER_PORT = 9092, 9093

QUICK_FAILURE_DETECTION = {
    "broker.heartbeat.interval.ms": "250",
    "broker.session.timeout.ms": "2000",
}
"""The same settings as in `tidelog up`."""


def node_settings(
    node: NodeId, nodes: int, overrides: Mapping[str, str] | None = None
) -> BrokerSettings:
    """Settings for a node that is a broker and a controller, as in `tidelog up`."""
    name = f"node{node}"
    voters = (f"{one}@node{one}:{CONTROLLER_PORT}" for one in range(1, nodes + 1))
    broker = f"PLAINTEXT://{name}:{BROKER_PORT}"
    return BrokerSettings.from_properties(
        {
            "node.id": str(node),
            "process.roles": "broker,controller",
            "listeners": f"{broker},CONTROLLER://{name}:{CONTROLLER_PORT}",
            "advertised.listeners": broker,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": ",".join(voters),
            "log.dirs": "data",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            **QUICK_FAILURE_DETECTION,
            **(overrides or {}),
        }
    )


class SimCluster:
    def __init__(
        self, seed: int = 1, nodes: int = 3, overrides: Mapping[str, str] | None = None
    ) -> None:
        self.world = World(seed)
        self.network = SimNetwork(self.world)
        self.hosts: dict[NodeId, SimHost] = {
            id: SimHost(self.network, node_settings(id, nodes, overrides), CLUSTER_ID)
            for id in range(1, nodes + 1)
        }

    @property
    def up(self) -> list[SimHost]:
        return [host for host in self.hosts.values() if host.is_up]

    @property
    def controllers(self) -> list[SimHost]:
        """Nodes that consider themselves the active controller; a paused node may be wrong."""
        return [host for host in self.up if host.node and host.node.is_active_controller]

    @property
    def is_ready(self) -> bool:
        """Whether every running node is ready."""
        return bool(self.up) and all(host.node and host.node.is_ready for host in self.up)

    def start(self, *nodes: NodeId) -> None:
        """Start these nodes, or all nodes that are not running."""
        for host in self.hosts.values():
            if not host.is_up and (not nodes or host.id in nodes):
                host.start()

    def client(
        self,
        node: NodeId,
        listener: str = "PLAINTEXT",
        *,
        name: str = "client",
        patience_ms: Millis = PATIENCE_MS,
    ) -> SimClient:
        return SimClient(self.network, self.hosts[node].address(listener), name, patience_ms)
