"""`tidelog node` with a running `up`, and the output of `cluster`, `quorum` and `replicas`."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.foreground import Up, attempt, await_seen, await_that, tidelog
from tests.cluster.ports import first_free_port


class Nodes:
    """Three nodes, and the commands of a user."""

    def __init__(self, up: Up) -> None:
        self.up = up
        self.bootstrap = up.bootstrap()

    def node(self, *arguments: str, status: int = 0) -> str:
        return tidelog("node", *arguments, "--dir", str(self.up.directory), status=status)

    def asks(self, *command: str, status: int = 0) -> str:
        return tidelog(*command, "--bootstrap-server", self.bootstrap, status=status)

    def has_leader(self) -> bool:
        done = attempt("quorum", "describe", "--status", "--bootstrap-server", self.bootstrap)
        return done.returncode == 0 and "LeaderId:" in done.stdout

    def states(self) -> list[str]:
        return [line.split()[1] for line in self.node("list").splitlines()[1:]]

    def in_sync(self) -> dict[int, str]:
        """The value in the ISR column for each replica of the topic's only partition."""
        head, *lines = self.asks("replicas", "--topic", "t").splitlines()
        node, state = head.index("REPLICA") + len("REPLICA"), head.index("ISR")
        return {int(line[:node].split()[-1]): line[state:].split()[0] for line in lines}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    up = Up(tmp_path / "data", first_free_port(3), brokers=3)
    try:
        yield Nodes(up)
    finally:
        assert up.end() == 0


def test_a_killed_node_stays_down_and_is_missed_until_it_is_started(nodes: Nodes) -> None:
    nodes.asks("topics", "--create", "--topic", "t", "--partitions", "1")
    await_that(nodes.in_sync, {1: "in", 2: "in", 3: "in"})
    assert nodes.node("kill", "2") == "Node 2 is down.\n"
    assert nodes.states() == ["up", "down", "up"]
    assert nodes.up.nodes()[1]["pid"] is None
    await_that(nodes.in_sync, {1: "in", 2: "OUT", 3: "in"})
    await_seen(
        lambda: nodes.asks("cluster", "describe"),
        lambda output: bool(re.search(r"^ +2 .* fenced$", output, re.MULTILINE)),
    )

    assert nodes.node("start", "2").startswith("Node 2 is starting (pid ")
    await_that(nodes.in_sync, {1: "in", 2: "in", 3: "in"})
    await_seen(lambda: nodes.up.nodes()[1]["pid"], lambda pid: pid is not None)


def test_a_majority_that_is_missing_is_named(nodes: Nodes) -> None:
    await_that(nodes.has_leader, True)
    await_seen(
        lambda: nodes.asks("quorum", "describe", "--replication"),
        lambda output: output.count("Follower") == 2,
    )
    nodes.node("stop", "1")
    nodes.node("kill", "3")
    ports = [nodes.up.port, nodes.up.port + 2]
    # The remaining node may be the quorum's leader, which resigns a moment later.
    await_that(nodes.has_leader, False)
    assert nodes.asks("quorum", "describe", "--status", status=1) == (
        "tidelog: the metadata quorum has no leader: of 3 nodes, "
        + ", ".join(f"127.0.0.1:{port}" for port in ports)
        + " cannot be reached.\n"
    )
    nodes.node("start", "1")
    await_that(nodes.has_leader, True)


def test_a_paused_node_does_not_hold_up_the_end(nodes: Nodes) -> None:
    assert nodes.node("pause", "3") == "Node 3 is paused.\n"
    assert nodes.node("resume", "3") == "Node 3 is resumed.\n"
    nodes.node("pause", "3")
    assert nodes.node("stop", "3", status=1) == (
        "tidelog: node 3 is paused; resume it before you stop it.\n"
    )
    assert nodes.node("kill", "9", status=1) == (
        "tidelog: there is no node 9; this cluster has 1, 2, 3.\n"
    )
    assert nodes.up.end() == 0


def test_where_no_cluster_runs_is_one_sentence(tmp_path: Path) -> None:
    assert tidelog("node", "list", "--dir", str(tmp_path), status=1) == (
        f"tidelog: no cluster is running in {tmp_path}; `tidelog up` starts one.\n"
    )
