"""The ledger: what a cluster has acknowledged, kept by whoever wrote it, for an audit to check.

One JSON object per line and record: topic, partition, offset, key (base64, or null), checksum of
key and value, and when the acknowledgement came (acked_at, ms since 1970). The lines of one
acknowledgement are appended in one write before anything else is sent, so that a ledger never
claims more than was acknowledged, and a kill leaves at most one torn line, which its readers skip.
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
    """`NO_OFFSET` where the cluster had the record already, and did not say where."""
    key: bytes | None
    value: bytes | None


class Ledger:
    """A file that only grows; several ledgers make one if they lie in one directory."""

    def __init__(self, path: Path | str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        end = os.lseek(self._file, 0, os.SEEK_END)
        if end and os.pread(self._file, 1, end - 1) != b"\n":
            os.write(self._file, b"\n")  # the line that a kill has torn stays by itself

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
        """Append what was acknowledged just now, or at this time."""
        now = time.time_ns() // 1_000_000 if acked_at is None else acked_at
        lines = b"".join(_line(partition, record, now) for record in records)
        while lines:
            lines = lines[os.write(self._file, lines) :]

    def close(self) -> None:
        os.fsync(self._file)
        os.close(self._file)


def checksum(key: bytes | None, value: bytes | None) -> str:
    """Half of the MD5 of both, each after its length: 64 bits, which Spark computes as fast."""
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
