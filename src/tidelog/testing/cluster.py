"""A cluster of processes on free ports of this machine, and the faults that a test can cause."""

import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from itertools import permutations, product
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from tidelog.clusters.free_ports import HOST
from tidelog.clusters.local_cluster import BROKER_LISTENER, CONTROLLER_LISTENER, on_free_ports
from tidelog.clusters.node_process import NodeProcess
from tidelog.model.ids import NodeId
from tidelog.network import CLIENTS, Network
from tidelog.testing.arguments import checked_properties
from tidelog.testing.disk import SmallDisk, give_room, take_room
from tidelog.testing.view import ClusterView

LISTENERS = {"broker": BROKER_LISTENER, "controller": CONTROLLER_LISTENER}
SLOW_MS = 100.0


class FaultRefused(Exception):
    """The fault is not possible in this cluster; the message says why."""


class Nodes(dict[NodeId, NodeProcess]):
    """The nodes by id."""

    def __missing__(self, node: object) -> NoReturn:
        raise ValueError(f"there is no node {node!r}; there are {', '.join(map(str, self))}")


class Cluster(ClusterView):
    """Nodes 1..brokers. Each node is a broker and a controller in one process.

    The context starts all nodes and waits until each accepts writes. At the end of the context, all
    nodes are killed. Without `directory`, the cluster uses a temporary directory. If the test
    failed, this directory is kept, with the logs.

    `properties` are for every node, `broker_properties` are for single nodes, and `racks` are the
    values of broker.rack in order. All traffic goes through a network that can be cut and slowed
    down. This network costs some CPU, so measurements use `network_faults=False`. With
    `disk_bytes`, each node has its data on a separate file system of that size. This needs root.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        directory: Path | str | None = None,
        properties: Mapping[str, object] | None = None,
        broker_properties: Mapping[NodeId, Mapping[str, object]] | None = None,
        racks: Sequence[str] | None = None,
        network_faults: bool = True,
        disk_bytes: int | None = None,
    ) -> None:
        single = _single_properties(brokers, broker_properties or {}, racks)
        common = checked_properties("properties", properties or {})
        self._is_temporary = directory is None
        self.directory = Path(directory or tempfile.mkdtemp(prefix="tidelog-test-"))
        self.layout = on_free_ports(
            self.directory, brokers, common, single, has_proxies=network_faults
        )
        self.nodes = Nodes({node: self.new_node(node) for node in self.layout.node_ids})
        self.has_ended = False
        """Whether the nodes are dead and the ports released. The cluster cannot start again."""
        self._network: Network | None = None
        self._cut_off: set[NodeId] = set()
        """The nodes that clients cannot reach."""
        self._apart: set[frozenset[NodeId]] = set()
        """Pairs of nodes with a cut between their controller listeners."""
        self._disk_bytes = disk_bytes
        self._disks: dict[NodeId, SmallDisk] = {}

    def new_node(self, node: NodeId) -> NodeProcess:
        return NodeProcess(node, self.layout.config(node), self.directory / f"{node}.log")

    def __enter__(self) -> Self:
        try:
            if self.layout.has_proxies:
                self._network = Network(self.layout.places())
            self.format()
            self.start()
        except BaseException:
            self.end(failed=True)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(failed=kind is not None)

    def format(self) -> None:
        """Write the configurations and format the log directories."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._disk_bytes is not None:
            for node in self.nodes:
                self._disks[node] = SmallDisk(self.data(node), self._disk_bytes)
        self.layout.prepare()

    def end(self, *, failed: bool) -> None:
        """Kill every node. After a failure, keep the files and print the end of each log."""
        self.has_ended = True
        for node in self.nodes.values():
            node.kill()
            if failed:
                node.show_log()
        if self._network is not None:
            self._network.close()
            self._network = None
        for disk in self._disks.values():
            disk.remove()
        if self.layout.block is not None:
            self.layout.block.release()
        if failed:
            print(f"-- the cluster is kept in {self.directory}", file=sys.stderr)
        elif self._is_temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    # -- Nodes and their addresses -----------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        return self.layout.bootstrap

    @property
    def bootstrap_controllers(self) -> str:
        """The address for tools that connect to the controllers."""
        return ",".join(f"{HOST}:{self.controller_port(node)}" for node in self.nodes)

    @property
    def running(self) -> list[NodeId]:
        """The nodes that run, are not paused, and are reachable by clients."""
        return [
            id
            for id, node in self.nodes.items()
            if node.is_running and not node.is_paused and id not in self._cut_off
        ]

    @property
    def to_ask(self) -> list[NodeId]:
        """The running nodes, best connected first, because an isolated node has stale metadata."""
        running = self.running
        strangers = {
            one: sum(frozenset((one, other)) in self._apart for other in running) for one in running
        }
        return sorted(running, key=strangers.__getitem__)

    def port(self, node: NodeId) -> int:
        return self.layout.port(self.nodes[node].node_id)

    def port_to_ask(self, node: NodeId) -> int:
        """The proxy's port if the node is cut off.

        Otherwise the node's own port, which saves CPU.
        """
        is_past = self.layout.has_proxies and node not in self._cut_off
        return self.port(node) + (len(self.nodes) if is_past else 0)

    def controller_port(self, node: NodeId) -> int:
        return self.layout.controller_port(self.nodes[node].node_id)

    def data(self, node: NodeId) -> Path:
        """The node's log directory."""
        return self.layout.data(self.nodes[node].node_id)

    # -- Starting and stopping nodes ---------------------------------------------------------------

    def start(self, *nodes: NodeId, wait: bool = True) -> None:
        """Start these nodes, or all nodes, and wait until they accept writes."""
        if self.has_ended:
            raise RuntimeError("this cluster has ended, and another may use its ports now")
        chosen = [self.nodes[node] for node in nodes or self.nodes]
        for node in chosen:
            node.start()
        if self._network is not None:
            self._network.know({id: one.pid for id, one in self.nodes.items() if one.is_running})
        if wait:
            for node in chosen:
                node.await_ready()
            if self._network is not None:
                self._network.look()

    def stop(self, node: NodeId) -> int:
        """Resume the node, shut it down in a controlled way, and return its exit status."""
        return self.nodes[node].stop()

    def kill(self, node: NodeId) -> None:
        """kill -9."""
        self.nodes[node].kill()

    def pause(self, node: NodeId) -> None:
        """SIGSTOP. The node stops and keeps its connections, as in a long garbage collection."""
        self._running_node("pause", node).pause()

    def resume(self, node: NodeId) -> None:
        """SIGCONT."""
        self.nodes[node].resume()

    def restart(self, node: NodeId) -> None:
        """Shut the node down in a controlled way if it runs, and start it."""
        self.stop(node)
        self.start(node)

    def repair(self) -> None:
        """Heal the network, free disks, resume and start nodes, and wait until all are ready."""
        if self._network is not None:
            self.heal()
        for id, node in self.nodes.items():
            if node.is_paused and node.is_running:
                self.resume(id)
            self.free_disk(id)
        if down := [id for id, node in self.nodes.items() if not node.is_running]:
            self.start(*down)

    # -- The network -------------------------------------------------------------------------------

    def partition(
        self, *sides: Collection[NodeId], one_way: bool = False, only: str | None = None
    ) -> None:
        """Cut the sides off from each other. Connections stay open, but nothing arrives.

        Clients reach every node unless `CLIENTS` is on a side. With `one_way`, only the traffic
        from earlier sides to later sides is cut. `only="broker"` cuts only the traffic to broker
        listeners (replication, clients). `only="controller"` cuts only the traffic to controller
        listeners.
        """
        self._check_sides(sides)
        if only is not None and only not in LISTENERS:
            raise ValueError(f"only: {' or '.join(map(repr, LISTENERS))}, not {only!r}")
        network = self._faulty_network("partition")
        if any(CLIENTS in side for side in sides) and only != "controller":
            self._cut_off.update(node for side in sides if CLIENTS not in side for node in side)
        for (first, one), (second, other) in permutations(enumerate(sides), 2):
            if only != "broker":
                self._apart.update(frozenset(pair) for pair in product(one, other))
            if not one_way or first < second:
                network.cut(one, other, None if only is None else LISTENERS[only])

    def isolate(self, node: NodeId) -> None:
        """Cut a node off from all other nodes and from clients."""
        self.partition([node], [CLIENTS, *(one for one in self.nodes if one != node)])

    def slow(
        self,
        node: NodeId,
        *,
        latency_ms: float | None = None,
        bytes_per_second: float | None = None,
    ) -> None:
        """Delay the traffic of the node in both directions, or limit its bandwidth.

        The default is a delay of 100 ms each way.
        """
        party = self._party(node)
        if any(one is not None and one <= 0 for one in (latency_ms, bytes_per_second)):
            raise ValueError("slow: latency_ms and bytes_per_second must be greater than 0")
        if latency_ms is None:
            latency_ms = SLOW_MS if bytes_per_second is None else 0.0
        self._faulty_network("slow").slow(
            party, latency_seconds=latency_ms / 1000, bytes_per_second=bytes_per_second
        )

    def heal(self) -> None:
        """End all partitions and slowdowns. Traffic that was held back then arrives."""
        self._faulty_network("heal").heal()
        self._cut_off.clear()
        self._apart.clear()

    def _check_sides(self, sides: Sequence[Collection[NodeId]]) -> None:
        """Raise ValueError for fewer than two sides, an empty side, or a node on two sides."""
        if len(sides) < 2 or not all(sides):
            raise ValueError("a partition has two sides or more, each with at least one node")
        named = [self._party(one) for side in sides for one in side]
        if len(set(named)) < len(named):
            raise ValueError("a node cannot be on two sides of a partition")

    def _party(self, one: NodeId) -> NodeId:
        return one if one == CLIENTS else self.nodes[one].node_id

    def _faulty_network(self, fault: str) -> Network:
        if not self.layout.has_proxies:
            raise FaultRefused(f"{fault}: this cluster was made with network_faults=False")
        if self._network is None:
            raise FaultRefused(f"{fault}: the cluster does not run")
        return self._network

    # -- Filling disks -----------------------------------------------------------------------------

    def fill_disk(self, node: NodeId) -> None:
        """Make all writes of a running node fail.

        With `disk_bytes`, the node's file system is filled to the last byte, and writes fail with
        ENOSPC. Otherwise a limit keeps the files of the process from growing, and writes fail with
        EFBIG. Setting the limit needs no privileges. The limit ends with the process.
        """
        if node in self._disks:
            self._disks[node].fill()
        else:
            take_room(self._running_node("fill_disk", node).pid)

    def free_disk(self, node: NodeId) -> None:
        """Make room on the disk again."""
        if node in self._disks:
            self._disks[node].free()
        elif self.nodes[node].is_running:
            give_room(self.nodes[node].pid)

    def _running_node(self, fault: str, node: NodeId) -> NodeProcess:
        process = self.nodes[node]
        if not process.is_running:
            raise FaultRefused(f"{fault}: node {node} does not run ({process.state})")
        return process


def _single_properties(
    brokers: int,
    given: Mapping[NodeId, Mapping[str, object]],
    racks: Sequence[str] | None,
) -> dict[NodeId, dict[str, str]]:
    """The properties of each node; raises ValueError for arguments that do not fit the cluster."""
    if not isinstance(brokers, int) or brokers < 1:
        raise ValueError(f"brokers: a cluster has at least one, not {brokers!r}")
    if racks is not None and len(racks) != brokers:
        raise ValueError(f"{len(racks)} racks were given for {brokers} brokers")
    single = {
        node: {"broker.rack": racks[node - 1]} if racks else {} for node in range(1, brokers + 1)
    }
    for node, some in given.items():
        if node not in single:
            known = ", ".join(map(str, single))
            raise ValueError(f"broker_properties: there is no node {node}; there are {known}")
        single[node].update(checked_properties(f"broker_properties[{node}]", some))
    return single
