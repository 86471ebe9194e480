"""What an invariant may be told; each listens to what it needs."""

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
        """A log has grown by these, or was found with them when its node started."""

    def cut(self, copy: Copy, before: Offset) -> None:
        """A log ends earlier than it did."""

    def led(self, copy: Copy) -> None:
        """A copy has begun to lead, in `copy.epoch`."""

    def watermark_moved(self, copy: Copy, before: Offset) -> None:
        """Where a copy's high watermark was, and is not any more."""

    def followers_counted(self, copy: Copy) -> None:
        """A leader believes something else of how far the replicas are."""

    def shrinking(self, copy: Copy, left: Set[NodeId], since: Millis) -> None:
        """A leader asks to do without these, which it may who were level last before `since`."""

    def stance_changed(self, stance: Stance, now: Millis) -> None:
        """A voter of the metadata quorum stands otherwise to an election than before."""

    def image_changed(self, node: NodeId, image: ClusterImage) -> None: ...

    def acknowledged(self, write: ClientWrite) -> None:
        """A producer was told that its batch is written."""

    def read(self, partition: TopicPartition, batches: Sequence[Batch]) -> None:
        """A consumer was given these."""

    def violated(self, sentence: str, about: CommittedRecords | None = None) -> Violation:
        return Violation(self.name, sentence, None if about is None else about.partition)
