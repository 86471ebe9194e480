"""Appends the decisions of the active controller to the metadata log, one batch per decision.

Invariant: every decision is based on all earlier decisions. A decision with many records is applied
and encoded in slices, between other events (F63). Later decisions wait until its records are in the
log.
"""

from collections import deque
from collections.abc import Callable, Sequence

from tidelog.controller.image.apply import apply_steps
from tidelog.controller.image.image import ClusterImage
from tidelog.model.ids import LeaderEpoch, Offset
from tidelog.node.clock import Clock
from tidelog.node.metadata.metadata_log import MetadataLog
from tidelog.node.ready import ReadyQueue
from tidelog.protocol.metadata.metadata_records import MetadataRecord
from tidelog.protocol.slices import RECORDS_PER_SLICE, Steps, finish

Committed = Callable[[bool], None]
"""Called with True when records are committed, or with False if the leadership is lost."""

Settled = Callable[[ClusterImage | None], None]
"""Called with the image after the committed records, or with None if the leadership is lost."""


class Proposals:
    def __init__(
        self,
        log: MetadataLog,
        clock: Clock,
        ready: ReadyQueue,
        appended: Callable[[], None],
    ) -> None:
        self._log = log
        self._clock = clock
        self._timers = clock.timers
        self._ready = ready
        self._appended = appended
        self._pending: deque[tuple[Offset, ClusterImage]] = deque()
        """The image after each appended batch, with the end offset of the batch."""
        self.newest: ClusterImage | None = None
        """The image after all appended records; None if all of them are committed."""
        self._waiting: deque[tuple[Offset, Committed]] = deque()
        self._writing: Steps[None] | None = None
        """The decision that is being written in slices."""
        self._unwritten: Settled | None = None
        """The callback of that decision."""
        self._turns: deque[Callable[[], None]] = deque()
        self._is_timed = False

    def in_turn(self, decide: Callable[[], None]) -> None:
        """Call `decide` at once, or after the decision that is being written."""
        if self._writing is None and not self._turns:
            decide()
        else:
            self._turns.append(decide)

    def propose(
        self,
        image: ClusterImage,
        records: Sequence[MetadataRecord],
        epoch: LeaderEpoch,
        done: Settled,
    ) -> None:
        """Append the records, which are based on this image, as one batch."""
        assert self._writing is None
        steps = self._write(image, records, epoch, done)
        if len(records) <= RECORDS_PER_SLICE:
            finish(steps)
            return
        self._writing, self._unwritten = steps, done
        self._set_timer()

    def add(self, end: Offset, image: ClusterImage, done: Committed) -> None:
        """Add a batch that is in the log now."""
        self._pending.append((end, image))
        self.newest = image
        self._waiting.append((end, done))
        self._appended()

    def finish_writing(self) -> None:
        """Write the rest of the current decision at once, for an append that cannot wait."""
        if self._writing is not None:
            finish(self._writing)
            self._writing = self._unwritten = None

    def when_committed(self, done: Committed) -> None:
        """Call `done` when all pending records are committed, or at once if there are none."""
        if self._pending:
            self._waiting.append((self._pending[-1][0], done))
        else:
            self._ready.add((done, (True,)))

    def committed(self, to: Offset) -> ClusterImage | None:
        """Remove the pending images up to this offset; returns the last removed image."""
        image = None
        while self._pending and self._pending[0][0] <= to:
            image = self._pending.popleft()[1]
        if not self._pending:
            self.newest = None
        return image

    def answer(self, applied: Offset) -> None:
        """Answer the requests whose records are committed and applied."""
        while self._waiting and self._waiting[0][0] <= applied:
            self._ready.add((self._waiting.popleft()[1], (True,)))

    def drop(self) -> Callable[[Offset], None]:
        """Forget the uncommitted decisions; returns the function that answers their requests."""
        waiting, self._waiting = self._waiting, deque()
        unwritten, self._unwritten, self._writing = self._unwritten, None, None
        self._pending.clear()
        self.newest = None

        def answer(high_watermark: Offset) -> None:
            for end, done in waiting:
                # The batch may already be committed.
                self._ready.add((done, (end <= high_watermark,)))
            if unwritten is not None:
                self._ready.add((unwritten, (None,)))

        return answer

    def _write(
        self,
        base: ClusterImage,
        records: Sequence[MetadataRecord],
        epoch: LeaderEpoch,
        done: Settled,
    ) -> Steps[None]:
        # Apply the records first, because records that cannot be applied must not be written.
        last = self._log.end.offset + len(records) - 1
        image = yield from apply_steps(base, records, last, epoch)
        end = yield from self._log.append_steps(records, epoch, self._clock.wall)
        assert end == last + 1
        self.add(end, image, lambda is_committed: done(image if is_committed else None))

    def _set_timer(self) -> None:
        if not self._is_timed and (self._writing is not None or self._turns):
            self._is_timed = True
            self._timers.at(self._clock.now + 1, self._go_on)

    def _go_on(self) -> None:
        """Write one slice, or continue with the next decision."""
        self._is_timed = False
        if self._writing is not None:
            if next(self._writing, self) is self:
                self._writing = self._unwritten = None
        elif self._turns:
            self._turns.popleft()()
        self._set_timer()
