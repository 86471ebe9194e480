"""A program beside the nodes is started again when it ends, and is stopped before the nodes."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidelog.clusters.companion import Companion

# Node and companion write to one file when they start and when they are asked to stop. So the file
# shows the order.
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
SUPERVISE = """
import logging, sys
from pathlib import Path
from tidelog.clusters.child import NodeToRun
from tidelog.clusters.companion import Companion
from tidelog.clusters.supervisor import Supervisor, run_until_interrupted
logging.basicConfig(format="%(message)s")
here = Path(sys.argv[1])
argv = [sys.executable, str(here / "program.py"), str(here / "events"), str(here / "pid")]
companion = Companion("the program", argv, here / "log")
supervisor = Supervisor(
    [NodeToRun(1, str(here / "events"))],
    lambda node, pid: pid and supervisor.accompany(companion),
    program=(sys.executable, str(here / "node.py")),
)
sys.exit(run_until_interrupted(supervisor))
"""


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    (tmp_path / "node.py").write_text(NODE)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "events").touch()
    os.mkfifo(tmp_path / "pid")
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISE, str(tmp_path)],
        stderr=subprocess.PIPE,
        process_group=0,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


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


def test_a_log_that_somebody_has_removed_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "tables.log"
    companion = Companion("the program", [sys.executable, "-c", "import sys; sys.exit(3)"], log)
    os.close(companion.start())
    log.unlink()
    companion.ended()
    assert caplog.messages == ["the program ended with status 3 and is started again now"]
