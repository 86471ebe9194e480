"""The batches of simulated producers: small batches with unique values, or large batches.

No check reads the records of large batches, so large batches differ only in their headers.
"""

from functools import cache
from itertools import count
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from tidelog.model.ids import Millis
from tidelog.protocol.records.batch import read_header
from tidelog.sim.clients.messages import batch
from tidelog.sim.machines.dice import SeededDice

LARGE = 100
"""A batch with at least this many records is large."""

_TIMES, _TIMES_AT = Struct(">qq"), 27
_PRODUCER, _PRODUCER_AT = Struct(">qhi"), 43
_CRC, _CRC_AT = Struct(">I"), 17
"""The format and the position of fields in a batch header."""


class Made(NamedTuple):
    content: bytes
    records: int
    crc: int


class Batches:
    def __init__(self, name: str, dice: SeededDice, records: int) -> None:
        self._name = name.encode()
        self._dice = dice
        self._records = records
        self._numbers = count()

    def make(
        self, now: Millis, producer_id: int = -1, producer_epoch: int = -1, sequence: int = -1
    ) -> Made:
        """A small batch with a random number of records, or a large one with the maximum number."""
        if self._records >= LARGE:
            return self._large(now, producer_id, producer_epoch, sequence)
        padding = b"." * self._dice.below(200)
        values = [
            b"%s/%d%s" % (self._name, next(self._numbers), padding)
            for _ in range(1 + self._dice.below(self._records))
        ]
        content = batch(
            *values,
            timestamp=now,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
        )
        return Made(content, len(values), read_header(content).crc)

    def _large(self, now: Millis, producer_id: int, producer_epoch: int, sequence: int) -> Made:
        content = bytearray(_large_batch(self._records))
        _TIMES.pack_into(content, _TIMES_AT, now, now)
        renumber(memoryview(content), producer_id, producer_epoch, sequence)
        return Made(bytes(content), self._records, read_header(content).crc)


@cache
def _large_batch(records: int) -> bytes:
    return batch(*[b"."] * records)


def renumber(batch: memoryview, producer_id: int, producer_epoch: int, sequence: int) -> None:
    """Set the producer and the sequence number of a batch, and update its checksum."""
    _PRODUCER.pack_into(batch, _PRODUCER_AT, producer_id, producer_epoch, sequence)
    _CRC.pack_into(batch, _CRC_AT, crc32c(batch[_CRC_AT + _CRC.size :]))
