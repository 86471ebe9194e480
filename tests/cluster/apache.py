"""A cluster of Apache Kafka with the server.properties of a Tidelog cluster."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.clients.systems import ApacheKafka, new_cluster_id

from tidelog.clusters.node_process import PATIENCE_SECONDS
from tidelog.model.ids import NodeId
from tidelog.testing import Cluster, NodeProcess, NodeStuck

STEADY = {"broker.session.timeout.ms": "30000", "auto.leader.rebalance.enable": "false"}
"""Properties of a Tidelog cluster that is compared with Kafka.

The long session prevents elections on a busy machine. The cluster of Apache Kafka has a short
session, because Kafka detects a dead broker only when the session expires.
"""


class KafkaNode(NodeProcess):
    def __init__(self, node: NodeId, config: Path, log: Path, cluster: "KafkaCluster") -> None:
        super().__init__(node, config, log)
        self._cluster = cluster

    def start(self) -> None:
        argv = [*self._cluster.java("kafka.Kafka"), str(self.config)]
        if shutil.which("setpriv"):  # kill the broker when the tests end
            argv = ["setpriv", "--pdeathsig", "KILL", *argv]
        self._process = self.spawn(argv)
        self.is_paused = False

    def await_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._is_ready():
            if not self.is_running or time.monotonic() > deadline:
                raise self.stuck("is not ready")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            return self.node_id in self._cluster.brokers_known_to(self.node_id)
        except NodeStuck:
            return False


class KafkaCluster(Cluster):
    def __init__(self, libs: Path, brokers: int = 3, *, directory: Path) -> None:
        self.libs = libs
        super().__init__(brokers, directory=directory, network_faults=False)

    def java(self, main: str) -> list[str]:
        return [*ApacheKafka.JAVA, "-cp", f"{self.libs}/*", main]

    def new_node(self, node: NodeId) -> KafkaNode:
        directory = self.directory / f"{node}.log"
        return KafkaNode(node, self.layout.config(node), directory, self)

    def format(self) -> None:
        super().format()
        cluster_id = new_cluster_id()
        for node, process in self.nodes.items():
            shutil.rmtree(self.data(node))
            tool = self.java("kafka.tools.StorageTool")
            subprocess.run(
                [*tool, "format", "-t", cluster_id, "-c", str(process.config)],
                check=True,
                stdout=subprocess.DEVNULL,
            )


def chosen_cluster(
    request: pytest.FixtureRequest, libs: Path, directories: pytest.TempPathFactory
) -> Cluster:
    """Three brokers of Tidelog, or of Apache Kafka with `--system kafka`; not started yet."""
    directory = directories.mktemp("cluster")
    if request.config.getoption("--system") == "kafka":
        return KafkaCluster(libs, directory=directory)
    return Cluster(directory=directory, properties=STEADY, network_faults=False)
