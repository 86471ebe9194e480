"""A metadata quorum of processes grows from one voter to three and shrinks again (KIP-853).

Apache Kafka's own kafka-metadata-quorum makes the changes.
"""

import re
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.clients.java import run_tool
from tests.cluster.foreground import TIDELOG, await_seen, await_that
from tests.cluster.ports import first_free_port

from tidelog.clusters.formatting import new_cluster_id, read_identity
from tidelog.testing import Cluster, NodeProcess

CONTROLLERS = 10_000
"""The distance from a node's broker port to its controller port."""
MADE_BEFORE = re.compile(r"is (already|not) part of the set of voters")
"""The error for a change that is already made; it occurs if the tool repeats a slow request."""


class Node:
    """A broker and controller in one process, which finds the quorum by its bootstrap servers."""

    def __init__(self, directory: Path, id_: int, first_port: int) -> None:
        self.id, self.first_port = id_, first_port
        self.controller_port = first_port + CONTROLLERS + id_
        self.path = directory / f"{id_}.properties"
        self.logs = directory / str(id_)
        self.process = NodeProcess(id_, self.path, directory / f"{id_}.log")
        self.write()

    @property
    def broker(self) -> str:
        return f"127.0.0.1:{self.first_port + self.id}"

    @property
    def controller(self) -> str:
        return f"127.0.0.1:{self.controller_port}"

    @property
    def directory(self) -> str:
        return read_identity(str(self.logs))["directory.id"]

    def write(self) -> None:
        servers = (f"127.0.0.1:{self.first_port + CONTROLLERS + one}" for one in (1, 2, 3))
        self.path.write_text(
            f"process.roles=broker,controller\nnode.id={self.id}\nlog.dirs={self.logs}\n"
            f"controller.quorum.bootstrap.servers={','.join(servers)}\n"
            f"listeners=PLAINTEXT://{self.broker},CONTROLLER://{self.controller}\n"
            f"advertised.listeners=PLAINTEXT://{self.broker}\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            "controller.listener.names=CONTROLLER\n"
            # Make snapshots often, because a snapshot must contain the voters, too.
            "metadata.log.max.record.bytes.between.snapshots=2000\n"
        )

    def format(self, cluster_id: str, how: str) -> None:
        command = [*TIDELOG, "format", "--config", str(self.path), "--cluster-id", cluster_id, how]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[int, Node]]:
    port, cluster_id = first_free_port(5), new_cluster_id()
    made = {id_: Node(tmp_path, id_, port) for id_ in (1, 2, 3)}
    for node in made.values():
        node.format(cluster_id, "--standalone" if node.id == 1 else "--no-initial-controllers")
        node.process.start()
    yield made
    for node in made.values():
        node.process.kill()


def voters_in(status: str) -> str:
    line = re.search(r"CurrentVoters: +(.*)", status)
    assert line is not None, status
    return line[1]


def change(run: Callable[..., str], expected: str, *args: str) -> str:
    """Make a change; return the tool's output. The error that it was already made is accepted."""
    try:
        said = run(*args)
        assert expected in said, said
    except AssertionError as failure:
        said = str(failure)
        if not MADE_BEFORE.search(said):
            raise
    return said


class Quorum:
    """kafka-metadata-quorum, connected to any node."""

    def __init__(self, libs: Path) -> None:
        self._libs = libs

    def run(self, *args: str) -> str:
        return run_tool(self._libs, "kafka-metadata-quorum", *args)

    def status(self, asked: Node) -> str:
        return self.run("--bootstrap-server", asked.broker, "describe", "--status")

    def voters(self, asked: Node) -> list[int]:
        return [int(one) for one in re.findall(r'"id": (\d+)', voters_in(self.status(asked)))]

    def leader(self, asked: Node) -> int:
        found = re.search(r"LeaderId: +(-?\d+)", self.status(asked))
        assert found is not None
        return int(found[1])

    def add(self, by: tuple[str, str], node: Node) -> None:
        what = ("--command-config", str(node.path), "add-controller")
        change(self.run, f"Added controller {node.id}", *by, *what)

    def remove(self, by: tuple[str, str], node: Node) -> None:
        who = ("--controller-id", str(node.id), "--controller-directory-id", node.directory)
        change(self.run, "Removed", *by, "remove-controller", *who)


