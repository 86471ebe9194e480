"""Compression of records, for tools and lookups: what a client has compressed stays as it is.

gzip is always there; snappy, lz4 and zstd are used if their modules are installed. What comes out
is bounded, so that a small batch cannot unpack into all of the memory.
"""

import zlib
from collections.abc import Callable, Mapping
from importlib import import_module
from struct import Struct
from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.protocol.malformed import MalformedMessage

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""By the number in a batch's attributes."""

MAX_UNCOMPRESSED = 256 * 1024 * 1024

# Java's snappy comes in blocks under a header of its own; other clients write one raw block.
_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER = Struct(">8sii")
_BLOCK_SIZE = Struct(">i")
_BLOCK = 32 * 1024

_GZIP = 16 + zlib.MAX_WBITS


class UnreadableRecords(MalformedMessage):
    """The records of a batch are broken, or compressed in a way that is not supported here."""

    def __init__(self, reason: str, error: ErrorCode = ErrorCode.corrupt_message) -> None:
        super().__init__(reason)
        self.error = error


def compress(codec: str, data: bytes) -> bytes:
    return _COMPRESS[codec](data)


def decompress(codec: str, data: bytes) -> bytes:
    try:
        return _DECOMPRESS[codec](data)
    except UnreadableRecords:
        raise
    except Exception as error:  # each module has exceptions of its own
        raise UnreadableRecords(f"{codec}: {error}") from error


def _module(codec: str, name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise UnreadableRecords(
            f"{codec} needs the Python module {name.partition('.')[0]}, which is not installed",
            ErrorCode.unsupported_compression_type,
        ) from None


def _bounded(data: bytes) -> bytes:
    if len(data) > MAX_UNCOMPRESSED:
        raise UnreadableRecords(f"records unpack to more than {MAX_UNCOMPRESSED} bytes")
    return data


def _gunzip(data: bytes) -> bytes:
    return _bounded(zlib.decompressobj(_GZIP).decompress(data, MAX_UNCOMPRESSED + 1))


def _gzip(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=_GZIP)
    return stream.compress(data) + stream.flush()


def _unsnappy(data: bytes) -> bytes:
    snappy = _module("snappy", "snappy")
    if not data.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(snappy, data)
    position, unpacked = _XERIAL_HEADER.size, bytearray()
    while position < len(data):
        size = _BLOCK_SIZE.unpack_from(data, position)[0]
        position += _BLOCK_SIZE.size
        if not 0 <= size <= len(data) - position:
            raise UnreadableRecords(f"snappy: a block of {size} bytes")
        unpacked += _unsnappy_block(snappy, data[position : position + size])
        position += size
        if len(unpacked) > MAX_UNCOMPRESSED:
            break
    return _bounded(bytes(unpacked))


def _unsnappy_block(snappy: Any, block: bytes) -> bytes:
    # A raw block begins with the size of its content, which the module allocates unseen.
    size = 0
    for shift, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            break
    if size > MAX_UNCOMPRESSED:
        raise UnreadableRecords(f"snappy: a block that unpacks to {size} bytes")
    return bytes(snappy.uncompress(block))


def _snappy(data: bytes) -> bytes:
    snappy = _module("snappy", "snappy")
    packed = bytearray(_XERIAL_HEADER.pack(_XERIAL_MAGIC, 1, 1))
    for position in range(0, len(data), _BLOCK):
        block = snappy.compress(data[position : position + _BLOCK])
        packed += _BLOCK_SIZE.pack(len(block)) + block
    return bytes(packed)


def _unlz4(data: bytes) -> bytes:
    stream = _module("lz4", "lz4.frame").LZ4FrameDecompressor()
    return _bounded(stream.decompress(data, max_length=MAX_UNCOMPRESSED + 1))


def _lz4(data: bytes) -> bytes:
    # Kafka's reader takes independent blocks only.
    return bytes(_module("lz4", "lz4.frame").compress(data, block_linked=False))


def _unzstd(data: bytes) -> bytes:
    with _module("zstd", "zstandard").ZstdDecompressor().stream_reader(data) as stream:
        return _bounded(stream.read(MAX_UNCOMPRESSED + 1))


def _zstd(data: bytes) -> bytes:
    return bytes(_module("zstd", "zstandard").ZstdCompressor().compress(data))


_COMPRESS: Mapping[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gzip": _gzip,
    "snappy": _snappy,
    "lz4": _lz4,
    "zstd": _zstd,
}
_DECOMPRESS: Mapping[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gzip": _gunzip,
    "snappy": _unsnappy,
    "lz4": _unlz4,
    "zstd": _unzstd,
}
