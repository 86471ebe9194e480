"""Compresses records, for the cleaner, for compression.type, for tools and for tests.

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


def compress(codec: str, data: bytes, level: int | None = None) -> bytes:
    """Compress with a level of the codec; None is the codec's default."""
    return _COMPRESS[codec](data, level)


def decompress(codec: str, data: bytes) -> bytes:
    """Decompress everything in memory."""
    return b"".join(unpack(codec, (data,)))


def _plain(data: bytes, level: int | None) -> bytes:
    return data


def _gzip(data: bytes, level: int | None) -> bytes:
    stream = zlib.compressobj(-1 if level is None else level, wbits=GZIP_BITS)
    return stream.compress(data) + stream.flush()


def _snappy(data: bytes, level: int | None) -> bytes:
    snappy = module("snappy", "snappy")
    packed = bytearray(XERIAL_HEADER.pack(XERIAL_MAGIC, 1, 1))
    for position in range(0, len(data), _BLOCK):
        block = snappy.compress(data[position : position + _BLOCK])
        packed += BLOCK_SIZE.pack(len(block)) + block
    return bytes(packed)


def _lz4(data: bytes, level: int | None) -> bytes:
    # Kafka's reader supports only independent blocks, which do not refer to earlier blocks.
    options = {} if level is None else {"compression_level": level}
    return bytes(module("lz4", "lz4.frame").compress(data, block_linked=False, **options))


def _zstd(data: bytes, level: int | None) -> bytes:
    compressor = module("zstd", "zstandard").ZstdCompressor(3 if level is None else level)
    return bytes(compressor.compress(data))


_COMPRESS: Mapping[str, Callable[[bytes, int | None], bytes]] = {
    "none": _plain,
    "gzip": _gzip,
    "snappy": _snappy,
    "lz4": _lz4,
    "zstd": _zstd,
}