@pytest.fixture
def quorum(kafka_libs: Path) -> Quorum:
    return Quorum(kafka_libs)


def await_observers(quorum: Quorum, nodes: dict[int, Node]) -> None:
    """Wait until the leader, node 1, knows the others as observers."""
    await_seen(
        lambda: quorum.status(nodes[3]), lambda said: '"id": 2' in said and '"id": 3' in said
    )


def by_broker(node: Node) -> tuple[str, str]:
    return "--bootstrap-server", node.broker


def by_controller(node: Node) -> tuple[str, str]:
    return "--bootstrap-controller", node.controller


def test_a_quorum_grows_from_one_to_three_and_shrinks(
    nodes: dict[int, Node], quorum: Quorum
) -> None:
    await_observers(quorum, nodes)
    await_that(lambda: quorum.voters(nodes[1]), [1])
    quorum.add(by_broker(nodes[3]), nodes[2])
    quorum.add(by_controller(nodes[2]), nodes[3])
    await_that(lambda: quorum.voters(nodes[1]), [1, 2, 3])

    # Nodes 2 and 3 continue without node 1, which then returns as a voter.
    nodes[1].process.kill()
    await_seen(lambda: quorum.leader(nodes[2]), lambda leader: leader in (2, 3))
    nodes[1].process.start()
    await_that(lambda: quorum.voters(nodes[1]), [1, 2, 3])

    # The leader removes itself, and is no longer a voter after its next start.
    leader = await_seen(lambda: quorum.leader(nodes[1]), lambda leader: leader in nodes)
    others = [node for node in nodes.values() if node.id != leader]
    quorum.remove(by_broker(others[0]), nodes[leader])
    left = [node.id for node in others]
    await_seen(lambda: quorum.leader(others[0]), lambda leader: leader in left)
    nodes[leader].process.stop()
    nodes[leader].process.start()
    await_seen(lambda: quorum.status(nodes[leader]), lambda said: f'"id": {leader}' in said)
    await_that(lambda: quorum.voters(nodes[leader]), left)

    quorum.remove(by_controller(others[1]), others[0])
    await_that(lambda: quorum.voters(nodes[leader]), [others[1].id])


def test_static_voters_become_dynamic_in_a_running_cluster(
    tmp_path: Path, kafka_libs: Path
) -> None:
    """kafka-features raises kraft.version; then a voter is removed and added again."""
    with Cluster(directory=tmp_path, network_faults=False) as cluster:
        at = ("--bootstrap-server", cluster.bootstrap)
        features = partial(run_tool, kafka_libs, "kafka-features", *at)
        quorum = partial(run_tool, kafka_libs, "kafka-metadata-quorum", *at)
        assert "was upgraded to 1" in features("upgrade", "--feature", "kraft.version=1")
        raised = re.compile(r"kraft.version.*FinalizedVersionLevel: 1")
        await_seen(lambda: features("describe"), lambda said: raised.search(said) is not None)

        node = next(node for node in cluster.nodes if node != cluster.controller())
        directory = read_identity(str(cluster.data(node)))["directory.id"]
        who = ("--controller-id", str(node), "--controller-directory-id", directory)
        change(quorum, "Removed", "remove-controller", *who)
        voters, named = lambda: voters_in(quorum("describe", "--status")), f'"id": {node}'
        await_seen(voters, lambda said: named not in said)
        what = ("--command-config", str(cluster.nodes[node].config), "add-controller")
        await_seen(lambda: change(quorum, "Added", *what), bool)
        for one in cluster.nodes:
            cluster.restart(one)
        await_seen(voters, lambda said: named in said)


def test_a_voter_that_has_moved_tells_the_leader_by_itself(
    nodes: dict[int, Node], quorum: Quorum
) -> None:
    await_observers(quorum, nodes)
    for id_ in (2, 3):
        quorum.add(by_broker(nodes[1]), nodes[id_])
    moved = nodes[2]
    moved.process.stop()
    moved.controller_port += 3
    moved.write()
    moved.process.start()
    await_seen(lambda: quorum.status(nodes[1]), lambda said: moved.controller in said)
