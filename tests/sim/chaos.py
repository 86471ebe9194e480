"""Random faults for a cluster, drawn from its seed: never more than a minority down at a time."""

from collections.abc import Callable

from tests.sim.talk import await_true

from tidelog.sim.cluster import SimCluster
from tidelog.sim.host import SimHost


class Chaos:
    """Each `strike` does one thing to the cluster; `calm` undoes all of them."""

    def __init__(self, cluster: SimCluster, *, power_loss: bool = True) -> None:
        self._cluster = cluster
        self._dice = cluster.world.dice.fork("chaos")
        self._power_loss = power_loss

    def below(self, bound: int) -> int:
        return self._dice.below(bound)

    def strike(self) -> None:
        host, other = self._any_host(), self._any_host()
        network = self._cluster.network
        match self.below(12):
            case 0 | 1:
                self._stop(host, host.kill)
            case 2:
                self._stop(host, host.lose_power if self._power_loss else host.kill)
            case 3:
                self._stop(host, host.pause)
            case 4:
                self._stop(host, host.shutdown)
            case 5 | 6:
                self._cluster.start()
            case 7:
                self._wake_all()
            case 8:
                network.heal()
                network.isolate(host.name)
            case 9:
                network.heal()
                network.cut(host.name, other.name)
            case 10:
                network.reset(host.name, other.name)
            case _:
                network.heal()

    def calm(self) -> None:
        """Everything works and runs again."""
        self._cluster.network.heal()
        self._wake_all()
        self._cluster.world.run(5_000)  # whoever is shutting down does so
        self._cluster.start()
        await_true(self._cluster, lambda: self._cluster.is_ready)

    def _any_host(self) -> SimHost:
        return self._cluster.hosts[1 + self.below(len(self._cluster.hosts))]

    def _stop(self, host: SimHost, how: Callable[[], None]) -> None:
        working = [each for each in self._cluster.up if not each.is_paused]
        if host in working and len(working) > len(self._cluster.hosts) // 2 + 1:
            how()

    def _wake_all(self) -> None:
        for host in self._cluster.up:
            if host.is_paused:
                host.resume()
