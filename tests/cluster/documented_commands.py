"""Runs the commands that a page documents, and compares their output with the page."""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.cluster.foreground import await_seen
from tests.cluster.ports import first_free_port

ROOT = Path(__file__).parents[2]

UP, INSTALL = "./tidelog up", "pip install ."

PORT, BROKERS = 9092, 3
"""The defaults of `up`."""
TO_METRICS = 5_000
"""The distance from a broker's port to the metrics port of the same node."""

ONLY_LOOK = ("./tidelog replicas", "./tidelog explain", "./tidelog quorum describe")
"""Commands that fail while a broker does not answer, so the test repeats them."""

NOT_TWICE_THE_SAME = (
    # A pattern for text that differs from run to run, and its replacement.
    (re.compile(r"\b[\w-]{22}\b"), "<id>"),
    (re.compile(r"\b(CreateTime|crc|producerId|partitionLeaderEpoch): \d+"), r"\1: <number>"),
    (re.compile(r"\b(Leader|Replicas|Isr): [\d,]+"), r"\1: <brokers>"),
)

ON_STDERR = re.compile(r"tidelog: making the environment|\d\d:\d\d:\d\d\.\d{3} |Processed a total")
"""The beginnings of lines that the commands print to standard error."""


class Step(NamedTuple):
    """A command and the output that the page shows for it, which may be empty."""

    command: str
    shown: list[str]


def steps(transcript: str) -> Iterator[Step]:
    for part in re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield Step(command, [line for line in shown if not ON_STDERR.match(line)])


def normalized(lines: list[str]) -> list[str]:
    text = "\n".join(lines)
    for pattern, stand_in in NOT_TWICE_THE_SAME:
        text = pattern.sub(stand_in, text)
    return text.split("\n")


class Newcomer:
    """A user in a directory with the commands `tidelog` and `test`, and with free ports."""

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
        """The text, with the documented ports replaced by free ports of this machine."""
        for broker in range(BROKERS):
            for port in (PORT + broker, PORT + broker + TO_METRICS):
                there = port - PORT + self.port
                text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{there}")
        return text

    def does(self, step: Step) -> None:
        if step.command == UP:
            self.starts_a_cluster(step)
        elif step.command == INSTALL:
            pass  # test_install.py runs this command
        elif step.command.startswith("./test"):
            # This test is itself run by `./test`, so it checks only that the script collects tests.
            assert self.runs(f"{step.command} --collect-only --quiet") != []
        elif step.command.startswith(ONLY_LOOK):
            await_seen(lambda: self.sees(step), bool)
        else:
            self.sees(step)

    def sees(self, step: Step) -> list[str]:
        """Run the command and check that it prints the output that the page shows, if any."""
        printed = normalized(self.runs(step.command))
        assert not step.shown or printed == normalized([self.here(line) for line in step.shown])
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
        printed = [self.cluster.stdout.readline().rstrip("\n") for _ in step.shown]
        assert printed == [self.here(line) for line in step.shown]

    def presses_ctrl_c(self) -> int:
        assert self.cluster is not None
        self.cluster.send_signal(signal.SIGINT)
        return self.cluster.wait()
