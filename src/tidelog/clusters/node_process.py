"""One node as a child process, which callers start, stop, kill and pause, and its log file.

The child shares a socket pair with this process, as a node of `tidelog up` does. The child sends a
byte when it accepts writes. The child shuts down when this process closes its socket or ends, so no
node outlives this process.
"""

import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import IO

from tidelog.clusters.child import PROGRAM
from tidelog.model.ids import NodeId

PATIENCE_SECONDS = 120.0
"""How long a node may take to start or stop before it counts as stuck."""
_TAIL = 4000


class NodeStuck(Exception):
    """A node or the cluster did not reach a state in time. The message may contain log lines."""


class NodeProcess:
    def __init__(self, node_id: NodeId, config: Path, log: Path) -> None:
        self.node_id = node_id
        self.config = config
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._writer: Thread | None = None
        self.is_paused = False
        self.is_ready = False
        """Whether `await_ready` has seen that the node accepts writes."""

    @property
    def pid(self) -> int:
        assert self._process is not None, f"node {self.node_id} has never run"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    # -- Start and end -----------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process, and do not wait until it is ready."""
        assert not self.is_running, f"node {self.node_id} runs already"
        ours, theirs = socket.socketpair()
        ours.settimeout(PATIENCE_SECONDS)
        with theirs:
            argv = [*PROGRAM, "--config", str(self.config), "--supervisor-fd", str(theirs.fileno())]
            self._process = self.spawn(argv, theirs.fileno())
        self._channel, self.is_paused, self.is_ready = ours, False, False

    def spawn(self, argv: list[str], *shared: int) -> subprocess.Popen[bytes]:
        """Run a program and copy its output to the log through a pipe.

        A test may limit the size of the files that the process writes. The limit does not apply to
        a pipe, so the process can still log.
        """
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=shared,
            process_group=0,
        )
        self._writer = Thread(target=self._write_log, args=(process.stdout,), daemon=True)
        self._writer.start()
        return process

    def _write_log(self, said: IO[bytes]) -> None:
        with said, self.log.open("ab", buffering=0) as log:
            for line in said:
                log.write(line)

    def await_ready(self) -> None:
        """Wait until the node accepts writes."""
        if self.is_ready:
            return
        assert self._channel is not None
        try:
            said = self._channel.recv(1)
        except TimeoutError:
            raise self.stuck("is not ready") from None
        except ConnectionResetError:
            said = b""
        if not said:
            raise self.stuck("ended before it was ready")
        self.is_ready = True

    def stop(self) -> int:
        """Request a controlled shutdown, wait for its end, and return the exit status.

        A paused process is resumed, because it cannot handle the request while it is paused.
        """
        return self._end(signal.SIGTERM, signal.SIGCONT)

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP. The process stops, and its connections stay open."""
        self._signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        self._signal(signal.SIGCONT)
        self.is_paused = False

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, f"node {self.node_id} has never run"
        self._process.send_signal(number)

    def _end(self, *signals: signal.Signals) -> int:
        if self._process is None:
            return 0
        for number in signals:
            self._process.send_signal(number)  # no effect on a process that has ended
        try:
            status = self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise self.stuck("did not end") from None
        if self._writer is not None:
            self._writer.join(PATIENCE_SECONDS)
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        return status

    @property
    def state(self) -> str:
        """The state in a few words, for the report of a failed test."""
        if self._process is None:
            return "never started"
        if (status := self._process.poll()) is not None:
            return f"ended with status {status}"
        if self.is_paused:
            return "paused"
        return "running" if self.is_ready else "starting"

    # -- The log of the node -----------------------------------------------------------------------

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def show_log(self) -> None:
        print(f"-- the end of {self.log}:\n{self.log_text()[-_TAIL:]}", file=sys.stderr)

    def stuck(self, what: str) -> NodeStuck:
        return NodeStuck(f"node {self.node_id} {what}; its log:\n{self.log_text()[-_TAIL:]}")
