"""Runs nodes as processes: starts nodes, reports when they are ready, restarts nodes that die.

If a command stops or kills a node, the node stays down until a command starts it. If a node dies
repeatedly, it is restarted after increasing delays. Everything happens in the thread that calls
`run`. Other threads may call only `interrupt`.
"""

import json
import logging
import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tidelog.clusters.child import PROGRAM, Child, NodeToRun
from tidelog.clusters.companion import Companion
from tidelog.clusters.control import ControlSocket, Reply
from tidelog.clusters.restart_delay import RestartDelay
from tidelog.model.ids import NodeId
from tidelog.model.user_error import UserError
from tidelog.runtime.alarm import Alarm

log = logging.getLogger(__name__)

NodeChanged: TypeAlias = Callable[[NodeId, int | None], object]
"""Called with (node, pid) when a node is ready, and with (node, None) when it has ended."""


@dataclass(slots=True)
class _Watched:
    spec: NodeToRun
    child: Child | None = None
    has_served: bool = False
    is_down_on_purpose: bool = False
    awaiting_end: list[Reply] = field(default_factory=list)
    delay: RestartDelay = field(default_factory=RestartDelay)
    started_at: float = 0.0
    restart_at: float | None = None

    @property
    def state(self) -> str:
        if self.child is not None:
            return self.child.state
        return "down" if self.restart_at is None else "waiting"


