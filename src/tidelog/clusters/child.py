"""One node as a child process, and the socket pair that it shares with us.

It writes one byte there when it takes writes; its death closes its end, as ours would close ours,
and a child shuts down when that happens: none outlives its parent. Children are in process groups
of their own, so that Ctrl-C reaches the parent alone, which passes it on once.
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
    """A node to run: its id, the server.properties that say the rest, and where its log goes."""

    node_id: NodeId
    config: str
    log: str | None = None
    """A file to append to; our own stderr where there is none."""


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
        """What to watch: readable when the child has something to say, or has ended."""
        return self._channel.fileno()

    def hear(self) -> bool:
        """Read what it says. -> whether it still runs."""
        try:
            said = self._channel.recv(1)
        except ConnectionResetError:
            said = b""
        self.is_ready = self.is_ready or bool(said)
        return bool(said)

    def wait(self) -> int:
        """Its exit status, once it has ended."""
        self._channel.close()
        return self._process.wait()

    def stop(self) -> None:
        """Ask for a controlled shutdown; asked again, it only closes its logs."""
        self.is_stopping = True
        self._process.terminate()
        # A process that is paused hears nothing else before this.
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
