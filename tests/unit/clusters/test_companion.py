"""A companion program of the nodes is restarted when it ends, and is stopped before the nodes.

If all nodes have ended, the program is stopped as well. It is killed if it does not stop.
"""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidelog.clusters.companion import Companion

# The program writes to a file when it starts and stops, and the node writes to the same file when
# it stops. The file therefore shows the order.
NODE = """
import os, signal, socket, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
supervisor = socket.socket(fileno=int(options["--supervisor-fd"]))
def stop(*_):
    with open(options["--config"], "a") as events:
        events.write("node stopped\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
supervisor.send(b"!")
supervisor.recv(1)
"""
PROGRAM = """
import os, signal, sys
def stop(*_):
    note("program stopped")
    sys.exit(0)
def note(what):
    with open(sys.argv[1], "a") as events:
        events.write(what + "\\n")
signal.signal(signal.SIGTERM, stop)
with open(sys.argv[1]) as events:
    starts = events.read().count("program")
note(f"program {os.getpid()}")
if starts < 2:
    print("tidelog: something is missing.")
    sys.exit(3)
print(os.getpid(), file=open(sys.argv[2], "w"))
signal.pause()
"""
# A program that ignores SIGTERM, and its child.
STUBBORN = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(child.pid, file=open(sys.argv[2], "w"))
child.wait()
"""
# A node that ends as soon as the program has started.
SHORT_LIVED = """
import socket, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
supervisor = socket.socket(fileno=int(options["--supervisor-fd"]))
supervisor.send(b"!")
open(options["--config"] + ".end").read()
"""
# A program that ends on SIGTERM, but leaves its child behind.
PARENT = """
import signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(child.pid, file=open(sys.argv[1], "w"))
signal.pause()
"""
SUPERVISE = """
import logging, sys
from pathlib import Path
from tidelog.clusters.child import NodeToRun
from tidelog.clusters.companion import Companion
from tidelog.clusters.supervisor import Supervisor, run_until_interrupted
logging.basicConfig(format="%(message)s")
here = Path(sys.argv[1])
argv = [sys.executable, str(here / "program.py"), str(here / "events"), str(here / "pid")]
companion = Companion("the program", argv, here / "log", patience_seconds=0.1)
supervisor = Supervisor(
    [NodeToRun(1, str(here / "events"))],
    lambda node, pid: pid and supervisor.accompany(companion),
    program=(sys.executable, str(here / "node.py")),
)
sys.exit(run_until_interrupted(supervisor))
"""


@contextmanager
def supervised(
    directory: Path, node: str = NODE, program: str = PROGRAM
) -> Iterator["subprocess.Popen[str]"]:
    """A supervisor of one node and its companion program."""
    (directory / "node.py").write_text(node)
    (directory / "program.py").write_text(program)
    (directory / "events").touch()
    os.mkfifo(directory / "pid")
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISE, str(directory)],
        stderr=subprocess.PIPE,
        process_group=0,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    with supervised(tmp_path) as running:
        yield running


def test_it_is_started_again_and_stopped_before_the_nodes(
    supervisor: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    pid = (tmp_path / "pid").read_text().strip()  # the third start has this pid
    supervisor.send_signal(signal.SIGINT)
    assert supervisor.wait() == 0
    assert supervisor.stderr is not None
    said = "the program ended with status 3 and is started again"
    assert supervisor.stderr.read().splitlines() == [
        f"{said} now: something is missing.",
        f"{said} in 0.5 s: something is missing.",
    ]
    *_, last, first_stop, second_stop = (tmp_path / "events").read_text().splitlines()
    assert (last, first_stop, second_stop) == (f"program {pid}", "program stopped", "node stopped")


def test_it_does_not_outlive_the_supervisor(
    supervisor: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    watched = os.pidfd_open(int((tmp_path / "pid").read_text()))
    supervisor.kill()
    supervisor.wait()
    select.select([watched], [], [])
    os.close(watched)
    assert "program stopped" in (tmp_path / "events").read_text()


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_it_is_killed_if_it_does_not_end_after_all_nodes(
    tmp_path: Path, is_interrupted: bool
) -> None:
    os.mkfifo(tmp_path / "events.end")
    with supervised(tmp_path, SHORT_LIVED, STUBBORN) as supervisor:
        child = os.pidfd_open(int((tmp_path / "pid").read_text()))
        if is_interrupted:
            supervisor.send_signal(signal.SIGINT)
        (tmp_path / "events.end").write_text("")  # the node ends
        assert supervisor.wait() == 0
        select.select([child], [], [])  # the program's child has ended, too
        os.close(child)


def test_what_it_leaves_behind_is_asked_to_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    program = [sys.executable, "-c", PARENT, str(tmp_path / "pid")]
    companion = Companion("the program", program, tmp_path / "log")
    end = companion.start()
    child = os.pidfd_open(int((tmp_path / "pid").read_text()))
    companion.stop()
    select.select([end], [], [])
    companion.ended()
    select.select([child], [], [])
    os.close(child)
    os.close(end)


def test_a_log_that_somebody_has_removed_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "tables.log"
    companion = Companion("the program", [sys.executable, "-c", "import sys; sys.exit(3)"], log)
    os.close(companion.start())
    log.unlink()
    companion.ended()
    assert caplog.messages == ["the program ended with status 3 and is started again now"]
