"""Damages files of machines that are down, and tracks which damage nodes must report."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tidelog.log import names
from tidelog.model.ids import Millis, NodeId
from tidelog.sim.checks.reports import Reports
from tidelog.sim.checks.scene import Scene
from tidelog.sim.faults.budget import Budget
from tidelog.sim.faults.damage import Harm, damage, is_visible
from tidelog.sim.faults.faults import Fault
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

AFTER_SHUTDOWN = 1
"""The `amount` that requests a controlled shutdown before the damage, instead of a kill."""
LOOK_AGAIN_MS: Millis = 50


class Wound(NamedTuple):
    node: NodeId
    harm: Harm
    reports_before: int


class Wounds:
    def __init__(self, cluster: SimCluster, budget: Budget, reports: Reports, scene: Scene) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._budget = budget
        self._reports = reports
        self._scene = scene
        self._dice = cluster.world.dice.fork("damage")
        self._to_report: list[Wound] = []

    def strike(
        self, fault: Fault, host: SimHost, start: Callable[[SimHost], None]
    ) -> Callable[[], None] | None:
        """Stop the node and damage its files; the returned function starts the node again."""
        if not self._budget.allows_damage(host):
            return None
        self._budget.damaged(host)
        if fault.amount != AFTER_SHUTDOWN:
            host.kill()
            self._damage(host, was_clean=False)
            return partial(start, host)
        was_ready = host.node is not None and host.node.is_ready
        host.shutdown()
        self._damage_when_down(host, host.runs, was_ready)
        return partial(self._start_when_damaged, host, host.runs, start)

    def _damage_when_down(self, host: SimHost, run: int, was_ready: bool) -> None:
        if host.runs != run:
            return  # another fault has restarted the node
        if host.is_up:
            again = partial(self._damage_when_down, host, run, was_ready)
            self._world.after(LOOK_AGAIN_MS, again)
        else:
            # A node that shuts down while it opens its logs leaves no clean-shutdown mark. A node
            # that had opened them all must leave one, and find the damage.
            has_ended_well = host.exit is not None and host.exit.status == 0
            is_marked = host.disk.exists(names.CLEAN_SHUTDOWN)
            self._damage(host, was_clean=is_marked or (has_ended_well and was_ready))

    def _start_when_damaged(
        self, host: SimHost, run: int, start: Callable[[SimHost], None]
    ) -> None:
        if host.is_up and host.runs == run:
            again = partial(self._start_when_damaged, host, run, start)
            self._world.after(2 * LOOK_AGAIN_MS, again)
        else:
            self._world.after(2 * LOOK_AGAIN_MS, partial(start, host))

    def _damage(self, host: SimHost, *, was_clean: bool) -> None:
        disk = host.disk
        disk.sync_all()
        before = {path: disk.read_file(path) for path in disk.files()}
        harm = damage(disk, self._dice)
        if harm is None:
            return
        self._scene.damaged.add(host.id)
        self._world.note(f"damage on {host.name}: {harm.what}")
        after = {path: disk.read_file(path) for path in disk.files()}
        if is_visible(harm.paths, before, after, was_clean=was_clean):
            self._to_report.append(Wound(host.id, harm, len(self._reports.messages)))

    def unreported(self) -> list[str]:
        """The visible damage that no node has reported."""
        return [
            f"node {wound.node}: {wound.harm.what}"
            for wound in self._to_report
            if not self._reports.mention(wound.harm.names, wound.reports_before)
        ]
