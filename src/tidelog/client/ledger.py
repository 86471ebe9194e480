"""The ledger: a file that lists acknowledged records, written by a producer and read by an audit.

Each line is a JSON object for one record: topic, partition, offset, key (base64, or null), checksum
of key and value, and the time of the acknowledgement (acked_at, ms since 1970). The lines of one
acknowledgement are appended in one write, before the next request is sent. A ledger contains only
acknowledged records. If the producer is killed, at most one line is incomplete, and readers skip
this line.
"""

import json
import os
import time
from base64 import b64encode
from collections.abc import Iterable
from hashlib import md5
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tidelog.model.ids import NO_OFFSET, Millis, Offset, TopicPartition

CHECKSUM_DIGITS = 16


class Acknowledged(NamedTuple):
    offset: Offset
    """`NO_OFFSET` if the record is a duplicate, because the cluster then returns no offset."""
    key: bytes | None
    value: bytes | None


class Ledger:
    """An append-only file. An audit reads all ledgers of a directory together."""

    def __init__(self, path: Path | str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        end = os.lseek(self._file, 0, os.SEEK_END)
        if end and os.pread(self._file, 1, end - 1) != b"\n":
            os.write(self._file, b"\n")  # ends the incomplete line that a killed writer left

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def enter(
        self,
        partition: TopicPartition,
        records: Iterable[Acknowledged],
        acked_at: Millis | None = None,
    ) -> None:
        """Append records that were acknowledged now, or at the given time."""
        now = time.time_ns() // 1_000_000 if acked_at is None else acked_at
        lines = b"".join(_line(partition, record, now) for record in records)
        while lines:
            lines = lines[os.write(self._file, lines) :]

    def close(self) -> None:
        os.fsync(self._file)
        os.close(self._file)


def checksum(key: bytes | None, value: bytes | None) -> str:
    """The first 64 bits of the MD5 of key, value and their lengths. MD5 is fast in Spark."""
    content = b"%d:%b%d:%b" % (_size(key), key or b"", _size(value), value or b"")
    return md5(content, usedforsecurity=False).hexdigest()[:CHECKSUM_DIGITS]


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def _line(partition: TopicPartition, record: Acknowledged, acked_at: Millis) -> bytes:
    entry = {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": None if record.offset == NO_OFFSET else record.offset,
        "key": None if record.key is None else b64encode(record.key).decode(),
        "checksum": checksum(record.key, record.value),
        "acked_at": acked_at,
    }
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"
