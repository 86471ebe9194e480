"""Runs `tidelog up` in the foreground, as in a terminal, and runs other commands meanwhile."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.clients.systems import PATIENCE

T = TypeVar("T")

TIDELOG = [sys.executable, "-m", "tidelog.cli.main"]


class Up:
    """A `tidelog up` that runs in the foreground."""

    def __init__(
        self,
        directory: Path,
        port: int,
        brokers: int = 1,
        options: Sequence[str] = (),
        *,
        console: bool = False,
    ) -> None:
        self.directory, self.port = directory, port
        where = ("--dir", str(directory), "--port", str(port), "--brokers", str(brokers))
        # Most tests look at the nodes only; a console would be one more process to start.
        if not console:
            where += ("--no-console",)
        self.process = subprocess.Popen(
            [*TIDELOG, "up", *where, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def bootstrap(self) -> str:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        line = self.process.stdout.readline()
        assert line, f"it ended before it took writes: {self.process.stderr.read()}"
        word, address = line.split()
        assert word == "bootstrap"
        return address

    @property
    def state(self) -> Path:
        return self.directory / "cluster.json"

    def nodes(self) -> list[dict[str, Any]]:
        nodes: list[dict[str, Any]] = json.loads(self.state.read_text())["nodes"]
        return nodes

    def end(self, how: signal.Signals = signal.SIGINT) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


def await_seen(look: Callable[[], T], is_wanted: Callable[[T], bool]) -> T:
    """Repeat `look` until `is_wanted` accepts its result; ignore AssertionErrors until then."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            seen = look()
            if is_wanted(seen):
                return seen
            last = repr(seen)
        except AssertionError as failure:
            last = str(failure)
        assert time.monotonic() < deadline, f"timed out; last seen: {last}"
        time.sleep(0.02)


def await_that(look: Callable[[], T], expected: T) -> None:
    """Wait until `look` returns this value."""
    await_seen(look, lambda seen: seen == expected)


def attempt(*arguments: str, patience: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    """Run a command and return its result, whatever the exit status is."""
    return subprocess.run(
        [*TIDELOG, *arguments], capture_output=True, text=True, timeout=patience, check=False
    )


def tidelog(*arguments: str, status: int = 0, patience: float = PATIENCE) -> str:
    """The standard output of a command; if `status` is not 0, its error message."""
    done = attempt(*arguments, patience=patience)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr if status else done.stdout
