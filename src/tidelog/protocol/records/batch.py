"""Reads, checks and patches the header of a record batch (magic 2) in place.

This module reads only the 61-byte header of a batch, never a record. The fields of the header are:

     0 base offset i64        8 length i32        12 leader epoch i32   16 magic i8      17 crc u32
    21 attributes i16        23 last delta i32    27 base timestamp i64 35 max timestamp i64
    43 producer id i64       51 producer epoch i16  53 base sequence i32  57 record count i32

The CRC covers everything from the attributes on. Base offset and leader epoch can therefore be
patched without a new CRC.
"""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from tidelog.model.disk import Buffer
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Millis, Offset, ProducerId

HEADER_SIZE = 61
LOG_OVERHEAD = 12
"""The size of the base offset and of the length field, which the length does not include."""

MAGIC = 2
COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
ZSTD = 4
"""The compression codec that the oldest clients do not know."""

_CHECKED_FROM = 21
"""The start of the bytes that the CRC covers."""
_LOWER_ATTRIBUTES = 22
_HEADER = Struct(">qiibIhiqqqhii")
_OFFSET = Struct(">q")
_I32 = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")

assert _HEADER.size == HEADER_SIZE


class BatchHeader(NamedTuple):
    base_offset: Offset
    length: int
    leader_epoch: LeaderEpoch
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: Millis
    max_timestamp: Millis
    producer_id: ProducerId
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return LOG_OVERHEAD + self.length

    @property
    def last_offset(self) -> Offset:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> Offset:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_MASK != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_MASK != 0

    @property
    def uses_log_append_time(self) -> bool:
        return self.attributes & TIMESTAMP_TYPE_MASK != 0


_new_header: Callable[[type[BatchHeader], tuple[int, ...]], BatchHeader] = tuple.__new__
"""BatchHeader(*fields) without a Python call, because each header is read several times."""


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at `position`; the caller has checked that 61 bytes are there."""
    return _new_header(BatchHeader, _HEADER.unpack_from(buffer, position))


def peek_attributes(buffer: Buffer) -> int:
    """The lower byte of the first batch's attributes, unchecked; 0 if the byte is missing."""
    return buffer[_LOWER_ATTRIBUTES] if len(buffer) > _LOWER_ATTRIBUTES else 0


def peek_size(buffer: Buffer, position: int) -> int:
    """The size of the batch at `position`, unchecked."""
    length: int = _I32.unpack_from(buffer, position + 8)[0]
    return LOG_OVERHEAD + length


def is_valid_crc(buffer: memoryview, position: int, header: BatchHeader) -> bool:
    return _crc(buffer, position, header.size) == header.crc


def _crc(buffer: memoryview, position: int, size: int) -> int:
    """The CRC of everything except the offset and the epoch, which are patched."""
    return crc32c(buffer[position + _CHECKED_FROM : position + size])


def check(buffer: memoryview, position: int = 0) -> BatchHeader | ErrorCode:
    """The header of a whole, valid batch at `position`, or Kafka's error code."""
    available = len(buffer) - position
    if available < HEADER_SIZE:
        # A batch of an older format may be shorter than a header. The magic byte shows the format.
        if available > 16 and buffer[position + 16] in (0, 1):
            return ErrorCode.unsupported_for_message_format
        return ErrorCode.corrupt_message
    header = read_header(buffer, position)
    if header.magic != MAGIC:
        if header.magic in (0, 1):
            return ErrorCode.unsupported_for_message_format
        return ErrorCode.corrupt_message
    size = LOG_OVERHEAD + header.length
    if not HEADER_SIZE <= size <= available:
        return ErrorCode.corrupt_message
    if _crc(buffer, position, size) != header.crc:
        return ErrorCode.corrupt_message
    return header


def iterate(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each whole batch; stop at the first partial batch."""
    position, end = 0, len(buffer)
    while position + HEADER_SIZE <= end:
        header = read_header(buffer, position)
        if header.length < HEADER_SIZE - LOG_OVERHEAD or position + header.size > end:
            return
        yield position, header
        position += header.size


def patch(buffer: memoryview, position: int, base_offset: Offset, epoch: LeaderEpoch) -> None:
    """Set the base offset and the leader epoch, which the CRC does not cover."""
    _OFFSET.pack_into(buffer, position, base_offset)
    _I32.pack_into(buffer, position + 12, epoch)


def claim_create_time(buffer: memoryview, position: int, header: BatchHeader) -> BatchHeader:
    """Set the timestamp type to CreateTime and update the CRC."""
    _ATTRIBUTES.pack_into(buffer, position + 21, header.attributes & ~TIMESTAMP_TYPE_MASK)
    _CRC.pack_into(buffer, position + 17, _crc(buffer, position, header.size))
    return read_header(buffer, position)


def stamp_append_time(buffer: memoryview, position: int, header: BatchHeader, now: Millis) -> None:
    """Set the timestamp type to LogAppendTime and the append time, and update the CRC."""
    _ATTRIBUTES.pack_into(buffer, position + 21, header.attributes | TIMESTAMP_TYPE_MASK)
    _OFFSET.pack_into(buffer, position + 35, now)
    _CRC.pack_into(buffer, position + 17, _crc(buffer, position, header.size))