class Supervisor:
    """Runs the nodes until all have ended, and carries out the commands of its control socket."""

    def __init__(
        self,
        nodes: list[NodeToRun],
        tell: NodeChanged,
        *,
        restart: bool = True,
        control: ControlSocket | None = None,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self._nodes = {node.node_id: _Watched(node) for node in nodes}
        self._tell = tell
        self._restart = restart
        self._program = program
        self._control = control
        self._selector = selectors.DefaultSelector()
        self._alarm = Alarm()
        self._interrupts = 0
        self._is_stopping = False
        self._status = 0
        self._companions: list[Companion] = []
        self._commands: dict[str, Callable[[_Watched, Reply], None]] = {
            "start": self._start_command,
            "stop": self._stop_command,
            "kill": self._kill_command,
            "pause": self._pause_command,
            "resume": self._resume_command,
        }

    def interrupt(self) -> None:
        """Shut all nodes down. A second call skips the controlled shutdown. Thread-safe."""
        self._interrupts += 1
        self._alarm.ring()

    def alarm_fd(self) -> int:
        """The descriptor for `signal.set_wakeup_fd`."""
        return self._alarm.button_fd()

    def run(self) -> int:
        """Supervise the nodes until all end. Return 0, or the status of the first failed start."""
        self._watch(self._alarm, self._answer_alarm)
        if self._control is not None:
            self._control.open(self._selector, self.obey)
        try:
            for node in self._nodes.values():
                self._start(node)
            while self._has_work():
                for key, _ in self._selector.select(self._seconds_to_wait()):
                    key.data()
                self._start_those_due()
                self._end_companions_after_nodes()
        finally:
            for companion in self._running_companions():
                companion.kill()  # it still runs only if this loop has failed
                companion.ended()
            if self._control is not None:
                self._control.close()
            self._selector.close()
        return self._status

    def accompany(self, companion: Companion) -> None:
        """Run a program alongside the nodes from now on. Call this in the thread of `run`."""
        self._companions.append(companion)
        self._start_companion(companion)

    def _running_companions(self) -> list[Companion]:
        return [one for one in self._companions if one.is_running]

    def _start_companion(self, companion: Companion) -> None:
        end = companion.start()

        def ended() -> None:
            self._selector.unregister(end)
            os.close(end)
            companion.ended()
            if self._is_stopping and not self._running_companions():
                self._stop_nodes()

        self._watch(end, ended)

    def _end_companions_after_nodes(self) -> None:
        if self._has_nodes():
            return
        for companion in self._companions:
            companion.stop_soon()
            companion.kill_if_due()

    def _has_work(self) -> bool:
        return bool(self._running_companions()) or self._has_nodes()

    def _has_nodes(self) -> bool:
        """Whether a node runs, or may run again."""
        return any(
            node.child is not None
            or ((node.is_down_on_purpose or node.restart_at is not None) and not self._is_stopping)
            for node in self._nodes.values()
        )

    def _seconds_to_wait(self) -> float | None:
        """The seconds until the next planned start or kill; None if none is planned."""
        times = [node.restart_at for node in self._nodes.values()]
        for companion in self._companions:
            times += [companion.restart_at, companion.kill_at if companion.is_running else None]
        planned = [one for one in times if one is not None]
        return max(0.0, min(planned) - time.monotonic()) if planned else None

    def _start_those_due(self) -> None:
        for node in self._nodes.values():
            is_due = node.restart_at is not None and node.restart_at <= time.monotonic()
            if is_due and not self._is_stopping:
                self._start(node)
        for companion in self._companions:
            if companion.is_due and not self._is_stopping:
                self._start_companion(companion)

    def _watch(self, what: Any, then: Callable[[], None]) -> None:
        self._selector.register(what, selectors.EVENT_READ, then)

    def _answer_alarm(self) -> None:
        self._alarm.quiet()
        for _ in range(self._interrupts):
            self._stop()
        self._interrupts = 0

    def _stop(self) -> None:
        """Stop the programs that accompany the nodes, and then the nodes.

        A second call skips the controlled shutdown.
        """
        is_first, self._is_stopping = not self._is_stopping, True
        accompanying = self._running_companions()
        for companion in accompanying:
            companion.stop()
            if not is_first:
                companion.kill()
        if not (accompanying and is_first):
            self._stop_nodes()

    def _stop_nodes(self) -> None:
        for node in self._nodes.values():
            if node.child is not None:
                node.child.stop()

    # -- One node ----------------------------------------------------------------------------------

    def _start(self, node: _Watched) -> Child:
        assert node.child is None
        child = node.child = Child(node.spec, self._program)
        node.is_down_on_purpose = False
        node.started_at, node.restart_at = time.monotonic(), None
        self._watch(child, lambda: self._hear(node, child))
        return child

    def _hear(self, node: _Watched, child: Child) -> None:
        if child.hear():
            node.has_served = True
            self._tell(node.spec.node_id, child.pid)
            return
        self._selector.unregister(child)
        status = child.wait()
        node.child = None
        self._tell(node.spec.node_id, None)
        self._ended(node, child, status)
        for reply in node.awaiting_end:
            reply(f"Node {node.spec.node_id} is down.")
        node.awaiting_end.clear()

    def _ended(self, node: _Watched, child: Child, status: int) -> None:
        if status == 0 or self._is_stopping or node.is_down_on_purpose:
            return
        id_ = node.spec.node_id
        if status > 0 and not child.is_ready:
            # The node has logged the reason. If the node has never been ready, stop the whole
            # cluster.
            self._status = self._status or status
            if node.has_served:
                log.error("node %d cannot start again", id_)
            else:
                self._stop()
        elif self._restart:
            self._start_again(node, status)
        else:
            log.warning("node %d ended with status %d", id_, status)

    def _start_again(self, node: _Watched, status: int) -> None:
        now = time.monotonic()
        delay = node.delay.after(now - node.started_at)
        when = f"in {delay:g} s" if delay else "now"
        log.warning(
            "node %d ended with status %d and is started again %s", node.spec.node_id, status, when
        )
        node.restart_at = now + delay

    # -- Commands from the control socket ----------------------------------------------------------

    def obey(self, line: str, reply: Reply) -> None:
        """Carry out the command `list` or `VERB ID`, or raise UserError with the reason."""
        verb, _, id_ = line.partition(" ")
        if verb == "list":
            reply(json.dumps([self._row(node) for node in self._nodes.values()]))
            return
        command = self._commands.get(verb)
        if command is None:
            raise UserError(f"there is no command {verb!r} for a node.")
        node = self._nodes.get(int(id_)) if id_.isdecimal() else None
        if node is None:
            known = ", ".join(map(str, self._nodes))
            raise UserError(f"there is no node {id_ or '?'}; this cluster has {known}.")
        command(node, reply)

    def _row(self, node: _Watched) -> dict[str, Any]:
        pid = None if node.child is None else node.child.pid
        return {"id": node.spec.node_id, "state": node.state, "pid": pid}

    def _start_command(self, node: _Watched, reply: Reply) -> None:
        id_ = node.spec.node_id
        if node.child is not None:
            raise UserError(f"node {id_} is {node.state}; only one that is down can start.")
        if self._is_stopping:
            raise UserError("the cluster is stopping.")
        log.info("node %d is started, as asked", id_)
        reply(f"Node {id_} is starting (pid {self._start(node).pid}).")

    def _stop_command(self, node: _Watched, reply: Reply) -> None:
        child = _running(node)
        if child.is_paused:
            raise UserError(f"node {node.spec.node_id} is paused; resume it before you stop it.")
        log.info("node %d is stopped, as asked", node.spec.node_id)
        self._put_down(node, reply)
        child.stop()

    def _kill_command(self, node: _Watched, reply: Reply) -> None:
        child = _running(node)
        log.info("node %d is killed, as asked", node.spec.node_id)
        self._put_down(node, reply)
        child.kill()

    def _put_down(self, node: _Watched, reply: Reply) -> None:
        node.is_down_on_purpose = True
        node.awaiting_end.append(reply)

    def _pause_command(self, node: _Watched, reply: Reply) -> None:
        child, id_ = _running(node), node.spec.node_id
        if child.is_paused or child.is_stopping:
            raise UserError(f"node {id_} is {node.state} already.")
        log.info("node %d is paused, as asked", id_)
        child.pause()
        reply(f"Node {id_} is paused.")

    def _resume_command(self, node: _Watched, reply: Reply) -> None:
        child, id_ = _running(node), node.spec.node_id
        if not child.is_paused:
            raise UserError(f"node {id_} is not paused.")
        log.info("node %d is resumed, as asked", id_)
        child.resume()
        reply(f"Node {id_} is resumed.")


def _running(node: _Watched) -> Child:
    if node.child is None:
        raise UserError(f"node {node.spec.node_id} is down.")
    return node.child


def run_until_interrupted(supervisor: Supervisor) -> int:
    """Run until the nodes end, for example after Ctrl-C or SIGTERM; return the exit status.

    This function sets signal handlers, so it must be called in the main thread.
    """
    signal.set_wakeup_fd(supervisor.alarm_fd(), warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: supervisor.interrupt())
    return supervisor.run()
