"""Finds the records inside the unpacked bytes of a batch, without copying their values."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tidelog.model.disk import Buffer
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.records.batch import HEADER_SIZE, BatchHeader
from tidelog.protocol.records.records import codec_of
from tidelog.protocol.records.unpacking import UnreadableRecords, unpack
from tidelog.protocol.varint import read_varint, read_varlong

_PADDING = bytes(32)
"""Bytes after the last record, so that the head of a record can be read without a bounds check."""
SMALLEST_RECORD = 6


class RecordSpan(NamedTuple):
    """One record. The last four fields are positions in the unpacked bytes."""

    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool
    start: int
    attributes: int
    rest: int
    """The position after the offset delta. The bytes from here on do not change."""
    end: int


_new_span: Callable[[type[RecordSpan], tuple[Any, ...]], RecordSpan] = tuple.__new__
"""RecordSpan(*fields) without a Python call, because there is one for every record."""


def unpacked(header: BatchHeader, batch: memoryview) -> Buffer:
    """The bytes of the records of a batch."""
    packed = batch[HEADER_SIZE:]
    if not header.compression:
        return packed
    return b"".join(unpack(codec_of(header), (packed,)))


def record_spans(body: Buffer, count: int) -> list[RecordSpan]:
    """The records of a batch, in order; raises UnreadableRecords if they are invalid.

    Varints of one and two bytes are read inline, because a call for each varint would take most of
    the time.
    """
    size, position = len(body), 0
    padded = b"".join((body, _PADDING))
    spans: list[RecordSpan] = []
    note = spans.append
    try:
        for _ in range(count):
            length = padded[position]
            if length < 0x80:
                length, attributes = (length >> 1) ^ -(length & 1), position + 1
            elif (high := padded[position + 1]) < 0x80:
                length = (length & 0x7F) | high << 7
                length, attributes = (length >> 1) ^ -(length & 1), position + 2
            else:
                length, attributes = read_varint(padded, position)
            end = attributes + length
            if length < SMALLEST_RECORD or end > size:
                raise UnreadableRecords(f"a record of {length} bytes")
            timestamp = padded[attributes + 1]
            if timestamp < 0x80:
                timestamp, at = (timestamp >> 1) ^ -(timestamp & 1), attributes + 2
            else:
                timestamp, at = read_varlong(padded, attributes + 1)
            offset = padded[at]
            if offset < 0x80:
                offset, rest = (offset >> 1) ^ -(offset & 1), at + 1
            elif (high := padded[at + 1]) < 0x80:
                offset = (offset & 0x7F) | high << 7
                offset, rest = (offset >> 1) ^ -(offset & 1), at + 2
            else:
                offset, rest = read_varint(padded, at)
            key_size = padded[rest]
            if key_size < 0x80:
                key_size, at = (key_size >> 1) ^ -(key_size & 1), rest + 1
            else:
                key_size, at = read_varint(padded, rest)
            key = None
            if key_size >= 0:
                key = padded[at : at + key_size]
                at += key_size
            if at >= end:
                raise UnreadableRecords(f"a key of {key_size} bytes")
            # A size with a set lowest bit is negative, which means that there is no value.
            has_value = not padded[at] & 1
            places = (position, attributes, rest, end)
            note(_new_span(RecordSpan, (timestamp, offset, key, has_value, *places)))
            position = end
    except (IndexError, MalformedMessage) as error:
        if isinstance(error, UnreadableRecords):
            raise
        raise UnreadableRecords("a record is cut short") from None
    if position != size:
        raise UnreadableRecords(f"{size - position} bytes after the last record")
    return spans
