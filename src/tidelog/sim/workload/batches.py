"""Batches that simulated producers send: small, of one to three records, each value only once."""

from itertools import count
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from tidelog.model.ids import Millis
from tidelog.protocol.batch import read_header
from tidelog.sim.dice import SeededDice
from tidelog.sim.messages import batch

MAX_RECORDS = 3

_PRODUCER, _PRODUCER_AT = Struct(">qhi"), 43
_CRC, _CRC_AT = Struct(">I"), 17
"""Where these stand in a batch's header."""


class Made(NamedTuple):
    content: bytes
    records: int
    crc: int


class Batches:
    def __init__(self, name: str, dice: SeededDice) -> None:
        self._name = name.encode()
        self._dice = dice
        self._numbers = count()

    def make(
        self, now: Millis, producer_id: int = -1, producer_epoch: int = -1, sequence: int = -1
    ) -> Made:
        padding = b"." * self._dice.below(200)
        values = [
            b"%s/%d%s" % (self._name, next(self._numbers), padding)
            for _ in range(1 + self._dice.below(MAX_RECORDS))
        ]
        content = batch(
            *values,
            timestamp=now,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
        )
        return Made(content, len(values), read_header(content).crc)


def renumber(batch: memoryview, producer_id: int, producer_epoch: int, sequence: int) -> None:
    """Give a batch to another producer; this moves its checksum."""
    _PRODUCER.pack_into(batch, _PRODUCER_AT, producer_id, producer_epoch, sequence)
    _CRC.pack_into(batch, _CRC_AT, crc32c(batch[_CRC_AT + _CRC.size :]))
