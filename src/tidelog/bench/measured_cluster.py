"""A cluster of broker processes that a benchmark starts, kills and stops.

Tidelog and Apache Kafka get the same server.properties, so they run with the same settings. Each
node is a broker and a controller. The brokers end when this process ends.
"""

import shutil
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tidelog.client.client import Client
from tidelog.clusters.formatting import new_cluster_id
from tidelog.clusters.local_cluster import LocalCluster, on_free_ports
from tidelog.config.properties import format_properties
from tidelog.model.ids import NodeId
from tidelog.model.user_error import UserError

BROKERS = 3
PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 0.01
_LOG_LINES = 5

# Kafka's defaults, which `tidelog up` lowers; and the disk space of a deleted topic is free sooner.
PROPERTIES = {
    "broker.heartbeat.interval.ms": "2000",
    "broker.session.timeout.ms": "9000",
    "log.segment.delete.delay.ms": "1000",
    "share.coordinator.state.topic.replication.factor": str(BROKERS),
    "share.coordinator.state.topic.min.isr": "2",
}


class MeasuredCluster(ABC):
    """Three brokers in a directory. The context stops them and deletes the directory."""

    name: str

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._layout: LocalCluster = on_free_ports(directory, BROKERS, PROPERTIES)
        self._processes: dict[NodeId, subprocess.Popen[bytes]] = {}

    @abstractmethod
    def format(self, config: Path, cluster_id: str) -> list[str]:
        """The command that formats the log directory of one node."""

    @abstractmethod
    def serve(self, config: Path) -> list[str]:
        """The command that runs one node."""

    def __enter__(self) -> Self:
        """Write the configuration and format the directories. No node runs yet."""
        cluster_id = new_cluster_id()
        for node in self.node_ids:
            config = self._layout.config(node)
            config.parent.mkdir(parents=True)
            config.write_text(format_properties(self._properties(node)))
            done = subprocess.run(self.format(config, cluster_id), capture_output=True, text=True)
            if done.returncode:
                said = (done.stderr or done.stdout).strip().splitlines()
                raise UserError(f"{self.name} cannot format a directory: {''.join(said[-1:])}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node in self.node_ids:
            self.kill(node)
        shutil.rmtree(self.directory, ignore_errors=True)
        if self._layout.block is not None:
            self._layout.block.release()

    def _properties(self, node: NodeId) -> Mapping[str, str]:
        return self._layout.properties(node)

    # -- The nodes ---------------------------------------------------------------------------------

    @property
    def node_ids(self) -> range:
        return self._layout.node_ids

    @property
    def bootstrap(self) -> str:
        return self._layout.bootstrap

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes.values()]

    def bootstrap_without(self, node: NodeId) -> str:
        servers = self._layout.bootstrap.split(",")
        return ",".join(server for place, server in enumerate(servers, 1) if place != node)

    def start(self, node: NodeId) -> None:
        argv = self.serve(self._layout.config(node))
        if setpriv := shutil.which("setpriv"):
            argv = [setpriv, "--pdeathsig", "KILL", *argv]
        with self._log(node).open("ab") as log:
            self._processes[node] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0
            )

    def kill(self, node: NodeId) -> None:
        """kill -9."""
        process = self._processes.pop(node, None)
        if process is not None:
            process.kill()
            process.wait()

    def await_brokers(self) -> None:
        """Wait until the cluster lists all brokers."""

        def are_all_listed() -> bool:
            with Client(self.bootstrap) as client:
                return len(client.node_ids()) == BROKERS

        self.await_condition(are_all_listed, "lists all brokers")

    def await_condition(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until the condition holds; a broker that cannot be reached yet is no error."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        reason = ""
        while time.monotonic() < deadline:
            self._check_processes()
            try:
                if holds():
                    return
            except UserError as error:
                reason = f" ({error})"
            time.sleep(PAUSE_SECONDS)
        raise UserError(f"{self.name}: no cluster that {what}{reason}.")

    def _check_processes(self) -> None:
        for node, process in self._processes.items():
            if (status := process.poll()) is not None:
                lines = self._log(node).read_text(errors="replace").splitlines()[-_LOG_LINES:]
                raise SystemExit(
                    f"tidelog: node {node} of {self.name} ended with status {status}:\n"
                    + "\n".join(lines)
                )

    def _log(self, node: NodeId) -> Path:
        return self.directory / f"{node}.log"


class TidelogCluster(MeasuredCluster):
    """Tidelog, with the interpreter that runs this process."""

    name = "tidelog"

    def format(self, config: Path, cluster_id: str) -> list[str]:
        command = [sys.executable, "-P", "-m", "tidelog.cli.main", "format"]
        return [*command, "--cluster-id", cluster_id, "--config", str(config)]

    def serve(self, config: Path) -> list[str]:
        return [sys.executable, "-P", "-m", "tidelog.cli.main", "serve", "--config", str(config)]
