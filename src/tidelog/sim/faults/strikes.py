"""Executes a schedule: each fault starts at its time, if the budget allows it, and ends later.

`calm` ends all faults and starts every node that is down. The cluster must then recover.
"""

from collections.abc import Callable
from functools import partial

from tidelog.controller.image.image import PartitionImage
from tidelog.model.ids import Millis, NodeId, TopicPartition
from tidelog.protocol.records.batch import HEADER_SIZE, iterate
from tidelog.sim.faults.budget import Budget
from tidelog.sim.faults.faults import CLOCK_STEP, CONTROLLER, LEADER, NEXT_LEADER, Fault
from tidelog.sim.faults.wounds import Wounds
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost
from tidelog.sim.runs.outcome import Counts
from tidelog.sim.runs.recorder import Recorder

QUICK_MS: Millis = 40
"""The duration of a quick restart, which is shorter than every timeout."""
LOOK_AGAIN_MS: Millis = 250

Undo = Callable[[], None]


class Strikes:
    def __init__(
        self,
        cluster: SimCluster,
        budget: Budget,
        counts: Counts,
        begun_at: Millis,
        partition: TopicPartition,
        recorder: Recorder | None,
        wounds: Wounds,
    ) -> None:
        self._cluster = cluster
        self._wounds = wounds
        self._network = cluster.network
        self._world = cluster.world
        self._budget = budget
        self._counts = counts
        self._begun_at = begun_at
        self._partition = partition
        """The partition that LEADER and the other roles in a fault refer to."""
        self._recorder = recorder
        self._dice = cluster.world.dice.fork("strikes")
        self._is_calm = False
        self._kinds: dict[str, Callable[[Fault, SimHost], Undo | None]] = {
            "kill": self._kill,
            "power-loss": self._lose_power,
            "quick-restart": self._quick_restart,
            "blackout": self._blackout,
            "shutdown": self._shut_down,
            "pause": self._pause,
            "isolate": self._isolate,
            "sever": self._sever,
            "partition": self._cut_both,
            "one-way": self._one_way,
            "reset": self._reset,
            "slow-link": self._slow_link,
            "lossy-link": self._lossy_link,
            "slow-disk": self._slow_disk,
            "full-disk": self._full_disk,
            "read-only-disk": self._read_only_disk,
            "failing-fsync": self._failing_fsync,
            "flipped-bit": self._flipped_bit,
            "damage": self._damage,
            "drift": self._drift,
            CLOCK_STEP: self._set_clock,
        }

    def schedule(self, faults: tuple[Fault, ...]) -> None:
        for fault in faults:
            delay = max(0, self._begun_at + fault.at_ms - self._world.now)
            self._world.after(delay, partial(self.strike, fault))

    def strike(self, fault: Fault) -> None:
        if self._is_calm:
            return
        host = self._host(fault.nodes[0] if fault.nodes else 1)
        undo = self._kinds[fault.kind](fault, host)
        if undo is None:
            self._counts.held_back[fault.kind] += 1
            return
        self._counts.faults[fault.kind] += 1
        self._world.note(f"fault {fault.kind} {host.id} {fault.nodes}")
        self._mark(str(fault).partition(" s  ")[2], host)

        def end() -> None:
            if not self._is_calm:
                self._mark(f"end of {fault.kind} node{host.id}", host)
                undo()

        self._world.after(fault.lasts_ms, end)

    def calm(self) -> None:
        """End all faults and start every node that is down as soon as possible."""
        self._is_calm = True
        self._network.heal()
        for host in self._cluster.hosts.values():
            self._mend_disk(host)
            if host.is_up and host.is_paused:
                host.resume()
        self._start_all()

    # -- the machines of a fault -------------------------------------------------------------------

    def _host(self, meant: NodeId) -> SimHost:
        """The machine that a fault refers to; node 1 if no machine has the fault's role now."""
        hosts = self._cluster.hosts
        if meant > 0:
            return hosts[meant]
        if meant == CONTROLLER:
            return next(iter(self._cluster.controllers), hosts[1])
        nodes = [host.node for host in self._cluster.up if host.node is not None]
        newest = max(nodes, key=lambda node: node.image.offset, default=None)
        placed = None if newest is None else newest.image.partition(self._partition)
        if placed is None:
            return hosts[1]
        if meant == LEADER:
            return hosts[placed.leader] if placed.has_leader else hosts[1]
        return self._follower(placed, meant)

    def _follower(self, placed: PartitionImage, meant: NodeId) -> SimHost:
        controllers = {host.id for host in self._cluster.controllers}
        followers = [one for one in placed.replicas if one != placed.leader]
        if meant == NEXT_LEADER:
            followers = [one for one in followers if one in placed.isr] or followers
        others = [one for one in followers if one not in controllers] or followers or [1]
        return self._cluster.hosts[others[0 if meant == NEXT_LEADER else -1]]

    def _other(self, fault: Fault, host: SimHost) -> SimHost:
        """The second machine of a fault; the machine after `host` if both machines are the same."""
        other = self._host(fault.nodes[1])
        return other if other is not host else self._host(host.id % len(self._cluster.hosts) + 1)

    # -- processes and machines --------------------------------------------------------------------

    def _kill(self, fault: Fault, host: SimHost) -> Undo | None:
        if not self._budget.allows_unclean_end(host, is_lossy=False):
            return None
        self._budget.ended_uncleanly(host, is_lossy=False)
        host.kill()
        return lambda: self._start(host)

    def _lose_power(self, fault: Fault, host: SimHost) -> Undo | None:
        if not self._budget.allows_unclean_end(host, is_lossy=True):
            return None
        self._budget.ended_uncleanly(host, is_lossy=True)
        host.lose_power()
        return lambda: self._start(host)

    def _quick_restart(self, fault: Fault, host: SimHost) -> Undo | None:
        undo = self._lose_power(fault, host)
        if undo is not None:
            self._world.after(self._dice.below(QUICK_MS), lambda: self._start(host))
        return undo

    def _blackout(self, fault: Fault, host: SimHost) -> Undo | None:
        if not self._budget.allows_blackout():
            return None
        hosts = list(self._cluster.hosts.values())
        for one in hosts:
            self._budget.ended_uncleanly(one, is_lossy=True)
        for one in hosts:
            one.lose_power()

        def back() -> None:
            for one in hosts:
                late = self._dice.below(1 + fault.amount)
                self._world.after(late, partial(self._start, one))

        return back

    def _shut_down(self, fault: Fault, host: SimHost) -> Undo | None:
        if not self._budget.allows_absence(host):
            return None
        host.shutdown()
        return partial(self._start_when_down, host, host.runs)

    def _pause(self, fault: Fault, host: SimHost) -> Undo | None:
        if not self._budget.allows_absence(host):
            return None
        host.pause()

        def go_on() -> None:
            if host.is_up and host.is_paused:
                host.resume()

        return go_on

    # -- the network -------------------------------------------------------------------------------

    def _isolate(self, fault: Fault, host: SimHost) -> Undo | None:
        if not self._budget.allows_absence(host):
            return None
        self._budget.isolated(host)
        self._network.isolate(host.name)

        def rejoin() -> None:
            self._budget.rejoined(host)
            self._network.rejoin(host.name)

        return rejoin

    def _sever(self, fault: Fault, host: SimHost) -> Undo | None:
        spared = self._other(fault, host)
        others = [one.name for one in self._cluster.hosts.values() if one not in (host, spared)]
        for other in others:
            self._network.partition(host.name, other)

        def mend() -> None:
            for other in others:
                self._network.mend(host.name, other)
                self._network.mend(other, host.name)

        return mend

    def _cut_both(self, fault: Fault, host: SimHost) -> Undo | None:
        other = self._other(fault, host)
        self._network.partition(host.name, other.name)

        def mend() -> None:
            self._network.mend(host.name, other.name)
            self._network.mend(other.name, host.name)

        return mend

    def _one_way(self, fault: Fault, host: SimHost) -> Undo | None:
        other = self._other(fault, host)
        self._network.cut(host.name, other.name)
        return lambda: self._network.mend(host.name, other.name)

    def _reset(self, fault: Fault, host: SimHost) -> Undo | None:
        machines = self._network.machines
        if len(fault.nodes) > 1:
            machines = [self._other(fault, host).name]
        for other in machines:
            self._network.reset(host.name, other)
        return _nothing

    def _slow_link(self, fault: Fault, host: SimHost) -> Undo | None:
        self._network.slow_down(host.name, fault.amount)
        return lambda: self._network.slow_down(host.name, -fault.amount)

    def _lossy_link(self, fault: Fault, host: SimHost) -> Undo | None:
        self._network.lose_segments(host.name, fault.amount)
        return lambda: self._network.lose_segments(host.name, -fault.amount)

    # -- the disks ---------------------------------------------------------------------------------

    def _slow_disk(self, fault: Fault, host: SimHost) -> Undo | None:
        """Slow down fsync. If an fsync takes too long, the node stops itself (F33)."""
        if not self._budget.allows_bad_disk(host, is_lossy=False):
            return None
        self._breaks(host, is_lossy=False)
        host.disk.faults.sync_ms = fault.amount

        def mend() -> None:
            self._budget.disk_mended(host)
            host.disk.faults.sync_ms = 0
            self._start(host)

        return mend

    def _full_disk(self, fault: Fault, host: SimHost) -> Undo | None:
        if not self._budget.allows_bad_disk(host, is_lossy=False):
            return None
        self._breaks(host, is_lossy=False)
        host.disk.faults.capacity = host.disk.used
        return lambda: self._repair(host)

    def _read_only_disk(self, fault: Fault, host: SimHost) -> Undo | None:
        if not self._budget.allows_bad_disk(host, is_lossy=False):
            return None
        self._breaks(host, is_lossy=False)
        host.disk.faults.is_read_only = True
        return lambda: self._repair(host)

    def _failing_fsync(self, fault: Fault, host: SimHost) -> Undo | None:
        if not self._budget.allows_bad_disk(host, is_lossy=True):
            return None
        self._breaks(host, is_lossy=True)
        host.disk.faults.fails_sync = True

        def replace() -> None:
            if host.is_up:
                host.kill()
            host.disk.crash(self._dice)
            self._repair(host)

        return replace

    def _flipped_bit(self, fault: Fault, host: SimHost) -> Undo | None:
        if not self._budget.allows_unclean_end(host, is_lossy=True):
            return None
        self._budget.ended_uncleanly(host, is_lossy=True)
        host.kill()
        self._flip(host)
        return lambda: self._start(host)

    def _flip(self, host: SimHost) -> None:
        """Flip a bit in an unsynced batch, if there is one, at a place that the checksum covers."""
        places: list[tuple[str, int]] = []
        for directory in host.disk.list(""):
            for name in host.disk.list(directory):
                if name.endswith(".log") and not directory.startswith("__cluster_metadata"):
                    path = f"{directory}/{name}"
                    durable = host.disk.durable_size(path)
                    for at, header in iterate(memoryview(host.disk.read_file(path))):
                        if at >= durable and header.size > HEADER_SIZE:
                            places.append((path, at + HEADER_SIZE))
        if places:
            path, at = places[self._dice.below(len(places))]
            self._world.note(f"a bit flips in {host.name} {path}")
            host.disk.flip_bit(path, at * 8 + self._dice.below(8))

    def _damage(self, fault: Fault, host: SimHost) -> Undo | None:
        return self._wounds.strike(fault, host, self._start)

    def _breaks(self, host: SimHost, *, is_lossy: bool) -> None:
        self._budget.disk_broke(host)
        self._budget.ended_uncleanly(host, is_lossy=is_lossy)

    def _repair(self, host: SimHost) -> None:
        """Kill the process, repair its disk and start it again, as an operator would."""
        if host.is_up:
            host.kill()
        self._mend_disk(host)
        self._start(host)

    def _mend_disk(self, host: SimHost) -> None:
        self._budget.disk_mended(host)
        faults = host.disk.faults
        was_broken = faults.is_read_only or faults.capacity is not None or faults.fails_sync
        faults.is_read_only = faults.fails_sync = False
        faults.capacity, faults.sync_ms = None, 0
        if was_broken and host.is_up:
            host.kill()

    # -- the clocks --------------------------------------------------------------------------------

    def _drift(self, fault: Fault, host: SimHost) -> Undo | None:
        host.drift(fault.amount)
        return lambda: host.drift(0)

    def _set_clock(self, fault: Fault, host: SimHost) -> Undo | None:
        """Set the clock of the named machine, or of all machines.

        When the fault ends, the change is undone.
        """
        hosts = [host] if fault.nodes else list(self._cluster.hosts.values())

        def set_all(by_ms: Millis) -> None:
            for one in hosts:
                one.set_clock(by_ms)

        set_all(fault.amount)
        return lambda: set_all(-fault.amount)

    # -- starting again ----------------------------------------------------------------------------

    def _start(self, host: SimHost) -> None:
        if not host.is_up:
            host.start()

    def _start_when_down(self, host: SimHost, run: int) -> None:
        if host.is_up and host.runs == run:
            self._world.after(LOOK_AGAIN_MS, partial(self._start_when_down, host, run))
        else:
            self._start(host)

    def _start_all(self) -> None:
        """Start stopped nodes repeatedly, because a shutdown may still be in progress."""
        self._cluster.start()
        self._world.after(LOOK_AGAIN_MS, self._start_all)

    def _mark(self, what: str, host: SimHost) -> None:
        if self._recorder is not None:
            self._recorder.mark(self._world.now - self._begun_at, what, (host.id,))


def _nothing() -> None:
    """Undo nothing, for a fault that has no duration."""
