"""The faults of `tidelog whatif`. Each fault changes a running stage and then ends by itself.

If a fault stops a machine, the machine starts again after a random time of a few seconds.
"""

from collections.abc import Callable
from typing import NamedTuple

from tidelog.model.dice import Dice
from tidelog.model.ids import NO_NODE, Millis, NodeId, TopicPartition
from tidelog.sim.machines.host import SimHost
from tidelog.sim.stage.stage import Stage

BACK_AFTER_MS: Millis = 4_000
SPREAD_MS: Millis = 4_000


class WhatIfScene(NamedTuple):
    stage: Stage
    partition: TopicPartition
    dice: Dice

    @property
    def replicas(self) -> list[NodeId]:
        placed = self.stage.placed(self.partition)
        return [] if placed is None else list(placed.replicas)

    @property
    def leader(self) -> SimHost | None:
        leader = self.stage.leader(self.partition)
        host = self.stage.hosts.get(leader)
        return host if host is not None and host.is_up else None

    def followers(self) -> list[SimHost]:
        leader = self.stage.leader(self.partition)
        hosts = [self.stage.hosts[node] for node in self.replicas if node != leader]
        return [host for host in hosts if host.is_up]

    @property
    def is_whole(self) -> bool:
        """Whether the partition has a leader, and every replica is in sync."""
        placed = self.stage.placed(self.partition)
        return (
            placed is not None
            and placed.leader != NO_NODE
            and set(placed.isr) == set(placed.replicas)
        )

    def later(self) -> Millis:
        return BACK_AFTER_MS + self.dice.below(SPREAD_MS)


Strike = Callable[[WhatIfScene], None]


class WhatIfFault(NamedTuple):
    name: str
    meaning: str
    strike: Strike
    replicas: int = 1
    """The number of replicas that a partition needs for this fault."""


def _bring_back(scene: WhatIfScene, host: SimHost) -> None:
    scene.stage.run(scene.later())
    if not host.is_up:
        host.start()


def _crash(scene: WhatIfScene, host: SimHost | None, *, power: bool = False) -> None:
    if host is not None:
        host.lose_power() if power else host.kill()
        _bring_back(scene, host)


def _leader_crash(scene: WhatIfScene) -> None:
    _crash(scene, scene.leader)


def _leader_power_loss(scene: WhatIfScene) -> None:
    _crash(scene, scene.leader, power=True)


def _a_follower(scene: WhatIfScene) -> SimHost | None:
    followers = scene.followers()
    return followers[scene.dice.below(len(followers))] if followers else None


def _follower_crash(scene: WhatIfScene) -> None:
    _crash(scene, _a_follower(scene))


def _follower_power_loss(scene: WhatIfScene) -> None:
    _crash(scene, _a_follower(scene), power=True)


def _leader_pause(scene: WhatIfScene) -> None:
    host = scene.leader
    if host is not None:
        host.pause()
        scene.stage.run(scene.later())
        host.resume()


def _partition(scene: WhatIfScene) -> None:
    """Cut the leader off from the other machines, but not from its clients."""
    host = scene.leader
    if host is not None:
        for other in scene.stage.hosts.values():
            if other is not host:
                scene.stage.network.partition(host.name, other.name)
        scene.stage.run(scene.later())
        scene.stage.network.heal()


def _stop(scene: WhatIfScene, host: SimHost) -> None:
    host.shutdown()
    scene.stage.run_until(lambda: not host.is_up, 30_000)


def _rolling_restart(scene: WhatIfScene) -> None:
    for host in scene.stage.brokers:
        _stop(scene, host)
        scene.stage.run(500 + scene.dice.below(1_000))
        host.start()
        scene.stage.run_until(lambda: scene.stage.is_ready and scene.is_whole, 30_000)


def _last_in_sync(scene: WhatIfScene) -> None:
    """Kill the followers, then the leader, the last in-sync replica. Start the leader last."""
    followers, leader = scene.followers(), scene.leader
    for host in followers:
        host.kill()
    scene.stage.run(300 + scene.dice.below(500))
    if leader is not None and leader.is_up:
        leader.kill()
    scene.stage.run(scene.dice.below(500))
    for host in followers:
        host.start()
    scene.stage.run(BACK_AFTER_MS + scene.later())
    if leader is not None and not leader.is_up:
        leader.start()


def _two(scene: WhatIfScene, *, power: bool) -> None:
    """Stop the leader, and shortly afterwards the new leader. Then start both again."""
    gone: list[SimHost] = []
    for _ in range(2):
        scene.stage.run_until(lambda: scene.leader is not None, 10_000)
        host = scene.leader
        if host is not None:
            host.lose_power() if power else host.kill()
            gone.append(host)
            scene.stage.run(scene.dice.below(2_500))
    scene.stage.run(scene.later())
    for host in gone:
        host.start()


def _two_crashes(scene: WhatIfScene) -> None:
    _two(scene, power=False)


def _two_power_losses(scene: WhatIfScene) -> None:
    _two(scene, power=True)


def _all(scene: WhatIfScene, hosts: list[SimHost], *, power: bool) -> None:
    for host in hosts:
        host.lose_power() if power else host.kill()
    scene.stage.run(500 + scene.dice.below(2_000))
    order = sorted(hosts, key=lambda host: scene.dice.below(1_000))
    for host in order:
        host.start()
        scene.stage.run(scene.dice.below(600))


def _all_crash(scene: WhatIfScene) -> None:
    _all(scene, scene.stage.brokers, power=False)


def _all_power_loss(scene: WhatIfScene) -> None:
    _all(scene, list(scene.stage.hosts.values()), power=True)


FAULTS: dict[str, WhatIfFault] = {
    fault.name: fault
    for fault in (
        WhatIfFault(
            "leader-crash", "the leader's process is killed, and starts again", _leader_crash
        ),
        WhatIfFault(
            "leader-power-loss",
            "the leader's machine loses power, and its unsynced data",
            _leader_power_loss,
        ),
        WhatIfFault("follower-crash", "a follower's process is killed", _follower_crash, 2),
        WhatIfFault(
            "follower-power-loss", "a follower's machine loses power", _follower_power_loss, 2
        ),
        WhatIfFault(
            "broker-pause",
            "the leader's process stops for some seconds, as in a full GC",
            _leader_pause,
        ),
        WhatIfFault(
            "partition",
            "the leader is cut off from the other machines, not from its clients",
            _partition,
        ),
        WhatIfFault(
            "rolling-restart",
            "every broker is shut down cleanly and started again, one after another",
            _rolling_restart,
        ),
        WhatIfFault(
            "two-crashes",
            "the leader is killed, and its successor before the first one is back",
            _two_crashes,
            2,
        ),
        WhatIfFault(
            "two-power-losses",
            "the leader's machine loses power, and then its successor's",
            _two_power_losses,
            2,
        ),
        WhatIfFault(
            "last-in-sync",
            "the followers are killed, then the leader; the followers are back before it",
            _last_in_sync,
            2,
        ),
        WhatIfFault("all-crash", "every broker's process is killed at once", _all_crash),
        WhatIfFault("all-power-loss", "every machine loses power at once", _all_power_loss),
    )
}
