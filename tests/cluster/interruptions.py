"""Starts of `tidelog up` that are interrupted at a chosen line of its log."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from tests.clients.systems import PATIENCE
from tests.cluster.foreground import TIDELOG

ALARMS = ("uncleanly", "may be lost", "are lost", "has found damage", "Traceback")


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def stop_in_order(up: subprocess.Popen[str]) -> None:
    """Send Ctrl-C."""
    up.send_signal(signal.SIGINT)


def stop_twice(up: subprocess.Popen[str]) -> None:
    """Send Ctrl-C, and a second signal right after it."""
    up.send_signal(signal.SIGINT)
    up.send_signal(signal.SIGTERM)


def kill_all(up: subprocess.Popen[str]) -> None:
    """Kill `up` and all of its nodes with kill -9 at once."""
    nodes = children_of(up.pid)
    up.kill()
    for node in nodes:
        with suppress(ProcessLookupError):
            os.kill(node, signal.SIGKILL)


def kill_up(up: subprocess.Popen[str]) -> None:
    """Kill only `up` with kill -9; its nodes shut down by themselves."""
    up.kill()


def interrupted(
    directory: Path, port: int, line: int, interrupt: Callable[[subprocess.Popen[str]], None]
) -> Iterator[str]:
    """Start `up`, and interrupt it after this many log lines; yield the lines.

    If a broker is ready before that line, `up` gets Ctrl-C instead. A ready broker may have written
    records, so its stop is clean only after a controlled shutdown.
    """
    up = subprocess.Popen(
        [*TIDELOG, "up", "--verbose", "--dir", str(directory), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert up.stdout is not None
    is_interrupted = False
    with up.stdout:
        for number, printed in enumerate(up.stdout, start=1):
            yield printed
            if not is_interrupted and printed.endswith(" ready\n"):
                is_interrupted = True
                stop_in_order(up)
            elif number == line and not is_interrupted:
                is_interrupted = True
                interrupt(up)
    up.wait(PATIENCE)
