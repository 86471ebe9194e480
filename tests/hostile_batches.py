"""Batches of a hostile client: the checksums are valid, but the counts may be wrong."""

from crc32c import crc32c

from tidelog.protocol.records.batch import HEADER_SIZE
from tidelog.protocol.records.compression import CODECS, compress
from tidelog.protocol.records.records import Record, build_batch
from tidelog.protocol.varint import varint


def claiming(batch: bytes, count: int) -> bytes:
    """The same batch with another record count."""
    made = bytearray(batch)
    made[23:27] = (count - 1).to_bytes(4, "big", signed=True)
    made[57:61] = count.to_bytes(4, "big", signed=True)
    return _sealed(made)


def bomb(codec: str, count: int, timestamp: int, newest: int | None = None) -> bytes:
    """A batch of equal records with equal offsets, so that it compresses as well as possible.

    With `newest`, the header claims this maximum timestamp.
    """
    body = compress(codec, (b"\x0c" + bytes(3) + varint(-1) * 2 + b"\0") * count)
    made = bytearray(build_batch([Record(None, None, timestamp)])[:HEADER_SIZE]) + body
    made[8:12] = (len(made) - 12).to_bytes(4, "big")
    made[22] = CODECS.index(codec)
    if newest is not None:
        made[35:43] = newest.to_bytes(8, "big")
    return claiming(bytes(made), count)


def _sealed(batch: bytearray) -> bytes:
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)
