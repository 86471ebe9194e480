"""A cluster on this machine, laid out under one directory:

DIR/cluster.json             id, pid and ports of each node, while the cluster runs
DIR/.control                 the socket through which `tidelog node` reaches `tidelog up`
DIR/1/server.properties      the configuration of node 1, written at every start
DIR/1/data                   the log directory of node 1, formatted on first use
"""

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tidelog.clusters.formatting import format_directories, new_cluster_id, read_identity
from tidelog.clusters.free_ports import HOST, PortBlock, becomes_free, is_own_address
from tidelog.clusters.node_settings import settings_of
from tidelog.config.properties import format_properties
from tidelog.model.ids import NodeId
from tidelog.model.user_error import UserError
from tidelog.network import Place

BROKER_LISTENER, CONTROLLER_LISTENER = "PLAINTEXT", "CONTROLLER"
INTERNAL_LISTENER = "INTERNAL"
"""The listener for traffic between brokers, if clients do not connect to 127.0.0.1."""
CONTROLLER_PORTS = 10_000
"""The distance from a broker port to its controller port. The metrics port is halfway."""

HIGHEST_PORT = 65_535
FIRST_EPHEMERAL_PORT = 32_768
"""The system uses this port and higher ports for outgoing connections, so listeners avoid them."""


