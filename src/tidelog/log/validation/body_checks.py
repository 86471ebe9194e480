"""Checks whether the body of a batch can hold the number of records in its header.

The check reads only the beginning of the batch. Consecutive records differ at least in their
offset, so even a compressed record takes some bits. Tiny records with equal timestamps compress
best. Each of them takes 1.4 bytes with gzip, 4 with snappy and lz4, and 0.4 with zstd. If the
header of a compressed batch states more records than the batch has bytes, the records are counted
before the append (F64).
"""

from enum import Enum
from typing import Literal, TypeAlias

from tidelog.log.results import AppendRefused
from tidelog.log.validation.record_checks import CHECKED_RECORDS
from tidelog.model.errors import ErrorCode
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.records.batch import COMPRESSION_MASK, HEADER_SIZE, BatchHeader
from tidelog.protocol.varint import read_varint

_SMALLEST_RECORD = 7
"""The size of the smallest record, without key, value and headers: seven fields of one byte."""
_WALKED = 16
"""The maximum number of records that this check reads, because reading thousands is slow."""
_BEGINNINGS = {1: b"\x1f\x8b", 3: b"\x04\x22\x4d\x18", 4: b"\x28\xb5\x2f\xfd"}
"""The first bytes of gzip, lz4 and zstd data; snappy has no fixed first bytes."""


class _InDoubt(Enum):
    IN_DOUBT = "in doubt"


IN_DOUBT: Literal[_InDoubt.IN_DOUBT] = _InDoubt.IN_DOUBT
InDoubt: TypeAlias = Literal[_InDoubt.IN_DOUBT]
"""The result if the check cannot decide. The caller must count the batch's records."""


def check_body(batch: memoryview, header: BatchHeader) -> AppendRefused | InDoubt | None:
    """Refuse a batch that cannot hold the number of records in its header.

    Compressed data is not unpacked. A long batch is judged by its size and its first records.
    """
    codec = header.attributes & COMPRESSION_MASK
    if codec:
        beginning = _BEGINNINGS.get(codec, b"")
        body = batch[HEADER_SIZE : HEADER_SIZE + max(1, len(beginning))]
        if not body or (beginning and body != beginning):
            return AppendRefused(
                ErrorCode.corrupt_message, "The records do not match the batch's compression type"
            )
        if header.record_count > len(batch) - HEADER_SIZE:
            return IN_DOUBT if header.record_count <= CHECKED_RECORDS else _false_count(header)
    elif not _may_hold(batch, header.record_count):
        return _false_count(header)
    return None


def _false_count(header: BatchHeader) -> AppendRefused:
    return AppendRefused(
        ErrorCode.invalid_record,
        f"The batch does not contain the {header.record_count} records that its header counts",
    )


def _may_hold(batch: memoryview, count: int) -> bool:
    end = len(batch)
    if count * _SMALLEST_RECORD > end - HEADER_SIZE:
        return False
    position = HEADER_SIZE
    try:
        for _ in range(min(count, _WALKED)):
            length, position = read_varint(batch, position)
            position += length
            if length < _SMALLEST_RECORD - 1 or position > end:
                return False
    except (IndexError, MalformedMessage):
        return False
    return position == end or count > _WALKED
