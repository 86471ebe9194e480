"""Every command in the README is run, in order, and prints the output that the README shows.

The Chinese README has the same commands, programs and output, so that this run is one of both.
`pip install .` is run by test_install.py.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cluster.foreground import await_seen
from tests.cluster.ports import first_free_port

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UP, INSTALL = "./tidelog up", "pip install ."
PORT, BROKERS = 9092, 3
"""What `up` takes when it is told nothing."""

ONLY_LOOK = ("./tidelog replicas", "./tidelog explain", "./tidelog quorum describe")
"""These give up when brokers are silent for a moment; whoever sees that looks again."""

NOT_TWICE_THE_SAME = (
    # What differs from run to run, and what stands for it here.
    (re.compile(r"\b[\w-]{22}\b"), "<id>"),
    (re.compile(r"\b(CreateTime|crc|producerId|partitionLeaderEpoch): \d+"), r"\1: <number>"),
    (re.compile(r"\b(Leader|Replicas|Isr): [\d,]+"), r"\1: <brokers>"),
)
ON_STDERR = re.compile(r"tidelog: making the environment|\d\d:\d\d:\d\d\.\d{3} |Processed a total")
"""Lines of a transcript that do not go to standard output."""


class Block(NamedTuple):
    language: str
    text: str


class Step(NamedTuple):
    """A command, and what the README says that it prints; nothing where it leaves that out."""

    command: str
    shown: list[str]


def blocks(page: str) -> list[Block]:
    """The blocks that are run; "text" is the output of an earlier run, which differs each time."""
    found = [Block(*one) for one in FENCE.findall((ROOT / page).read_text(encoding="utf-8"))]
    return [block for block in found if block.language != "text"]


def steps(transcript: str) -> Iterator[Step]:
    for part in re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield Step(command, [line for line in shown if not ON_STDERR.match(line)])


def normal(lines: list[str]) -> list[str]:
    text = "\n".join(lines)
    for pattern, stand_in in NOT_TWICE_THE_SAME:
        text = pattern.sub(stand_in, text)
    return text.split("\n")


class Newcomer:
    """Someone in a directory with a checkout's two commands, on a machine with this port free."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("tidelog", "test"):
            (directory / name).symlink_to(ROOT / name)
        self.port = first_free_port(BROKERS)
        ports = range(self.port, self.port + BROKERS)
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports)
        self.env = {**os.environ, "TIDELOG_BOOTSTRAP_SERVER": self.bootstrap}
        self.cluster: subprocess.Popen[str] | None = None

    def here(self, text: str) -> str:
        """The text with this machine's ports in it."""
        for broker in range(BROKERS):
            text = text.replace(f"127.0.0.1:{PORT + broker}", f"127.0.0.1:{self.port + broker}")
        return text

    def does(self, step: Step) -> None:
        if step.command == UP:
            self.starts_a_cluster(step)
        elif step.command == INSTALL:
            pass  # test_install.py
        elif step.command.startswith("./test"):
            # This very run is one of them; here, that the script finds and reads all of the tests.
            assert self.runs(f"{step.command} --collect-only --quiet") != []
        elif step.command.startswith(ONLY_LOOK):
            await_seen(lambda: self.sees(step), bool)
        else:
            self.sees(step)

    def sees(self, step: Step) -> list[str]:
        """What the command prints, which is what is shown, if anything is."""
        printed = normal(self.runs(step.command))
        assert not step.shown or printed == normal([self.here(line) for line in step.shown])
        return printed

    def runs(self, command: str) -> list[str]:
        done = subprocess.run(
            ["sh", "-c", self.here(command)],
            cwd=self.directory,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout.splitlines() or [""]

    def starts_a_cluster(self, step: Step) -> None:
        self.cluster = subprocess.Popen(
            [*shlex.split(step.command), "--port", str(self.port)],
            cwd=self.directory,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.cluster.stdout is not None
        [bootstrap] = [self.here(line) for line in step.shown if line.startswith("bootstrap ")]
        printed = (line.rstrip() for line in self.cluster.stdout)
        assert next((line for line in printed if line.startswith("bootstrap ")), "") == bootstrap

    def presses_ctrl_c(self) -> int:
        assert self.cluster is not None
        self.cluster.send_signal(signal.SIGINT)
        return self.cluster.wait()


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    someone = Newcomer(tmp_path)
    yield someone
    if someone.cluster is not None and someone.cluster.poll() is None:
        someone.presses_ctrl_c()


def test_everything_in_the_readme_works_as_shown(newcomer: Newcomer) -> None:
    for block in blocks("README.md"):
        if block.language == "console":
            for step in steps(block.text):
                newcomer.does(step)
            continue
        assert block.language == "python"
        if "def test_" in block.text:
            (newcomer.directory / "test_readme.py").write_text(block.text)
            options = "-p tidelog.testing.plugin -p no:cacheprovider -q"
            printed = newcomer.runs(f"{sys.executable} -m pytest {options} test_readme.py")
            assert printed[-1].startswith("1 passed")
        else:
            script = newcomer.directory / "readme.py"
            script.write_text(newcomer.here(block.text))
            (printed_line,) = newcomer.runs(f"{sys.executable} {script}")
            assert f"# {printed_line}\n" in block.text
    assert newcomer.presses_ctrl_c() == 0


def test_the_chinese_readme_has_the_same_commands_programs_and_output() -> None:
    assert blocks("README.zh-CN.md") == blocks("README.md")
