"""The machines of a small cluster under simulated time, and their observable state."""

from collections.abc import Callable
from typing import Any

from tidelog.controller.image.image import ClusterImage, PartitionImage
from tidelog.model.ids import NO_NODE, Millis, NodeId, TopicPartition
from tidelog.node.inspection import NodeInspection
from tidelog.node.partitions.replica import Replica
from tidelog.protocol.records.records import Record
from tidelog.sim.clients.client import SimClient
from tidelog.sim.clients.messages import answer_in, frame_of, records_in
from tidelog.sim.machines.host import SimHost
from tidelog.sim.machines.network import SimNetwork
from tidelog.sim.machines.world import World
from tidelog.sim.stage.cast import Cast

CLUSTER_ID = "c3RvcnktY2x1c3Rlci0wMA"
PATIENCE_MS: Millis = 30_000


class _LosesAll:
    """Dice for the worst power loss: no unsynced data survives."""

    def below(self, bound: int) -> int:
        return 0

    def uuid(self) -> Any:
        raise AssertionError("a disk draws no ids")


class Stage:
    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.world = World(cast.seed)
        self.network = SimNetwork(self.world)
        self.began_at = self.world.now
        self.hosts = {
            node: SimHost(self.network, cast.settings_of(node), CLUSTER_ID)
            for node in (*cast.controller_ids, *cast.broker_ids)
        }
        self.watcher: Callable[[], None] | None = None
        """Called after every simulated event."""
        self.patience_ms: Millis = PATIENCE_MS
        """How long a client waits for a response before it closes the connection."""
        self._clients: dict[NodeId, SimClient] = {}
        self._known = ClusterImage()

    def begin(self) -> None:
        """Start every machine and wait until all are ready."""
        for host in self.hosts.values():
            host.start()
        assert self.run_until(lambda: self.is_ready, 60_000), "the cluster does not come up"

    @property
    def now(self) -> Millis:
        """The simulated time since the start."""
        return self.world.now - self.began_at

    @property
    def brokers(self) -> list[SimHost]:
        return [self.hosts[node] for node in self.cast.broker_ids]

    @property
    def controllers(self) -> list[SimHost]:
        return [self.hosts[node] for node in self.cast.controller_ids]

    @property
    def is_ready(self) -> bool:
        return all(host.node is not None and host.node.is_ready for host in self.hosts.values())

    # -- running the simulation --------------------------------------------------------------------

    def run(self, duration: Millis) -> None:
        self.run_until(lambda: False, duration)

    def run_until(self, condition: Callable[[], bool], limit: Millis) -> bool:
        """Run until the condition holds; return False if the time limit is reached first."""

        def look() -> bool:
            if self.watcher is not None:
                self.watcher()
            return condition()

        return self.world.run_until(look, limit)

    # -- observing the cluster ---------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata that any machine has had so far."""
        for host in self.hosts.values():
            if host.node is not None and host.node.image.offset > self._known.offset:
                self._known = host.node.image
        return self._known

    @property
    def controller(self) -> NodeId:
        """The node that is active controller in the latest epoch; NO_NODE if there is none."""
        active = [
            (host.node.image.epoch, host.id)
            for host in self.controllers
            if host.node is not None and host.node.is_active_controller
        ]
        return max(active)[1] if active else NO_NODE

    def placed(self, partition: TopicPartition) -> PartitionImage | None:
        return self.image.partition(partition)

    def leader(self, partition: TopicPartition) -> NodeId:
        placed = self.placed(partition)
        return NO_NODE if placed is None else placed.leader

    def replica(self, node: NodeId, partition: TopicPartition) -> Replica | None:
        """The replica in the node's running process."""
        running = self.hosts[node].node
        return None if running is None else NodeInspection(running).replica(partition)

    def records(self, node: NodeId, partition: TopicPartition) -> list[Record]:
        """The records in a replica's files, even if its process does not run."""
        disk, directory = self.hosts[node].disk, f"{partition.topic}-{partition.partition}"
        found: list[Record] = []
        for name in disk.list(directory):
            if name.endswith(".log"):
                found += records_in(disk.read_file(f"{directory}/{name}"))
        return found

    # -- acting on the cluster ---------------------------------------------------------------------

    def power_off(self, node: NodeId) -> None:
        """Lose power in the worst way. All unsynced data is lost."""
        host = self.hosts[node]
        self.network.lose_power(host.name)
        host.kill()
        host.disk.crash(_LosesAll())

    def client(self, node: NodeId) -> SimClient:
        """The clients' connection to this node, which is opened if it is not open."""
        client = self._clients.get(node)
        if client is None or client.is_lost:
            address = self.hosts[node].address()
            client = SimClient(self.network, address, "client", self.patience_ms)
            self._clients[node] = client
        return client

    def ask(self, node: NodeId, message: Any) -> Any:
        """Send a request, and return the response or None if no response arrives."""
        answers: list[bytes | None] = []
        self.client(node).request(frame_of(message), answers.append)
        self.run_until(lambda: bool(answers), PATIENCE_MS)
        return answer_in(answers[0], message) if answers and answers[0] is not None else None
