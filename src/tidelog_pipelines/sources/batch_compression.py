"""Unpacks the records of a batch, whichever of Kafka's codecs packed them, with one library.

What cannot be unpacked is a `BadBatch`: its reader reports it, and goes on with the next batch.
"""

from collections.abc import Callable, Mapping
from struct import Struct

import cramjam

_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER_SIZE = 16
_BLOCK_SIZE = Struct(">i")


class BadBatch(Exception):
    """A batch that cannot be read; says why."""


def _unsnappy(packed: bytes) -> bytes:
    # Java's snappy comes in blocks under a header of its own; other clients write one raw block.
    if not packed.startswith(_XERIAL_MAGIC):
        return bytes(cramjam.snappy.decompress_raw(packed))
    position, blocks = _XERIAL_HEADER_SIZE, []
    while position < len(packed):
        (size,) = _BLOCK_SIZE.unpack_from(packed, position)
        position += _BLOCK_SIZE.size
        blocks.append(bytes(cramjam.snappy.decompress_raw(packed[position : position + size])))
        position += size
    return b"".join(blocks)


CODECS: Mapping[int, tuple[str, Callable[[bytes], bytes]]] = {
    0: ("none", bytes),
    1: ("gzip", lambda packed: bytes(cramjam.gzip.decompress(packed))),
    2: ("snappy", _unsnappy),
    3: ("lz4", lambda packed: bytes(cramjam.lz4.decompress(packed))),
    4: ("zstd", lambda packed: bytes(cramjam.zstd.decompress(packed))),
}
"""By the number in a batch's attributes."""


def unpack(codec: int, packed: bytes) -> bytes:
    """The records as they were before compression."""
    if codec not in CODECS:
        raise BadBatch(f"compression {codec} is unknown")
    name, decompress = CODECS[codec]
    try:
        return decompress(packed)
    except Exception as error:  # each codec has exceptions of its own
        raise BadBatch(f"{name}: {error}") from error
