"""Metadata matches: two nodes that have applied the same metadata offset hold the same image."""

from tidelog.controller.image.image import ClusterImage
from tidelog.model.ids import NodeId, Offset
from tidelog.sim.checks.scene import Scene
from tidelog.sim.invariants.invariant import Invariant


class MetadataMatches(Invariant):
    name = "metadata matches"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._first: dict[Offset, tuple[NodeId, ClusterImage]] = {}

    def image_changed(self, node: NodeId, image: ClusterImage) -> None:
        first, theirs = self._first.setdefault(image.offset, (node, image))
        if theirs is not image and theirs != image:
            raise self.violated(
                f"at offset {image.offset} of the metadata nodes {first} and {node} differ"
            )
