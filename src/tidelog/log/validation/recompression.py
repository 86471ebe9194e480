"""Stores a batch in the codec of its topic (compression.type), as Kafka does.

The records stay as they are. Only their compression, and with it the size, the codec in the
attributes and the checksum of the batch change.
"""

from struct import Struct

from crc32c import crc32c

from tidelog.log.config import StoredCodec
from tidelog.model.disk import Buffer
from tidelog.protocol.records.batch import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    peek_attributes,
    read_header,
)
from tidelog.protocol.records.compression import compress
from tidelog.protocol.records.records import codec_of
from tidelog.protocol.records.unpacking import CODECS, unpack

_HEADER = Struct(">qiibIhiqqqhii")
_CRC_START = 21


def needs_recompression(batch: Buffer, codec: StoredCodec) -> bool:
    return peek_attributes(batch) & COMPRESSION_MASK != CODECS.index(codec.name)


def recompressed(batch: Buffer, codec: StoredCodec, budget: int) -> bytearray:
    """The batch in another codec; raises OverBudget if it unpacks to more than `budget` bytes."""
    header = read_header(batch)
    packed = memoryview(batch)[HEADER_SIZE : header.size]
    records = b"".join(unpack(codec_of(header), (packed,), budget))
    body = compress(codec.name, records, codec.level)
    attributes = header.attributes & ~COMPRESSION_MASK | CODECS.index(codec.name)
    length = HEADER_SIZE - LOG_OVERHEAD + len(body)
    header = header._replace(attributes=attributes, length=length)
    covered = _HEADER.pack(*header)[_CRC_START:] + body
    return bytearray(_HEADER.pack(*header._replace(crc=crc32c(covered)))[:_CRC_START] + covered)
