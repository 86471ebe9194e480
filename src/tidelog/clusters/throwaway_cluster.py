"""A cluster that runs for one command, in a temporary directory and on free ports.

The files of the cluster are kept only if the command failed. The nodes are child processes of the
command. The nodes end when the command ends, even if the command is killed.
"""

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tidelog.clusters.free_ports import HOST
from tidelog.clusters.local_cluster import LocalCluster, on_free_ports
from tidelog.clusters.node_process import NodeProcess, NodeStuck
from tidelog.model.ids import NodeId
from tidelog.model.user_error import UserError
from tidelog.network import Network


class ThrowawayCluster:
    """Nodes 1..brokers. The context begins when all nodes accept writes.

    With `has_network`, all traffic passes through `network`, which can hold traffic back.
    """

    def __init__(
        self,
        brokers: int,
        properties: Mapping[str, str] | None = None,
        *,
        has_network: bool = False,
    ) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="tidelog-demo-"))
        self._layout: LocalCluster = on_free_ports(
            self.directory, brokers, properties, has_proxies=has_network
        )
        self._network: Network | None = None
        self._nodes = {
            node: NodeProcess(node, self._layout.config(node), self.directory / f"{node}.log")
            for node in self._layout.node_ids
        }

    @property
    def bootstrap(self) -> str:
        return self._layout.bootstrap

    @property
    def network(self) -> Network:
        assert self._network is not None, "this cluster was started without a network"
        return self._network

    def address(self, node: NodeId) -> tuple[str, int]:
        """The host and the port of one node, for clients."""
        return HOST, self._layout.port(node)

    def __enter__(self) -> Self:
        try:
            if self._layout.has_proxies:
                self._network = Network(self._layout.places())
            self._layout.prepare()
            for node in self._nodes.values():
                node.start()
            for node in self._nodes.values():
                self._await_ready(node)
            if self._network is not None:
                self._network.know({id: node.pid for id, node in self._nodes.items()})
        except BaseException as error:
            self._end(failed=isinstance(error, Exception))
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(failed=isinstance(error, Exception))

    def kill(self, node: NodeId) -> None:
        """kill -9. The node stays down until `start` is called."""
        self._nodes[node].kill()

    def start(self, node: NodeId) -> None:
        """Start the node, and do not wait until it is ready."""
        self._nodes[node].start()

    def _await_ready(self, node: NodeProcess) -> None:
        try:
            node.await_ready()
        except NodeStuck:
            lines = node.log_text().splitlines() or ["its log is empty."]
            raise UserError(f"node {node.node_id} does not start: {lines[-1]}") from None

    def _end(self, *, failed: bool) -> None:
        for node in self._nodes.values():
            node.kill()
        if self._network is not None:
            self._network.close()
        if failed:
            print(f"tidelog: the logs of the nodes are kept in {self.directory}", file=sys.stderr)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)
