"""The lines of `dump-log` for a segment: its batches, and optionally their records."""

from collections.abc import Iterator
from typing import NamedTuple

from tidelog.cli.output.record_json import control_text, metadata_json
from tidelog.protocol.records.batch import HEADER_SIZE, BatchHeader, check, read_header
from tidelog.protocol.records.compression import CODECS
from tidelog.protocol.records.records import Record, UnreadableRecords, iterate_records

MAX_SEQUENCE = 2**31 - 1
DELETE_HORIZON_MASK = 0x40
"""The attribute bit that is set if the base timestamp of a batch is its delete horizon."""


class Detail(NamedTuple):
    """The parts of records to show. By default, only batches are shown."""

    records: bool = False
    data: bool = False
    as_metadata: bool = False
    skip_metadata: bool = False

    @property
    def wants_records(self) -> bool:
        return self.records or self.data or self.as_metadata


def segment_lines(segment: memoryview, detail: Detail) -> Iterator[str]:
    position = 0
    while len(segment) - position >= HEADER_SIZE:
        header = read_header(segment, position)
        if header.length < 0 or position + header.size > len(segment):
            break
        is_valid = isinstance(check(segment, position), BatchHeader)
        yield _batch_line(header, position, is_valid)
        if detail.wants_records:
            yield from _record_lines(segment[position : position + header.size], header, detail)
        position += header.size
    if position < len(segment):
        yield f"Found {len(segment) - position} invalid bytes at the end of the segment"


def _batch_line(header: BatchHeader, position: int, is_valid: bool) -> str:
    horizon = header.attributes & DELETE_HORIZON_MASK
    columns = {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": _sequence(header, header.last_offset_delta),
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": _java(header.is_transactional),
        "isControl": _java(header.is_control),
        "deleteHorizonMs": f"OptionalLong[{header.base_timestamp}]"
        if horizon
        else "OptionalLong.empty",
        "position": position,
        _timestamp_type(header): header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "compresscodec": dict(enumerate(CODECS)).get(header.compression, header.compression),
        "crc": header.crc,
        "isvalid": _java(is_valid),
    }
    return " ".join(f"{name}: {value}" for name, value in columns.items())


def _record_lines(batch: memoryview, header: BatchHeader, detail: Detail) -> Iterator[str]:
    try:
        for record in iterate_records(batch):
            columns = " ".join(_record_columns(record, header, detail))
            yield f"| {columns}" if columns else ""
    except UnreadableRecords as unreadable:
        yield f"| unreadable: {unreadable}"


def _record_columns(record: Record, header: BatchHeader, detail: Detail) -> Iterator[str]:
    if not detail.skip_metadata:
        yield f"offset: {record.offset} {_timestamp_type(header)}: {record.timestamp}"
        yield f"keySize: {_size(record.key)} valueSize: {_size(record.value)}"
        yield f"sequence: {_sequence(header, record.offset - header.base_offset)}"
        yield f"headerKeys: [{','.join(one.key for one in record.headers)}]"
    if header.is_control:
        yield control_text(record)
    elif detail.as_metadata:
        if record.value is not None:
            yield f"payload: {metadata_json(record.value)}"
    elif detail.data:
        if record.key is not None:
            yield f"key: {record.key.decode(errors='replace')}"
        if record.value is not None:
            yield f"payload: {record.value.decode(errors='replace')}"


def _sequence(header: BatchHeader, delta: int) -> int:
    if header.base_sequence < 0:
        return -1
    return (header.base_sequence + delta) & MAX_SEQUENCE


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.uses_log_append_time else "CreateTime"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _java(value: bool) -> str:
    return str(value).lower()
