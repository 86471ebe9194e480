"""Processes that are watched over: told ready, started again, stopped together, never orphaned."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Stands for a node: fails or tells its pid and hangs if its configuration says so, else serves.
CHILD = """
import os, signal, socket, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
behaviour = open(options["--config"]).read()
if behaviour == "fails":
    sys.exit(3)
supervisor = socket.socket(fileno=int(options["--supervisor-fd"]))
if behaviour.startswith("/"):
    open(behaviour, "w").write(str(os.getpid()))
    supervisor.recv(1)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
supervisor.send(b"!")
supervisor.recv(1)
"""

SUPERVISE = """
import sys
from tidelog.cli.supervisor import NodeProcess, Supervisor
nodes = [NodeProcess(number, config) for number, config in enumerate(sys.argv[3:], 1)]
ready = lambda node, pid: print(node.node_id, pid, flush=True)
program = (sys.executable, sys.argv[1])
sys.exit(Supervisor(nodes, ready, restart=sys.argv[2] == "restart", program=program).run())
"""


class Running:
    def __init__(self, directory: Path, configs: list[str], mode: str) -> None:
        child = directory / "child.py"
        child.write_text(CHILD)
        paths = []
        for number, text in enumerate(configs):
            (directory / str(number)).write_text(text)
            paths.append(str(directory / str(number)))
        self.process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISE, str(child), mode, *paths],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
            text=True,
        )

    def ready(self) -> tuple[int, int]:
        """The next (node, pid) that is told."""
        assert self.process.stdout is not None
        node, pid = map(int, self.process.stdout.readline().split())
        return node, pid

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


class Launcher:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.launched: list[Running] = []

    def __call__(self, configs: list[str], mode: str = "restart") -> Running:
        self.launched.append(Running(self._directory, configs, mode))
        return self.launched[-1]


@pytest.fixture
def supervise(tmp_path: Path) -> Iterator[Launcher]:
    launcher = Launcher(tmp_path)
    yield launcher
    for running in launcher.launched:
        running.close()


def await_death(pid: int) -> None:
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([watched], [], [])
    os.close(watched)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_every_node(supervise: Launcher, number: signal.Signals) -> None:
    running = supervise(["serves", "serves", "serves"])
    told = [running.ready() for _ in range(3)]
    assert sorted(node for node, _ in told) == [1, 2, 3]
    running.process.send_signal(number)
    assert running.process.wait() == 0
    for _, pid in told:
        await_death(pid)


def test_a_node_that_dies_is_started_again(supervise: Launcher) -> None:
    running = supervise(["serves"])
    node, first = running.ready()
    os.kill(first, signal.SIGKILL)
    again, second = running.ready()
    assert again == node
    assert second != first
    running.process.terminate()
    assert running.process.wait() == 0


def test_a_node_that_is_killed_while_it_starts_is_started_again(
    supervise: Launcher, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pids")
    running = supervise([str(tmp_path / "pids")])
    os.kill(int((tmp_path / "pids").read_text()), signal.SIGKILL)
    starting = int((tmp_path / "pids").read_text())
    (tmp_path / "0").write_text("serves")
    os.kill(starting, signal.SIGKILL)
    assert running.ready()[0] == 1


def test_a_node_that_cannot_start_again_leaves_the_others_alone(
    supervise: Launcher, tmp_path: Path
) -> None:
    running = supervise(["serves", "serves"])
    pids = dict(running.ready() for _ in range(2))
    (tmp_path / "0").write_text("fails")
    os.kill(pids[1], signal.SIGKILL)
    os.kill(pids[2], signal.SIGKILL)
    assert running.ready()[0] == 2
    assert running.process.stderr is not None
    assert any("node 1 cannot start again" in line for line in running.process.stderr)
    running.process.terminate()
    assert running.process.wait() == 3


def test_a_node_that_dies_stays_dead_where_that_is_wished(supervise: Launcher) -> None:
    running = supervise(["serves"], mode="leave")
    os.kill(running.ready()[1], signal.SIGKILL)
    assert running.process.wait() == 0


def test_a_node_that_stops_in_order_is_not_started_again(supervise: Launcher) -> None:
    running = supervise(["serves"])
    os.kill(running.ready()[1], signal.SIGTERM)
    assert running.process.wait() == 0


def test_a_node_that_cannot_start_ends_all_with_its_status(supervise: Launcher) -> None:
    running = supervise(["serves", "fails"])
    assert running.process.wait() == 3


def test_nodes_do_not_outlive_their_supervisor(supervise: Launcher) -> None:
    running = supervise(["serves"])
    _, pid = running.ready()
    running.process.kill()
    await_death(pid)
