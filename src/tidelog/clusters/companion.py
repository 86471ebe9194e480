"""A program that runs alongside the nodes of a cluster, and is restarted when it ends.

The program has its own process group, so Ctrl-C reaches only the supervisor. The supervisor stops
the program before the nodes. When the program has ended, the other processes of its group, such as
a download, get SIGTERM. If the supervisor dies, the system sends SIGTERM to the program.
"""

import ctypes
import logging
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from tidelog.clusters.restart_delay import RestartDelay

log = logging.getLogger(__name__)

LONG_LIFE_SECONDS = 300.0
PATIENCE_SECONDS = 60.0
PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_TAIL_BYTES = 4096


def _end_with_parent() -> None:
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Companion:
    """The program. `start` starts it, and whenever it ends, it is restarted after a delay."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        log_file: Path | None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """Without a log file, the program writes to stderr.

        `patience_seconds` is how long the program can run on after all nodes have ended.
        """
        self._name = name
        self._argv = list(argv)
        self._log_file = log_file
        self._patience_seconds = patience_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._delay = RestartDelay(LONG_LIFE_SECONDS)
        self._started_at = 0.0
        self._is_stopping = False
        self.restart_at: float | None = None
        self.kill_at: float | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def is_due(self) -> bool:
        """Whether it is time to start the program again."""
        return self.restart_at is not None and self.restart_at <= time.monotonic()

    def start(self) -> int:
        """Start the program; returns a descriptor that is readable when it has ended."""
        assert self._process is None
        with nullcontext() if self._log_file is None else self._log_file.open("ab") as log_file:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                process_group=0,
                preexec_fn=_end_with_parent,
            )
        self._started_at, self.restart_at = time.monotonic(), None
        return os.pidfd_open(self._process.pid)

    def stop(self) -> None:
        """Ask the program to end, and do not restart it."""
        self._is_stopping, self.restart_at = True, None
        if self._process is not None:
            self._process.terminate()

    def stop_soon(self) -> None:
        """Ask the program to end, and set the time to kill it if it has not ended by then."""
        if self.kill_at is None:
            self.stop()
            self.kill_at = time.monotonic() + self._patience_seconds

    def kill_if_due(self) -> None:
        """Kill the program if the time that `stop_soon` set has passed."""
        if self.kill_at is not None and self.kill_at <= time.monotonic():
            self.kill()

    def kill(self) -> None:
        """Kill the program and its child processes."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def ended(self) -> None:
        """Report the end of the program, and set the time of its next start."""
        assert self._process is not None
        # As long as the exit status is not collected, no other process group can get this number.
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        os.killpg(self._process.pid, signal.SIGTERM)
        status = self._process.wait()
        self._process = None
        if self._is_stopping:
            return
        now = time.monotonic()
        delay = self._delay.after(now - self._started_at)
        when = f"in {delay:g} s" if delay else "now"
        log.warning(
            "%s ended with status %d and is started again %s%s",
            self._name,
            status,
            when,
            self._last_words(),
        )
        self.restart_at = now + delay

    def _last_words(self) -> str:
        """The last line of the program's log."""
        if self._log_file is None:
            return ""
        try:
            with self._log_file.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
                lines = file.read().decode(errors="replace").split("\n")
        except OSError:
            return ""  # somebody has removed the log
        last = next((line for line in reversed(lines) if line.strip()), "")
        return f": {last.removeprefix('tidelog: ')}" if last else ""
