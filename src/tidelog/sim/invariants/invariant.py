"""The methods that the checker calls. Each invariant overrides the methods that it needs."""

from collections.abc import Sequence, Set
from typing import ClassVar

from tidelog.controller.image.image import ClusterImage
from tidelog.model.ids import Millis, NodeId, Offset, TopicPartition
from tidelog.sim.checks.scene import CommittedRecords, Copy, Scene, Stance, Violation
from tidelog.sim.checks.shadow import Batch
from tidelog.sim.clients.history import ClientWrite


class Invariant:
    name: ClassVar[str]

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def appended(self, copy: Copy, batches: Sequence[Batch]) -> None:
        """A log has appended these batches, or held them when its node started."""

    def cut(self, copy: Copy, before: Offset) -> None:
        """A log was truncated."""

    def led(self, copy: Copy) -> None:
        """A copy has become leader in `copy.epoch`."""

    def watermark_moved(self, copy: Copy, before: Offset) -> None:
        """A copy's high watermark has moved from `before`."""

    def followers_counted(self, copy: Copy) -> None:
        """A leader has changed the end offset that it assumes for a replica."""

    def shrinking(self, copy: Copy, left: Set[NodeId], since: Millis) -> None:
        """A leader proposes to drop the replicas `left`, which must have lagged since `since`."""

    def stance_changed(self, stance: Stance, now: Millis) -> None:
        """The election state of a metadata quorum voter has changed."""

    def image_changed(self, node: NodeId, image: ClusterImage) -> None: ...

    def acknowledged(self, write: ClientWrite) -> None:
        """A producer has received an acknowledgement for its batch."""

    def read(self, partition: TopicPartition, batches: Sequence[Batch]) -> None:
        """A consumer has received these batches."""

    def violated(self, sentence: str, about: CommittedRecords | None = None) -> Violation:
        return Violation(self.name, sentence, None if about is None else about.partition)
