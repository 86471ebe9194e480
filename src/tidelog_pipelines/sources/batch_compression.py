"""Decompresses the records of a batch in any of Kafka's codecs, up to a limit.

If a batch cannot be decompressed, `unpack` raises `BadBatch`. The reader of the batch reports this
and continues with the next batch. If the records take more than the limit, `unpack` stops at the
limit and raises `BadBatch`.
"""

import zlib
from collections.abc import Callable, Mapping
from struct import Struct

import cramjam
import lz4.frame
import zstandard

MAX_UNPACKED = 256 * 1024 * 1024

_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER_SIZE = 16
_BLOCK_SIZE = Struct(">i")
_GZIP_BITS = 16 + zlib.MAX_WBITS


class BadBatch(Exception):
    """A batch cannot be read. The message is the reason."""


def _gunzip(packed: bytes) -> bytes:
    unpacked = b""
    while packed:  # a batch may hold several gzip streams
        stream = zlib.decompressobj(_GZIP_BITS)
        unpacked += stream.decompress(packed, MAX_UNPACKED + 1 - len(unpacked))
        if not stream.eof:
            if len(unpacked) <= MAX_UNPACKED:
                raise BadBatch("gzip: the stream is cut short")
            break
        packed = stream.unused_data
    return unpacked


def _unsnappy(packed: bytes) -> bytes:
    # Java's snappy library writes a header and several blocks. Other clients write one raw block.
    if not packed.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(packed)
    position, unpacked = _XERIAL_HEADER_SIZE, bytearray()
    while position < len(packed) and len(unpacked) <= MAX_UNPACKED:
        (size,) = _BLOCK_SIZE.unpack_from(packed, position)
        position += _BLOCK_SIZE.size
        unpacked += _unsnappy_block(packed[position : position + size])
        position += size
    return bytes(unpacked)


def _unsnappy_block(block: bytes) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > MAX_UNPACKED:
        raise BadBatch(f"snappy: a block that unpacks to {size} bytes")
    return bytes(cramjam.snappy.decompress_raw(block))


def _unlz4(packed: bytes) -> bytes:
    stream = lz4.frame.LZ4FrameDecompressor()
    unpacked = bytes(stream.decompress(packed, max_length=MAX_UNPACKED + 1))
    if not stream.eof and len(unpacked) <= MAX_UNPACKED:
        raise BadBatch("lz4: the frame is cut short")
    return unpacked


def _unzstd(packed: bytes) -> bytes:
    decompressor = zstandard.ZstdDecompressor()
    with decompressor.stream_reader(packed, read_across_frames=True) as stream:
        return bytes(stream.read(MAX_UNPACKED + 1))


CODECS: Mapping[int, tuple[str, Callable[[bytes], bytes]]] = {
    0: ("none", bytes),
    1: ("gzip", _gunzip),
    2: ("snappy", _unsnappy),
    3: ("lz4", _unlz4),
    4: ("zstd", _unzstd),
}
"""The name and the decompressor of each codec, by the codec number in a batch's attributes."""


def unpack(codec: int, packed: bytes) -> bytes:
    """The records as they were before compression."""
    if codec not in CODECS:
        raise BadBatch(f"compression {codec} is unknown")
    name, decompress = CODECS[codec]
    try:
        unpacked = decompress(packed)
    except BadBatch:
        raise
    except Exception as error:  # each codec raises exceptions of its own
        raise BadBatch(f"{name}: {error}") from error
    if codec and len(unpacked) > MAX_UNPACKED:
        raise BadBatch(f"{name}: the records unpack to more than {MAX_UNPACKED} bytes")
    return unpacked
