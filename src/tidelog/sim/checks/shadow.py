"""The batch headers of a log, which the checkers keep in memory."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from tidelog.log.partition import PartitionLog
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Offset, ProducerId
from tidelog.protocol.records.batch import iterate

_READ_BYTES = 1 << 24


class Batch(NamedTuple):
    base: Offset
    last: Offset
    epoch: LeaderEpoch
    crc: int
    """The checksum, which covers only fields that brokers do not change."""
    producer_id: ProducerId
    producer_epoch: int
    sequence: int

    @property
    def key(self) -> tuple[Offset, LeaderEpoch]:
        return self.base, self.epoch

    @property
    def next_sequence(self) -> int:
        return (self.sequence + self.last - self.base + 1) & 0x7FFFFFFF


class ShadowLog:
    """Batches in the order of their offsets."""

    __slots__ = ("_bases", "batches")

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self._bases: list[Offset] = []

    @property
    def end(self) -> Offset:
        return self.batches[-1].last + 1 if self.batches else 0

    def extend(self, batches: Sequence[Batch]) -> None:
        self.batches += batches
        self._bases += [batch.base for batch in batches]

    def cut(self, end: Offset) -> None:
        """Drop every batch that holds `end` or a later offset."""
        keep = len(self.batches)
        while keep and self.batches[keep - 1].last >= end:
            keep -= 1
        del self.batches[keep:], self._bases[keep:]

    def clear(self) -> None:
        self.batches.clear()
        self._bases.clear()

    def at(self, offset: Offset) -> Batch | None:
        """The batch that holds this offset."""
        place = bisect_right(self._bases, offset) - 1
        if place < 0 or self.batches[place].last < offset:
            return None
        return self.batches[place]

    def between(self, start: Offset, end: Offset) -> list[Batch]:
        """The batches that begin at or after `start` and before `end`."""
        first = bisect_right(self._bases, start - 1)
        return self.batches[first : bisect_right(self._bases, end - 1)]

    def before(self, base: Offset) -> Batch | None:
        """The last batch that begins before this offset."""
        place = bisect_right(self._bases, base - 1) - 1
        return self.batches[place] if place >= 0 else None

    def last_of(self, producer_id: int, base: Offset) -> Batch | None:
        """The producer's last batch that begins before this offset and has a sequence number."""
        for place in range(bisect_right(self._bases, base - 1) - 1, -1, -1):
            found = self.batches[place]
            if found.producer_id == producer_id and found.sequence >= 0:
                return found
        return None

    def agreed_end(self, other: "ShadowLog") -> Offset:
        """The offset after the last batch that both logs hold.

        By the log matching invariant, the logs are equal up to this offset.
        """
        for batch in reversed(self.batches):
            found = other.at(batch.base)
            if found is not None and found.key == batch.key:
                return batch.last + 1
        return 0


def read_batches(log: PartitionLog, start: Offset) -> list[Batch]:
    """Read the log's batches from `start` on, up to the first one that cannot be read."""
    found: list[Batch] = []
    offset, end = max(start, log.log_start_offset), log.log_end_offset
    while offset < end:
        try:
            read = log.read(offset, _READ_BYTES, end, at_least_one=True)
            if isinstance(read, ErrorCode) or read.slice is None:
                return found
            data = read.slice.file.read(read.slice.position, read.slice.length)
        except OSError:
            return found
        before = offset
        for _, header in iterate(data):
            last = header.base_offset + header.last_offset_delta
            if header.base_offset >= start:
                found.append(
                    Batch(
                        header.base_offset,
                        last,
                        header.leader_epoch,
                        header.crc,
                        header.producer_id,
                        header.producer_epoch,
                        header.base_sequence,
                    )
                )
            offset = last + 1
        if offset == before:
            return found
    return found
