"""Streaming decompression of records: compressed pieces in, small chunks out.

Invariant: a budget limits the number of unpacked bytes, and therefore the memory. If a batch of a
few kilobytes would unpack to gigabytes, unpacking stops when the budget is spent. gzip is always
available; snappy, lz4 and zstd are used if their modules are installed.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from struct import Struct
from typing import Any

from tidelog.model.disk import Buffer
from tidelog.model.errors import ErrorCode
from tidelog.protocol.malformed import MalformedMessage

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""The names of the codecs, by the codec number in a batch's attributes."""

CHUNK = 16 * 1024
"""The maximum size of a chunk of unpacked bytes."""
MAX_UNCOMPRESSED = 256 * 1024 * 1024

# Java's snappy writes blocks under its own header; other clients write one raw block.
XERIAL_MAGIC = b"\x82SNAPPY\0"
XERIAL_HEADER = Struct(">8sii")
BLOCK_SIZE = Struct(">i")
_SNAPPY_EXPANSION = 24
"""A snappy element encodes up to 64 bytes in 3, so no block expands by more than this factor."""

GZIP_BITS = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"


class UnreadableRecords(MalformedMessage):
    """The records of a batch are invalid, or compressed with an unsupported codec."""

    def __init__(self, reason: str, error: ErrorCode = ErrorCode.corrupt_message) -> None:
        super().__init__(reason)
        self.error = error


class OverBudget(UnreadableRecords):
    """The records may be valid, but they exceed the caller's budget."""


def unpack(codec: str, packed: Iterable[Buffer], budget: int = MAX_UNCOMPRESSED) -> Iterator[bytes]:
    """Unpack in chunks; raises UnreadableRecords, or OverBudget beyond the budget."""
    unpacked = 0
    try:
        for chunk in _UNPACK[codec](iter(packed), budget):
            unpacked += len(chunk)
            if unpacked > budget:
                raise OverBudget(f"records unpack to more than {budget} bytes")
            yield chunk
    except (UnreadableRecords, OSError):
        raise
    except Exception as error:  # each module has its own exceptions
        raise UnreadableRecords(f"{codec}: {error}") from error


def module(codec: str, name: str) -> Any:
    """The Python module of a codec."""
    try:
        return import_module(name)
    except ImportError:
        raise UnreadableRecords(
            f"{codec} needs the Python module {name.partition('.')[0]}, which is not installed",
            ErrorCode.unsupported_compression_type,
        ) from None


def _in_chunks(data: Buffer) -> Iterator[bytes]:
    view = memoryview(data)
    for position in range(0, len(view), CHUNK):
        yield bytes(view[position : position + CHUNK])


def _plain(packed: Iterator[Buffer], _: int) -> Iterator[bytes]:
    for piece in packed:
        yield from _in_chunks(piece)


def _gunzip(packed: Iterator[Buffer], _: int) -> Iterator[bytes]:
    stream = zlib.decompressobj(GZIP_BITS)
    for piece in packed:
        rest: Buffer = piece
        while True:
            chunk = stream.decompress(rest, CHUNK)
            yield chunk
            rest = stream.unconsumed_tail
            if stream.eof:
                rest = stream.unused_data
                if not rest.startswith(_GZIP_MAGIC):
                    return
                stream = zlib.decompressobj(GZIP_BITS)  # another stream may follow
            elif not rest and len(chunk) < CHUNK:
                break  # the decompressor holds no more output
    if not stream.eof:
        raise UnreadableRecords("gzip: the stream is cut short")


def _unlz4(packed: Iterator[Buffer], _: int) -> Iterator[bytes]:
    stream = module("lz4", "lz4.frame").LZ4FrameDecompressor()
    for piece in packed:
        yield stream.decompress(bytes(piece), max_length=CHUNK)
        while not stream.eof and not stream.needs_input:
            yield stream.decompress(b"", max_length=CHUNK)
        if stream.eof:
            return
    raise UnreadableRecords("lz4: the frame is cut short")


def _unzstd(packed: Iterator[Buffer], _: int) -> Iterator[bytes]:
    decompressor = module("zstd", "zstandard").ZstdDecompressor()
    with decompressor.stream_reader(
        _Source(packed), read_size=CHUNK, read_across_frames=True
    ) as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


class _Source:
    """A sequence of byte pieces as a readable file."""

    def __init__(self, pieces: Iterator[Buffer]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def read(self, size: int) -> bytes:
        if not self._rest:
            self._rest = memoryview(next(self._pieces, b""))
        part, self._rest = self._rest[:size], self._rest[size:]
        return bytes(part)


def _unsnappy(packed: Iterator[Buffer], budget: int) -> Iterator[bytes]:
    # A block is unpacked as a whole, so all compressed bytes are collected first. These bytes must
    # not exceed the budget either.
    snappy, data = module("snappy", "snappy"), bytearray()
    for piece in packed:
        data += piece
        if len(data) > budget:
            raise OverBudget(f"records are packed in more than {budget} bytes")
    if not data.startswith(XERIAL_MAGIC):
        yield from _unsnappy_block(snappy, data, budget)
        return
    position, view = XERIAL_HEADER.size, memoryview(data)
    while position < len(data):
        size = BLOCK_SIZE.unpack_from(data, position)[0]
        position += BLOCK_SIZE.size
        if not 0 <= size <= len(data) - position:
            raise UnreadableRecords(f"snappy: a block of {size} bytes")
        yield from _unsnappy_block(snappy, view[position : position + size], budget)
        position += size


def _unsnappy_block(snappy: Any, block: Buffer, budget: int) -> Iterator[bytes]:
    # A block begins with the size of its content. The module would allocate this size unchecked.
    size = 0
    for shift, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            break
    if size > _SNAPPY_EXPANSION * len(block):
        raise UnreadableRecords(f"snappy: {len(block)} bytes cannot unpack to {size}")
    if size > budget:
        raise OverBudget(f"snappy: a block that unpacks to {size} bytes")
    yield from _in_chunks(snappy.uncompress(bytes(block)))


_UNPACK: dict[str, Callable[[Iterator[Buffer], int], Iterator[bytes]]] = {
    "none": _plain,
    "gzip": _gunzip,
    "snappy": _unsnappy,
    "lz4": _unlz4,
    "zstd": _unzstd,
}
