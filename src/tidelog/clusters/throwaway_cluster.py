"""A cluster for the length of a command: in a temporary directory, on free ports, gone at its end.

What its nodes have written is kept only where the command failed. The nodes are children of this
process, watched over by a thread: however this process ends, they notice, and end too.
"""

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from threading import Condition, Thread
from types import TracebackType
from typing import Self

from tidelog.clusters import control
from tidelog.clusters.child import NodeToRun
from tidelog.clusters.free_ports import HOST
from tidelog.clusters.local_cluster import LocalCluster, on_free_ports
from tidelog.clusters.supervisor import Supervisor
from tidelog.model.ids import NodeId
from tidelog.model.user_error import UserError
from tidelog.network import Network

START_SECONDS = 60.0
END_SECONDS = 10.0


class ThrowawayCluster:
    """Nodes 1..brokers; as a context, from when all of them take writes.

    With `has_network` all that they say passes through `network`, where it can be held.
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
            self.directory, brokers, properties, has_doors=has_network
        )
        self._network: Network | None = None
        self._serving: dict[NodeId, int | None] = {}
        self._news = Condition()
        nodes = [
            NodeToRun(node, str(self._layout.config(node)), str(self.directory / f"{node}.log"))
            for node in self._layout.node_ids
        ]
        self._supervisor = Supervisor(
            nodes, self._hear, restart=False, control=control.ControlSocket(self.directory)
        )
        self._thread = Thread(target=self._supervise, name="supervisor", daemon=True)

    @property
    def bootstrap(self) -> str:
        return self._layout.bootstrap

    @property
    def network(self) -> Network:
        assert self._network is not None, "this cluster was started without"
        return self._network

    def address(self, node: NodeId) -> tuple[str, int]:
        """Where clients reach one node."""
        return HOST, self._layout.port(node)

    def __enter__(self) -> Self:
        try:
            if self._layout.has_doors:
                self._network = Network(self._layout.places())
            self._layout.prepare()
            self._thread.start()
            for node in self._layout.node_ids:
                self.await_ready(node)
            if self._network is not None:
                self._network.know({node: pid for node, pid in self._serving.items() if pid})
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
        """kill -9; it stays down until it is started."""
        control.ask(self.directory, f"kill {node}")

    def start(self, node: NodeId) -> None:
        control.ask(self.directory, f"start {node}")

    def await_ready(self, node: NodeId) -> None:
        """Wait until the node takes writes."""
        with self._news:
            heard = self._news.wait_for(
                lambda: self._serving.get(node) or not self._thread.is_alive(), START_SECONDS
            )
        if not heard or not self._thread.is_alive():
            raise UserError(f"node {node} does not start: {self._last_words(node)}")

    def _last_words(self, node: NodeId) -> str:
        log = self.directory / f"{node}.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return lines[-1] if lines else "it says nothing."

    def _supervise(self) -> None:
        self._supervisor.run()
        with self._news:
            self._news.notify_all()

    def _hear(self, node: NodeId, pid: int | None) -> None:
        with self._news:
            self._serving[node] = pid
            self._news.notify_all()

    def _end(self, *, failed: bool) -> None:
        if self._thread.is_alive():
            self._supervisor.interrupt()
            self._thread.join(END_SECONDS)
            self._supervisor.interrupt()
            self._thread.join()
        if self._network is not None:
            self._network.close()
        if failed:
            print(f"tidelog: the logs of the nodes are kept in {self.directory}", file=sys.stderr)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)
