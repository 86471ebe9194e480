"""The image of the committed metadata, which is advanced to the high watermark in slices (F63).

Invariant: the image contains exactly the committed records up to its offset, in the order of the
log. It contains each batch completely or not at all.
"""

from collections.abc import Callable

from tidelog.controller.image.image import ClusterImage
from tidelog.model.ids import Offset, TopicId
from tidelog.node.clock import Clock
from tidelog.node.metadata.metadata_log import MetadataLog, applied
from tidelog.node.quorum.proposals import Proposals
from tidelog.node.timers import Timer
from tidelog.protocol.metadata.metadata_records import MetadataRecord, RemoveTopicRecord
from tidelog.protocol.slices import RECORDS_PER_SLICE, Steps, finish


class CommittedImage:
    def __init__(
        self,
        image: ClusterImage,
        log: MetadataLog,
        proposals: Proposals,
        clock: Clock,
        advanced: Callable[[ClusterImage], None],
        topic_removed: Callable[[TopicId, str], None],
    ) -> None:
        self.image = image
        self.high_watermark: Offset = image.offset + 1
        """The offset up to which the log is known to be committed."""
        self._log = log
        self._proposals = proposals
        self._clock = clock
        self._timers = clock.timers
        self._advanced = advanced
        """Called after each slice, with the image before it."""
        self._topic_removed = topic_removed
        self._steps: Steps[None] | None = None
        self._timer: Timer | None = None

    @property
    def applied_end(self) -> Offset:
        """The offset after the last record in the image."""
        return self.image.offset + 1

    def commit(self, to: Offset) -> None:
        """Advance the image: apply a few records at once, or many records in slices."""
        self.high_watermark = max(self.high_watermark, to)
        if self._steps is None:
            self._steps = self._advance()
            self._go_on()

    def finish(self) -> None:
        """Apply all committed records at once."""
        if self._steps is not None:
            old, steps = self.image, self._steps
            self._stop()
            finish(steps)
            self._advanced(old)

    def replace(self, image: ClusterImage) -> None:
        """Continue from a snapshot, which has replaced the log."""
        self._stop()
        self.image, self.high_watermark = image, image.offset + 1

    def _stop(self) -> None:
        self._steps = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_on(self) -> None:
        assert self._steps is not None
        old, self._timer = self.image, None
        if next(self._steps, self) is self:
            self._steps = None
        else:
            self._timer = self._timers.at(self._clock.now + 1, self._go_on)
        self._advanced(old)

    def _advance(self) -> Steps[None]:
        """Advance the image to a pending image, or if there is none, with records from the log."""
        left = RECORDS_PER_SLICE
        while self.applied_end < self.high_watermark:
            pending = self._proposals.committed(self.high_watermark)
            if pending is not None:
                self.image = pending
                continue
            for last, epoch, records in self._log.read(self.applied_end, self.high_watermark):
                batch: list[MetadataRecord] = []
                for record in records:
                    batch.append(record)
                    left -= 1
                    if not left:
                        left = RECORDS_PER_SLICE
                        yield
                names = self.image.topic_names
                self.image = yield from applied(self.image, batch, last, epoch)
                for record in batch:
                    if isinstance(record, RemoveTopicRecord):
                        self._topic_removed(record.topic_id, names.get(record.topic_id, ""))
