"""F65 with real processes: nodes have few descriptors, and clients open many connections."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from tests.clients.librdkafka import read_messages
from tests.cluster.creations import assign_topic
from tests.cluster.foreground import await_seen, tidelog
from tests.cluster.load import NUMBER, NumberedLoad

from tidelog.clusters.node_process import NodeProcess, NodeStuck
from tidelog.model.ids import NodeId
from tidelog.testing import Cluster

LIMIT = 300

LIMITED = """
import os, resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
os.execv(sys.argv[2], sys.argv[2:])
"""


class LimitedNode(NodeProcess):
    """A node with at most `limit` descriptors."""

    limit = LIMIT

    def spawn(self, argv: list[str], *shared: int) -> Popen[bytes]:
        return super().spawn([sys.executable, "-c", LIMITED, str(self.limit), *argv], *shared)


class LimitedCluster(Cluster):
    def __init__(self, brokers: int = 3, *, limit: int = LIMIT, **options: Any) -> None:
        self._limit = limit
        super().__init__(brokers, **options)

    def new_node(self, node: NodeId) -> NodeProcess:
        made = LimitedNode(node, self.layout.config(node), self.directory / f"{node}.log")
        made.limit = self._limit
        return made


@contextmanager
def silent(ports: list[int], number: int) -> Iterator[list[socket.socket]]:
    """Open this many connections to each port; the connections never send a byte."""
    held: list[socket.socket] = []
    try:
        for _ in range(number):
            for port in ports:
                sock = socket.socket()
                sock.setblocking(False)
                sock.connect_ex(("127.0.0.1", port))
                held.append(sock)
        yield held
    finally:
        for sock in held:
            sock.close()


def check(cluster: Cluster, load: NumberedLoad) -> None:
    """Assert that every acknowledged record is at its acknowledged offset, and nowhere else."""
    end = max(load.acked.values()) + 1
    found = [
        NUMBER.unpack_from(message.value() or b"")
        for message in read_messages(cluster, load.topic, end)
    ]
    assert not [n for n, offset in load.acked.items() if found[offset] != (1, n)]
    assert len(set(found)) == len(found)


def logs(cluster: Cluster) -> str:
    return "".join(node.log.read_text() for node in cluster.nodes.values())


@pytest.mark.parametrize("listener", ["broker", "controller"])
def test_f65_silent_connections_beyond_the_limit_end_no_node(tmp_path: Path, listener: str) -> None:
    with LimitedCluster(directory=tmp_path, network_faults=False) as cluster:
        assign_topic(cluster, "kept", [1, 2, 3])
        cluster.wait_for_isr("kept", 0, {1, 2, 3})
        pids = {node.pid for node in cluster.nodes.values()}
        port_of = cluster.port if listener == "broker" else cluster.controller_port
        ports = [port_of(node) for node in cluster.nodes]
        with NumberedLoad(cluster, "kept", 1, {"enable.idempotence": True}) as load:
            load.await_acks(100)
            with silent(ports, 2 * LIMIT):
                load.await_acks(100)
                # New clients can connect, and the nodes can open new files.
                where = ("--bootstrap-server", cluster.bootstrap)
                tidelog("topics", "--create", "--topic", "new", "--partitions", "150", *where)
                assert "150" in tidelog("topics", "--describe", "--topic", "new", *where)
                load.await_acks(100)
        cluster.wait_for_isr("kept", 0, {1, 2, 3})
        check(cluster, load)
        assert {node.pid for node in cluster.nodes.values() if node.is_running} == pids
        said = logs(cluster)
        assert "out of use" not in said
        assert "has failed" not in said
        assert "Traceback" not in said


def test_f65_limits_of_connections_change_while_a_broker_runs(tmp_path: Path) -> None:
    with Cluster(1, directory=tmp_path, network_faults=False) as cluster:
        address = ("127.0.0.1", cluster.port(1))
        where = ("--bootstrap-server", cluster.bootstrap)
        broker = ("--entity-type", "brokers", "--entity-name", "1", *where)
        limit = "max.connections.per.ip.overrides=[127.0.0.1:5]"
        tidelog("configs", "--alter", "--add-config", limit, *broker)
        held = [socket.create_connection(address) for _ in range(30)]
        await_seen(lambda: sum(map(is_closed, held)), lambda closed: closed >= 25)
        assert "the limit of max.connections.per.ip" in logs(cluster)
        for sock in held:
            sock.close()
        name = "max.connections.per.ip.overrides"
        tidelog("configs", "--alter", "--delete-config", name, *broker)
        held = [socket.create_connection(address) for _ in range(30)]
        assert not tidelog("topics", "--list", *where).strip()
        assert not any(map(is_closed, held))
        for sock in held:
            sock.close()


def is_closed(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_f65_too_few_descriptors_to_start_are_said_in_a_sentence(tmp_path: Path) -> None:
    cluster = LimitedCluster(1, directory=tmp_path, limit=100)
    with pytest.raises(NodeStuck, match="ended before it was ready"), cluster:
        pass
    said = (tmp_path / "1.log").read_text()
    needed = "this process may open only 100 files (ulimit -Hn); at least 136 are needed"
    assert said.splitlines() == [f"tidelog: {needed}."]


def test_f65_a_node_with_the_fewest_descriptors_serves_many_partitions(tmp_path: Path) -> None:
    with LimitedCluster(1, directory=tmp_path, limit=136, network_faults=False) as cluster:
        where = ("--bootstrap-server", cluster.bootstrap)
        tidelog("topics", "--create", "--topic", "many", "--partitions", "500", *where)
        ports = [cluster.port(1), cluster.controller_port(1)]
        with NumberedLoad(cluster, "many", 1) as load, silent(ports, 300):
            load.await_acks(200)
        check(cluster, load)
        assert "at most 136 open files: 28 for clients, 27 for each log directory" in logs(cluster)
        assert cluster.nodes[1].stop() == 0
