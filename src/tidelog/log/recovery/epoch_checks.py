"""Compares leader-epoch-checkpoint with the batches, and rebuilds the file from the batches.

Every batch carries its leader epoch, so the file is derived data. A wrong file would make a
follower truncate its log at the wrong offset, so the file is compared with the batches before it is
used.
"""

from collections.abc import Sequence
from contextlib import suppress

from tidelog.log.checkpoints.epochs import LeaderEpochs
from tidelog.log.recovery.continuity import Tail
from tidelog.log.segments.scan import BrokenChainError
from tidelog.log.segments.segment import Segment
from tidelog.log.segments.segment_list import SegmentList
from tidelog.model.ids import NO_EPOCH, Offset
from tidelog.protocol.records.batch import BatchHeader


def fit_tails(epochs: LeaderEpochs, tails: Sequence[Tail]) -> bool:
    """Whether the epochs match the last batch of each segment."""
    return all(
        epochs.at(tail.last_offset) == tail.leader_epoch for tail in tails if tail.last_offset >= 0
    )


def rebuild(epochs: LeaderEpochs, segments: Sequence[Segment], tails: Sequence[Tail]) -> None:
    """Rebuild the epochs from the batches of these segments, and drop all other epochs."""
    epochs.forget()
    for segment, tail in zip(segments, tails, strict=True):
        first = segment.header_at(0)
        if first is None or tail.leader_epoch <= epochs.latest:
            continue
        if first.leader_epoch == tail.leader_epoch:
            epochs.learn(first.leader_epoch, first.base_offset)
        else:
            learn(epochs, segment)
    epochs.write()


def learn(epochs: LeaderEpochs, segment: Segment) -> None:
    """Add the epochs of one segment's batches."""
    with suppress(BrokenChainError):
        for _, header in segment.headers():
            if header.leader_epoch > epochs.latest:
                epochs.learn(header.leader_epoch, header.base_offset)


def fit_boundaries(
    epochs: LeaderEpochs, segments: SegmentList, start: Offset, end: Offset, *, has_gaps: bool
) -> bool:
    """Whether the first and the last batch of each epoch carry that epoch.

    Epochs never decrease from batch to batch, so the batches between these two match as well. If
    compaction has left gaps, the first batch of an epoch may begin later, and an epoch may have no
    batch.
    """
    entries = [entry for entry in epochs.entries if entry.start_offset < end]
    for number, (epoch, begins) in enumerate(entries):
        ends = entries[number + 1].start_offset if number + 1 < len(entries) else end
        first = _batch_at(segments, max(begins, start))
        if has_gaps and first is not None and first.base_offset >= ends:
            continue
        if first is not None and first.leader_epoch != epoch:
            return False
        if first is not None and begins > start and first.base_offset != begins and not has_gaps:
            return False
        last = _batch_at(segments, max(ends - 1, start))
        if has_gaps and last is not None and last.base_offset >= ends:
            continue
        if last is not None and last.leader_epoch != epoch:
            return False
    return True


def rebuild_all(epochs: LeaderEpochs, segments: SegmentList) -> None:
    """Rebuild the epochs from all segments. Segments without a change of epoch are not scanned."""
    epochs.forget()
    for number, segment in enumerate(segments):
        following = segments[number + 1] if number + 1 < len(segments) else None
        first = segment.header_at(0)
        beyond = following.header_at(0) if following is not None else None
        if first is not None and beyond is not None and first.leader_epoch == beyond.leader_epoch:
            epochs.learn(first.leader_epoch, first.base_offset)
        else:
            learn(epochs, segment)
    epochs.write()


def _batch_at(segments: SegmentList, offset: Offset) -> BatchHeader | None:
    """The header of the batch that holds an offset; None if it cannot be read."""
    segment = segments[segments.index_of(offset)]
    hole = segment.hole_at(offset) if segment.holes else None
    if hole is not None and hole.first_offset <= offset:
        return None
    with suppress(BrokenChainError):
        for _, header in segment.headers_from(offset):
            return header if header.leader_epoch != NO_EPOCH else None
    return None
