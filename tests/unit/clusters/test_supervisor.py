"""The supervisor announces ready processes, restarts them, and stops all of them at its end."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidelog.clusters import control
from tidelog.model.user_error import UserError

# A fake node: its configuration decides whether it fails, writes its pid and hangs, or serves.
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
from pathlib import Path
from tidelog.clusters.child import NodeToRun
from tidelog.clusters.control import ControlSocket
from tidelog.clusters.supervisor import Supervisor, run_until_interrupted
nodes = [NodeToRun(number, config) for number, config in enumerate(sys.argv[3:], 1)]
tell = lambda node, pid: pid and print(node, pid, flush=True)
program = (sys.executable, sys.argv[1])
control = ControlSocket(Path(sys.argv[1]).parent)
options = {"restart": sys.argv[2] == "restart", "control": control, "program": program}
sys.exit(run_until_interrupted(Supervisor(nodes, tell, **options)))
"""


class Running:
    def __init__(self, directory: Path, configs: list[str], mode: str) -> None:
        self._directory = directory
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
        """The next announced (node, pid)."""
        assert self.process.stdout is not None
        node, pid = map(int, self.process.stdout.readline().split())
        return node, pid

    def asked(self, line: str) -> str:
        """The supervisor's answer to a command, or its error message."""
        try:
            return control.ask(self._directory, line)
        except UserError as refused:
            return str(refused)

    def states(self) -> list[str]:
        return [node["state"] for node in json.loads(self.asked("list"))]

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
    started = [running.ready() for _ in range(3)]
    assert sorted(node for node, _ in started) == [1, 2, 3]
    running.process.send_signal(number)
    assert running.process.wait() == 0
    for _, pid in started:
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


def test_a_node_that_dies_again_and_again_waits_and_is_started_at_once_by_a_command(
    supervise: Launcher,
) -> None:
    running = supervise(["serves", "serves"])
    [(_, victim), _] = sorted(running.ready() for _ in range(2))
    while running.states()[0] != "waiting":
        os.kill(victim, signal.SIGKILL)
        await_death(victim)
        while running.states()[0] not in ("waiting", "up"):
            pass
        if running.states()[0] == "up":
            victim = json.loads(running.asked("list"))[0]["pid"]

    assert "is starting" in running.asked("start 1")
    running.process.send_signal(signal.SIGTERM)
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


@pytest.mark.parametrize("verb", ["stop", "kill"])
def test_a_node_that_is_put_down_on_purpose_stays_down_until_it_is_started(
    supervise: Launcher, verb: str
) -> None:
    running = supervise(["serves"])
    _, pid = running.ready()
    assert running.asked(f"{verb} 1") == "Node 1 is down."
    await_death(pid)
    assert running.states() == ["down"]
    assert running.asked(f"{verb} 1") == "node 1 is down."
    assert running.asked("start 1").startswith("Node 1 is starting (pid ")
    node, second = running.ready()
    assert (node, running.states()) == (1, ["up"])
    assert second != pid
    assert running.asked("start 1") == "node 1 is up; only one that is down can start."
    running.process.terminate()
    assert running.process.wait() == 0


def test_nodes_that_are_all_down_on_purpose_end_with_a_signal(supervise: Launcher) -> None:
    running = supervise(["serves"])
    running.ready()
    running.asked("kill 1")
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait() == 0


def test_a_paused_node_is_resumed_and_does_not_hold_up_the_end(supervise: Launcher) -> None:
    running = supervise(["serves", "serves"])
    for _ in range(2):
        running.ready()
    assert running.asked("resume 1") == "node 1 is not paused."
    assert running.asked("pause 1") == "Node 1 is paused."
    assert running.states() == ["paused", "up"]
    assert running.asked("pause 1") == "node 1 is paused already."
    assert running.asked("stop 1") == "node 1 is paused; resume it before you stop it."
    assert running.asked("resume 1") == "Node 1 is resumed."
    running.asked("pause 1")
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait() == 0


def test_an_unknown_node_and_an_unknown_command_are_told(supervise: Launcher) -> None:
    running = supervise(["serves", "serves"])
    running.ready()
    assert running.asked("kill 7") == "there is no node 7; this cluster has 1, 2."
    assert running.asked("dance 1") == "there is no command 'dance' for a node."


def test_where_no_cluster_runs_is_told(supervise: Launcher, tmp_path: Path) -> None:
    sentence = f"no cluster is running in {tmp_path}; `tidelog up` starts one."
    with pytest.raises(UserError, match=sentence):
        control.ask(tmp_path, "list")
    running = supervise(["serves"])
    running.ready()
    running.process.kill()
    running.process.wait()  # its socket file remains
    with pytest.raises(UserError, match=sentence):
        control.ask(tmp_path, "list")
    with pytest.raises(UserError, match=r"no cluster is running in .*absent"):
        control.ask(tmp_path / "absent", "list")


def test_half_a_command_holds_nobody_up(supervise: Launcher, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)  # too long for the path of a socket
    deep.mkdir()
    running = Running(deep, ["serves"], "restart")
    supervise.launched.append(running)
    running.ready()
    with socket.socket(socket.AF_UNIX) as slow:
        here = os.open(deep, os.O_RDONLY)
        slow.connect(f"/proc/self/fd/{here}/{control.NAME}")
        os.close(here)
        slow.sendall(b"li")
        assert running.states() == ["up"]
        slow.sendall(b"st\n")
        assert slow.recv(1024).startswith(b"ok ")
