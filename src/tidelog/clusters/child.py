"""One node as a child process of a supervisor, and the socket pair that both processes share.

The child sends one byte as soon as it accepts writes. If a process dies, the system closes its
socket. A child shuts down when the parent's socket closes, so no child outlives its parent. Each
child has its own process group. Ctrl-C therefore reaches only the parent, which then stops the
children.
"""

import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from tidelog.model.ids import NodeId

PROGRAM = (sys.executable, "-P", "-m", "tidelog.runtime")


@dataclass(frozen=True, slots=True)
class NodeToRun:
    """A node to run: its id, its server.properties, and its log file."""

    node_id: NodeId
    config: str
    log: str | None = None
    """The file to which output is appended; None means the stderr of this process."""


class Child:
    """The process of a node, from its start to its end."""

    __slots__ = ("_channel", "_process", "is_paused", "is_ready", "is_stopping")

    def __init__(self, node: NodeToRun, program: Sequence[str]) -> None:
        ours, theirs = socket.socketpair()
        options = ["--config", node.config, "--supervisor-fd", str(theirs.fileno())]
        with theirs, nullcontext() if node.log is None else open(node.log, "ab") as log:
            self._process = subprocess.Popen(
                [*program, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
        self._channel = ours
        self.is_ready = self.is_paused = self.is_stopping = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def state(self) -> str:
        if self.is_stopping:
            return "stopping"
        if self.is_paused:
            return "paused"
        return "up" if self.is_ready else "starting"

    def fileno(self) -> int:
        """The descriptor to watch. It becomes readable when the child is ready or has ended."""
        return self._channel.fileno()

    def hear(self) -> bool:
        """Read from the child, and return whether it still runs."""
        try:
            received = self._channel.recv(1)
        except ConnectionResetError:
            received = b""
        self.is_ready = self.is_ready or bool(received)
        return bool(received)

    def wait(self) -> int:
        """Wait for the end of the child, and return its exit status."""
        self._channel.close()
        return self._process.wait()

    def stop(self) -> None:
        """Request a controlled shutdown. After a second request, the node only closes its logs."""
        self.is_stopping = True
        self._process.terminate()
        # A paused process handles SIGTERM only after SIGCONT.
        self.resume()

    def kill(self) -> None:
        self.is_stopping = True
        self._process.kill()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)
        self.is_paused = False
