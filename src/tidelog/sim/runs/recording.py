"""Fills a `Recorder` during a run: one moment for every change of a partition."""

from collections.abc import Callable

from tidelog.controller.image.image import PartitionImage
from tidelog.model.ids import NO_EPOCH, NO_NODE, Millis, TopicId
from tidelog.sim.checks.scene import CommittedRecords, Copy, Scene
from tidelog.sim.runs.recorder import Moment, Recorder, ReplicaMoment


class Recording:
    def __init__(self, recorder: Recorder, scene: Scene, now: Callable[[], Millis]) -> None:
        self._recorder = recorder
        self._scene = scene
        self._now = now
        self._placed: dict[tuple[TopicId, int], PartitionImage | None] = {}

    def copy_changed(self, copy: Copy, what: str) -> None:
        self._record(copy.ledger, what)

    def image_changed(self) -> None:
        """Record the partitions that the newest image has changed."""
        for key, ledger in self._scene.ledgers.items():
            placed = self._scene.placed(ledger)
            before = self._placed.get(key)
            if placed is not before and placed is not None:
                self._placed[key] = placed
                self._record(ledger, _difference(before, placed))

    def _record(self, ledger: CommittedRecords, what: str) -> None:
        scene = self._scene
        placed = scene.placed(ledger)
        replicas = tuple(
            (node, ReplicaMoment(copy.end, copy.high_watermark))
            for node in sorted(scene.copies)
            if (copy := scene.copy(node, ledger)) is not None
        )
        if placed is None:
            copies = [copy for node in scene.copies if (copy := scene.copy(node, ledger))]
            leaders = [copy for copy in copies if copy.epoch != NO_EPOCH]
            newest = max(leaders, key=lambda copy: copy.epoch, default=None)
            leader = NO_NODE if newest is None else newest.node
            epoch = NO_EPOCH if newest is None else newest.epoch
            moment = Moment(self._now(), leader, epoch, (), (), replicas, what)
        else:
            moment = Moment(
                self._now(),
                placed.leader,
                placed.leader_epoch,
                placed.isr,
                placed.elr,
                replicas,
                what,
            )
        self._recorder.moment(ledger.partition, moment)


def _difference(before: PartitionImage | None, now: PartitionImage) -> str:
    if before is None:
        return "is created"
    told: list[str] = []
    if before.leader != now.leader:
        told.append(f"leader is {now.leader}" if now.has_leader else "has no leader")
    elif before.leader_epoch != now.leader_epoch:
        told.append(f"a new epoch, {now.leader_epoch}")
    if before.isr != now.isr:
        told.append(f"in sync are {','.join(map(str, now.isr)) or 'none'}")
    if before.elr != now.elr:
        told.append(f"eligible are {','.join(map(str, now.elr)) or 'none'}")
    if before.replicas != now.replicas:
        told.append(f"replicas are {','.join(map(str, now.replicas))}")
    return "; ".join(told) or "has another change"
