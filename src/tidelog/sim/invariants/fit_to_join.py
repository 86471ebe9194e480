"""A replica joins an in-sync set only if its broker is not fenced and not shutting down (F16)."""

from tidelog.controller.image.image import ClusterImage
from tidelog.model.ids import NodeId, Offset, TopicId
from tidelog.sim.checks.scene import Scene
from tidelog.sim.invariants.invariant import Invariant


class FitToJoin(Invariant):
    name = "a joining replica is neither fenced nor shutting down"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._isr: dict[tuple[TopicId, int], tuple[NodeId, ...]] = {}
        self._seen: Offset = -1

    def image_changed(self, node: NodeId, image: ClusterImage) -> None:
        if image.offset <= self._seen:
            return
        self._seen = image.offset
        for topic in image.topics.values():
            for index, placed in topic.partitions.items():
                key = (topic.topic_id, index)
                before = self._isr.get(key)
                if before is placed.isr:
                    continue
                self._isr[key] = placed.isr
                unfit = [
                    member
                    for member in placed.isr
                    if member not in (before or ()) and not image.is_active(member)
                ]
                if unfit:
                    raise self.violated(
                        f"{unfit} joined while fenced or shutting down",
                        self.scene.ledgers.get(key),
                    )
