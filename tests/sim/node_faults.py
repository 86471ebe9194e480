"""Faults of one node of a simulated cluster, and their repair."""

from tests.sim.talk import await_true

from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.host import SimHost

NODE_FAULTS = ("kill", "power", "isolate", "pause", "one way", "reset", "shutdown")


def begin(cluster: SimCluster, host: SimHost, fault: str, dice: SeededDice) -> None:
    match fault:
        case "kill":
            host.kill()
        case "power":
            host.lose_power()
        case "isolate":
            cluster.network.isolate(host.name)
        case "pause":
            host.pause()
        case "one way":
            others = [other for other in cluster.hosts.values() if other is not host]
            other = others[dice.below(len(others))]
            cluster.network.cut(*sorted((host.name, other.name), reverse=dice.below(2) == 1))
        case "reset":
            for other in cluster.hosts.values():
                cluster.network.reset(host.name, other.name)
        case "shutdown":
            host.shutdown()
            await_true(cluster, lambda: not host.is_up)
        case _:
            raise AssertionError(fault)


def mend(cluster: SimCluster) -> None:
    cluster.network.heal()
    for host in cluster.up:
        if host.is_paused:
            host.resume()
    cluster.start()
