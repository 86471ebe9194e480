"""After an unclean end: scan what may not have reached the disk, cut the tail that did not.

Two kinds of bad bytes are told apart. At or past the recovery point nothing was promised: the
log ends at the last whole valid batch. Below it the bytes were fsynced and are bad now: that is
damage to acknowledged records, which is reported and never turned into a shorter log while sound
batches follow.
"""

from tidelog.log import replay, scan
from tidelog.log.config import LogConfig
from tidelog.log.epochs import LeaderEpochs
from tidelog.log.producer_snapshots import SnapshotFiles
from tidelog.log.producers import ProducerStates
from tidelog.log.results import Damage
from tidelog.log.rolling import MAX_RELATIVE_OFFSET
from tidelog.log.scan import BrokenChainError
from tidelog.log.segment import Hole, Segment
from tidelog.model.ids import NO_EPOCH, LeaderEpoch, Offset
from tidelog.protocol.batch import BatchHeader


class SegmentRecovery:
    """One pass over the unflushed segments of a log, in order."""

    def __init__(
        self,
        config: LogConfig,
        recovery_point: Offset,
        epochs: LeaderEpochs,
        producers: ProducerStates,
    ) -> None:
        self._config = config
        self._recovery_point = recovery_point
        self._epochs = epochs
        self._producers = producers
        self._epoch: LeaderEpoch = NO_EPOCH
        self.end_offset: Offset = 0
        self.scanned_bytes = 0
        self.truncated_bytes = 0
        self.damages: list[Damage] = []

    def run(self, segments: list[Segment], snapshots: SnapshotFiles) -> int:
        """How many of the segments stay; the last of them may have been cut."""
        for number, segment in enumerate(segments):
            following = segments[number + 1] if number + 1 < len(segments) else None
            cut = self._recover(segment, following)
            if cut or (following is not None and self._is_torn_apart(segment, following)):
                self.truncated_bytes += sum(s.size for s in segments[number + 1 :])
                return number + 1
            if following is not None:
                segment.seal()
                snapshots.write(following.base_offset, self._producers.entries)
        return len(segments)

    def _recover(self, segment: Segment, following: Segment | None) -> bool:
        """Scan one segment and rebuild its indexes; whether its tail was cut."""
        segment.reset_indexes()
        self.end_offset = segment.base_offset
        self.scanned_bytes += segment.size
        position, size = 0, segment.size
        holes: list[Hole] = []
        while position < size:
            try:
                self._take(segment, position, size)
                break
            except BrokenChainError as broken:
                hole = self._hole(segment, broken, following)
                if hole is None:
                    self.truncated_bytes += size - broken.position
                    segment.cut_at(broken.position, tuple(holes))
                    return True
                holes.append(hole)
                position, self.end_offset = hole.end, hole.end_offset
        segment.holes = tuple(holes)
        return False

    def _take(self, segment: Segment, position: int, size: int) -> None:
        interval = self._config.index_interval_bytes
        for at, header, batch in scan.batches(segment.file, position, size, self.end_offset):
            reason = self._objection(segment, header)
            if reason is not None:
                raise BrokenChainError(at, self.end_offset, reason)
            self._epoch = header.leader_epoch
            if header.leader_epoch > self._epochs.latest:
                self._epochs.learn(header.leader_epoch, header.base_offset)
            segment.note(
                header.base_offset,
                header.last_offset,
                header.max_timestamp,
                at,
                header.size,
                interval,
            )
            aborted = replay.apply(self._producers, header, batch)
            if aborted is not None:
                segment.transaction_index.add(aborted)
            self.end_offset = header.next_offset

    def _objection(self, segment: Segment, header: BatchHeader) -> str | None:
        """What no checksum tells, since offset and epoch lie outside of it."""
        if header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
            return f"offset {header.last_offset} is too far from the segment's base"
        if header.base_offset >= self._recovery_point and header.leader_epoch < self._epoch:
            # Old bytes behind new ones, left by a truncation that did not reach the disk.
            return f"leader epoch {header.leader_epoch} comes after {self._epoch}"
        return None

    def _is_torn_apart(self, segment: Segment, following: Segment) -> bool:
        """Whether the log ends here, since the next segment does not begin where this one ends."""
        first, end = self.end_offset, following.base_offset
        if first == end or "compact" in self._config.cleanup_policy:
            return False
        if first >= self._recovery_point:
            return True
        if first < end:
            self.damages.append(Damage(first, end, "the segment is shorter than it was"))
            segment.holes += (Hole(segment.size, segment.size, first, end),)
        return False

    def _hole(
        self, segment: Segment, broken: BrokenChainError, following: Segment | None
    ) -> Hole | None:
        """The damaged range below the recovery point; None when the log ends here."""
        first = self.end_offset
        if first >= self._recovery_point:
            return None
        end = scan.resume_after(segment.file, broken.position, segment.size, first)
        if end is not None:
            resumed = next(iter(scan.headers(segment.file, end, segment.size, scan.NEAR, first)))[1]
            end_offset = resumed.base_offset
        elif following is not None:
            end, end_offset = segment.size, following.base_offset
        else:
            self.damages.append(Damage(first, self._recovery_point, f"lost: {broken.reason}"))
            return None
        self.damages.append(Damage(first, end_offset, broken.reason))
        return Hole(broken.position, end, first, end_offset)
