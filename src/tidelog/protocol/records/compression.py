"""Compresses records, for tools and tests. A client's compressed batches are stored unchanged.

gzip is always available; snappy, lz4 and zstd are used if their modules are installed.
"""

import zlib
from collections.abc import Callable, Mapping

from tidelog.protocol.records.unpacking import (
    BLOCK_SIZE,
    CODECS,
    GZIP_BITS,
    MAX_UNCOMPRESSED,
    XERIAL_HEADER,
    XERIAL_MAGIC,
    UnreadableRecords,
    module,
    unpack,
)

__all__ = ["CODECS", "MAX_UNCOMPRESSED", "UnreadableRecords", "compress", "decompress"]

_BLOCK = 32 * 1024


def compress(codec: str, data: bytes) -> bytes:
    return _COMPRESS[codec](data)


def decompress(codec: str, data: bytes) -> bytes:
    """Decompress everything in memory."""
    return b"".join(unpack(codec, (data,)))


def _gzip(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=GZIP_BITS)
    return stream.compress(data) + stream.flush()


def _snappy(data: bytes) -> bytes:
    snappy = module("snappy", "snappy")
    packed = bytearray(XERIAL_HEADER.pack(XERIAL_MAGIC, 1, 1))
    for position in range(0, len(data), _BLOCK):
        block = snappy.compress(data[position : position + _BLOCK])
        packed += BLOCK_SIZE.pack(len(block)) + block
    return bytes(packed)


def _lz4(data: bytes) -> bytes:
    # Kafka's reader supports only independent blocks, which do not refer to earlier blocks.
    return bytes(module("lz4", "lz4.frame").compress(data, block_linked=False))


def _zstd(data: bytes) -> bytes:
    return bytes(module("zstd", "zstandard").ZstdCompressor().compress(data))


_COMPRESS: Mapping[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gzip": _gzip,
    "snappy": _snappy,
    "lz4": _lz4,
    "zstd": _zstd,
}