@dataclass(slots=True)
class LocalCluster:
    """Nodes 1..brokers, each a broker and a controller. Node n has port first_port + n - 1."""

    directory: Path
    brokers: int
    first_port: int
    overrides: Mapping[str, str] = field(default_factory=dict)
    node_overrides: Mapping[NodeId, Mapping[str, str]] = field(default_factory=dict)
    """Properties of single nodes, which take precedence over `overrides`."""
    has_proxies: bool = False
    """Whether all connections to a listener pass through a proxy of `tidelog.network`."""
    has_metrics: bool = False
    """Whether each node serves metrics for Prometheus on a separate port."""
    host: str = HOST
    """The address on which brokers listen for clients. Other listeners stay on 127.0.0.1."""
    advertised_host: str | None = None
    """The address that clients connect to, if it differs from `host`."""
    pids: dict[NodeId, int | None] = field(default_factory=dict)
    """The process id of each node that is ready; None for a node that has ended."""
    block: PortBlock | None = None
    """The reservation of the ports, if `on_free_ports` chose them."""
    was_whole: bool = False
    """Whether all nodes have been ready at the same time."""
    _lock: IO[str] | None = None
    _made: list[Path] = field(default_factory=list)
    """The directories that `claim` created. `release` removes the empty ones."""

    @property
    def node_ids(self) -> range:
        return range(1, self.brokers + 1)

    @property
    def bootstrap(self) -> str:
        return ",".join(self._advertised(node) for node in self.node_ids)

    def _advertised(self, node: NodeId) -> str:
        return f"{_in_address(self.advertised_host or self.host)}:{self.port(node)}"

    @property
    def has_internal_listener(self) -> bool:
        """Whether brokers have a separate listener on 127.0.0.1 for traffic between them."""
        return self.host != HOST or self.advertised_host not in (None, HOST)

    def port(self, node: NodeId) -> int:
        """The port on which clients and other brokers reach the node."""
        return self.first_port + node - 1

    def controller_addresses(self) -> dict[NodeId, str]:
        return {node: f"{HOST}:{self.controller_port(node)}" for node in self.node_ids}

    def controller_port(self, node: NodeId) -> int:
        return self.port(node) + self._to_controllers

    def metrics_port(self, node: NodeId) -> int:
        return self.port(node) + self._to_controllers // 2

    def metrics_address(self, node: NodeId) -> str:
        host = _in_address(self.advertised_host or self.host)
        return f"http://{host}:{self.metrics_port(node)}/metrics"

    def internal_port(self, node: NodeId) -> int:
        return self.port(node) + self._to_controllers // 4

    @property
    def _to_controllers(self) -> int:
        up = self.first_port + CONTROLLER_PORTS + self._width <= FIRST_EPHEMERAL_PORT
        return CONTROLLER_PORTS if up else -CONTROLLER_PORTS

    @property
    def _width(self) -> int:
        """The number of ports for each kind of listener."""
        return 2 * self.brokers if self.has_proxies else self.brokers

    def places(self) -> list[Place]:
        """The listeners behind the proxies of `tidelog.network`."""
        assert self.has_proxies
        return [
            Place(node, listener, port + self.brokers, port)
            for node in self.node_ids
            for listener, port in (
                (BROKER_LISTENER, self.port(node)),
                (CONTROLLER_LISTENER, self.controller_port(node)),
            )
        ]

    def config(self, node: NodeId) -> Path:
        return self.directory / str(node) / "server.properties"

    def data(self, node: NodeId) -> Path:
        return self.directory / str(node) / "data"

    @property
    def _state(self) -> Path:
        return self.directory / "cluster.json"

    # -- Before the start --------------------------------------------------------------------------

    def claim(self) -> None:
        """Create and lock the directory. Only one `up` at a time may use a directory."""
        self._check_name()
        for path in (self.directory, *self.directory.parents):
            if not path.exists():
                self._made.append(path)
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        while self._lock is None:
            self._lock = self._try_lock()
        self._state.unlink(missing_ok=True)

    def _check_name(self) -> None:
        if "," in str(self.directory.absolute()):
            raise UserError(
                f"{str(self.directory.absolute())!r} contains a comma, which separates directories "
                "in log.dirs; use another --dir."
            )

    def _try_lock(self) -> IO[str] | None:
        """The lock; None if its previous holder has just removed the lock file."""
        path = self.directory / ".lock"
        lock = path.open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            where = _running_at(self._state)
            raise UserError(f"a cluster is running in {self.directory} already{where}.") from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                return lock
        lock.close()
        return None

    def release(self) -> None:
        """Unlock the directory, and remove cluster.json and empty directories that `claim` made."""
        if self._lock is None:
            return
        self._state.unlink(missing_ok=True)
        # Remove the lock file while it is locked. A process that opened the file earlier and locks
        # it later then sees that the file is gone.
        (self.directory / ".lock").unlink(missing_ok=True)
        self._lock.close()
        self._lock = None
        for path in self._made:
            with suppress(OSError):  # the directory is not empty
                path.rmdir()

    def check_ports(self) -> None:
        first_ports = [(self.host, self.port(1)), (HOST, self.controller_port(1))]
        if self.has_metrics:
            first_ports.append((self.host, self.metrics_port(1)))
        if self.has_internal_listener:
            first_ports.append((HOST, self.internal_port(1)))
        firsts = [first for _, first in first_ports]
        last = max(firsts) + self._width - 1
        widest = CONTROLLER_PORTS // (4 if self.has_internal_listener else 2)
        if min(firsts) < 1 or last > HIGHEST_PORT or self._width > widest:
            raise UserError(
                f"there are no ports for {self.brokers} brokers from {self.first_port} on."
            )
        if not is_own_address(self.host):
            raise UserError(
                f"this machine cannot listen on {self.host}; --host needs one of its own addresses."
            )
        for host, first in first_ports:
            for port in range(first, first + self._width):
                if not becomes_free(port, host):
                    raise UserError(f"port {port} on {host} is in use; choose others with --port.")

    def prepare(self) -> None:
        """Write each node's configuration and format its log directory on first use."""
        self._check_name()
        cluster_id = self._known_cluster_id() or new_cluster_id()
        settings = {
            node: settings_of(str(self.config(node)), self.properties(node))
            for node in self.node_ids
        }
        for node in self.node_ids:
            config = self.config(node)
            config.parent.mkdir(exist_ok=True)
            content = format_properties(self.properties(node))
            config.write_text(f"# Written by `tidelog up` at every start.\n{content}")
            format_directories(settings[node], cluster_id, ignore_formatted=True)

    def properties(self, node: NodeId) -> dict[str, str]:
        copies = min(3, self.brokers)
        in_sync = max(1, copies - 1)
        voters = (f"{one}@{at}" for one, at in self.controller_addresses().items())
        behind = self.brokers if self.has_proxies else 0
        listeners = [
            f"{BROKER_LISTENER}://{_in_address(self.host)}:{self.port(node) + behind}",
            f"{CONTROLLER_LISTENER}://{HOST}:{self.controller_port(node) + behind}",
        ]
        advertised = [f"{BROKER_LISTENER}://{self._advertised(node)}"]
        internal = {}
        if self.has_internal_listener:
            listener = f"{INTERNAL_LISTENER}://{HOST}:{self.internal_port(node)}"
            listeners.append(listener)
            advertised.append(listener)
            internal = {"inter.broker.listener.name": INTERNAL_LISTENER}
        return {
            "process.roles": "broker,controller",
            "node.id": str(node),
            "controller.quorum.voters": ",".join(voters),
            "listeners": ",".join(listeners),
            "advertised.listeners": ",".join(advertised),
            **internal,
            "controller.listener.names": CONTROLLER_LISTENER,
            "listener.security.protocol.map": ",".join(
                f"{one.partition(':')[0]}:PLAINTEXT" for one in listeners
            ),
            "log.dirs": str(self.data(node).absolute()),
            "default.replication.factor": str(copies),
            "min.insync.replicas": str(in_sync),
            "offsets.topic.replication.factor": str(copies),
            "transaction.state.log.replication.factor": str(copies),
            "transaction.state.log.min.isr": str(in_sync),
            "group.initial.rebalance.delay.ms": "0",
            # These two settings define how soon a broker that does not answer is fenced. The
            # controller notices a dead process at once, without a timeout.
            "broker.heartbeat.interval.ms": "250",
            "broker.session.timeout.ms": "2000",
            **({"tidelog.metrics.port": str(self.metrics_port(node))} if self.has_metrics else {}),
            **self.overrides,
            **self.node_overrides.get(node, {}),
        }

    def _known_cluster_id(self) -> str | None:
        for node in self.node_ids:
            with suppress(FileNotFoundError):
                return read_identity(str(self.data(node))).get("cluster.id")
        return None

    # -- While the cluster runs --------------------------------------------------------------------

    def note(self, node: NodeId, pid: int | None) -> bool:
        """Record that a node is ready or, if `pid` is None, that the node has ended.

        Returns True when all nodes are ready for the first time.
        """
        self.pids[node] = pid
        if self.was_whole:
            self._write_state()
            return False
        self.was_whole = len(self.pids) == self.brokers and None not in self.pids.values()
        if self.was_whole:
            self._write_state()
        return self.was_whole

    def _ports(self, node: NodeId) -> dict[str, int]:
        ports = {"broker": self.port(node), "controller": self.controller_port(node)}
        return {**ports, "metrics": self.metrics_port(node)} if self.has_metrics else ports

    def _write_state(self) -> None:
        state = {
            "cluster_id": self._known_cluster_id(),
            "bootstrap": self.bootstrap,
            "nodes": [
                {
                    "id": node,
                    "pid": self.pids[node],
                    "ports": self._ports(node),
                }
                for node in self.node_ids
            ],
        }
        draft = self._state.with_suffix(".tmp")
        draft.write_text(json.dumps(state, indent=2) + "\n")
        draft.rename(self._state)


def on_free_ports(
    directory: Path,
    brokers: int,
    overrides: Mapping[str, str] | None = None,
    node_overrides: Mapping[NodeId, Mapping[str, str]] | None = None,
    *,
    has_proxies: bool = False,
) -> LocalCluster:
    """A cluster on reserved ports, which no other cluster uses, even while a node is down."""
    while True:
        block = PortBlock(2 * brokers)
        layout = LocalCluster(
            directory, brokers, block.first, overrides or {}, node_overrides or {}, has_proxies
        )
        layout.block = block
        try:
            layout.check_ports()
        except UserError:
            block.release()
            continue
        return layout


def _in_address(host: str) -> str:
    """The host as it is written before `:PORT`. An IPv6 address is in brackets."""
    return f"[{host}]" if ":" in host else host


def _running_at(state: Path) -> str:
    try:
        return f" (bootstrap {json.loads(state.read_text())['bootstrap']})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
