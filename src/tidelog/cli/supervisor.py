"""Runs nodes as processes of their own: starts them, says when they serve, starts them again.

Each child shares a socket pair with this process. It writes one byte there when it takes writes;
its death closes its end, as ours would close ours, and a child shuts down when that happens: none
outlives its supervisor. Children are in process groups of their own, so that Ctrl-C reaches the
supervisor alone, which passes it on once.
"""

import logging
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType

from tidelog.model.ids import NodeId
from tidelog.runtime.alarm import Alarm

PROGRAM = (sys.executable, "-P", "-m", "tidelog.runtime")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """A node to run: its id, and the server.properties that say the rest."""

    node_id: NodeId
    config: str


@dataclass(slots=True)
class _Child:
    spec: NodeProcess
    process: subprocess.Popen[bytes]
    channel: socket.socket
    is_ready: bool = False


class Supervisor:
    """Runs the nodes until they have all ended; `ready` hears (node, pid) each time one serves."""

    def __init__(
        self,
        nodes: list[NodeProcess],
        ready: Callable[[NodeProcess, int], None],
        *,
        restart: bool = True,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self._nodes = nodes
        self._ready = ready
        self._restart = restart
        self._program = program
        self._selector = selectors.DefaultSelector()
        self._alarm = Alarm()
        self._children: dict[NodeId, _Child] = {}
        self._served: set[NodeId] = set()
        self._signals = 0
        self._is_stopping = False
        self._status = 0

    def run(self) -> int:
        """Start every node and watch over them. -> 0, or the status of the first that failed."""
        self._selector.register(self._alarm, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._alarm.button_fd(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._signalled)
        for node in self._nodes:
            self._start(node)
        while self._children:
            for key, _ in self._selector.select():
                if key.fileobj is self._alarm:
                    self._alarm.quiet()
                    self._pass_on()
                else:
                    self._hear(key.data)
        return self._status

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1

    def _pass_on(self) -> None:
        for _ in range(self._signals):
            self._stop()
        self._signals = 0

    def _stop(self) -> None:
        """Ask every node for a controlled shutdown; asked again, they end at once."""
        self._is_stopping = True
        for child in self._children.values():
            child.process.terminate()

    def _start(self, node: NodeProcess) -> None:
        ours, theirs = socket.socketpair()
        channel = theirs.fileno()
        options = ["--config", node.config, "--supervisor-fd", str(channel)]
        with theirs:
            process = subprocess.Popen(
                [*self._program, *options], pass_fds=[channel], process_group=0
            )
        child = _Child(node, process, ours)
        self._children[node.node_id] = child
        self._selector.register(ours, selectors.EVENT_READ, child)

    def _hear(self, child: _Child) -> None:
        try:
            said = child.channel.recv(1)
        except ConnectionResetError:
            said = b""
        if said:
            child.is_ready = True
            self._served.add(child.spec.node_id)
            self._ready(child.spec, child.process.pid)
            return
        self._selector.unregister(child.channel)
        child.channel.close()
        del self._children[child.spec.node_id]
        self._ended(child, child.process.wait())

    def _ended(self, child: _Child, status: int) -> None:
        node = child.spec.node_id
        if status == 0 or self._is_stopping:
            return
        if status > 0 and not child.is_ready:
            # It has said why. A cluster that cannot start as asked does not start in part.
            self._status = self._status or status
            if node in self._served:
                log.error("node %d cannot start again", node)
            else:
                self._stop()
        elif self._restart:
            log.warning("node %d ended with status %d and is started again", node, status)
            self._start(child.spec)
        else:
            log.warning("node %d ended with status %d", node, status)
