"""The active controller of a simulated cluster, its successor, and the other nodes."""

from tests.sim.talk import await_true

from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

SESSION_MS = 2_000


def only_controller(cluster: SimCluster) -> SimHost:
    [controller] = cluster.controllers
    return controller


def another(cluster: SimCluster, *than: SimHost) -> SimHost:
    return next(host for host in cluster.hosts.values() if host not in than)


def await_new_controller(cluster: SimCluster, old: SimHost, limit_ms: int = 20_000) -> SimHost:
    def has_changed() -> bool:
        return any(host is not old for host in cluster.controllers)

    await_true(cluster, has_changed, limit_ms)
    return next(host for host in cluster.controllers if host is not old)
