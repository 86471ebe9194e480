"""The page of records: a range of a partition, one whole value, and a search with progress."""

import time
from typing import Any, NamedTuple

from tidelog.client.client import Client
from tidelog.client.fetcher import Fetched, Fetcher
from tidelog.client.log_offsets import EARLIEST, LATEST, offsets_at
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset, TopicPartition
from tidelog.model.user_error import UserError

MOST = 500
PREVIEW_BYTES = 4096
"""Longer keys and values are shown up to this length; a download has all of them."""
SEARCH_BYTES_PER_SECOND = 16 * 1024 * 1024
"""A search reads at most this much from the brokers."""


def shown(data: bytes | None) -> dict[str, Any] | None:
    """A key or value: text if it is UTF-8, else hexadecimal digits."""
    if data is None:
        return None
    preview = data[:PREVIEW_BYTES]
    try:
        text = data.decode()[:PREVIEW_BYTES]
    except UnicodeDecodeError:
        return {"hex": preview.hex(" "), "size": len(data), "cut": len(data) > PREVIEW_BYTES}
    return {"text": text, "size": len(data), "cut": len(data) > PREVIEW_BYTES}


def row(found: Fetched) -> dict[str, Any]:
    record = found.record
    return {
        "partition": found.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": shown(record.key),
        "value": shown(record.value),
        "headers": [{"key": one.key, "value": shown(one.value)} for one in record.headers],
    }


def start_of(client: Client, partition: TopicPartition, at: str, limit: int) -> Offset:
    """The offset to start at: `earliest`, `latest`, an offset, or `@` with milliseconds."""
    if at in ("", "latest"):
        end = _offset(client, partition, LATEST)
        return max(_offset(client, partition, EARLIEST), end - limit)
    if at == "earliest":
        return _offset(client, partition, EARLIEST)
    try:
        number = int(at.removeprefix("@"))
    except ValueError:
        raise UserError(
            f"'{at}' is not an offset, `earliest`, `latest` or `@` with milliseconds."
        ) from None
    if not at.startswith("@"):
        return max(0, number)
    found = _offset(client, partition, number)
    return found if found >= 0 else _offset(client, partition, LATEST)


def _offset(client: Client, partition: TopicPartition, which: int) -> Offset:
    found = offsets_at(client, [partition], which)[partition]
    if found.error is not ErrorCode.none:
        raise UserError(f"partition {partition}: {found.error.name.upper()}.")
    return found.offset


def records_view(client: Client, partition: TopicPartition, at: str, limit: int) -> dict[str, Any]:
    """Up to `limit` records from a place on."""
    _check_partition(client, partition)
    limit = max(1, min(limit, MOST))
    start = start_of(client, partition, at, limit)
    end = _offset(client, partition, LATEST)
    fetcher = Fetcher(client, partition.topic)
    fetcher.start([partition.partition], start)
    rows: list[dict[str, Any]] = []
    while len(rows) < limit and fetcher.positions[partition.partition] < end:
        before = fetcher.positions[partition.partition]
        for found in fetcher.poll():
            if len(rows) < limit:
                rows.append(row(found))
        if fetcher.positions[partition.partition] == before and not rows:
            break
    following = rows[-1]["offset"] + 1 if rows else start
    return {"records": rows, "start": start, "next": following, "end": end}


def whole_value(client: Client, partition: TopicPartition, offset: Offset, part: str) -> bytes:
    """The whole key or value of one record."""
    _check_partition(client, partition)
    fetcher = Fetcher(client, partition.topic)
    fetcher.start([partition.partition], offset)
    for found in fetcher.poll():
        if found.record.offset == offset:
            data = found.record.key if part == "key" else found.record.value
            return data or b""
    raise UserError(f"partition {partition} has no record at offset {offset}.")


def _check_partition(client: Client, partition: TopicPartition) -> None:
    if partition.partition not in client.partitions(partition.topic):
        raise UserError(f"Topic '{partition.topic}' has no partition {partition.partition}.")


class Wanted(NamedTuple):
    text: bytes
    limit: int = 100


class Search:
    """Reads partitions from their starts, step by step, and collects records with a text.

    The rate is limited, so that a search does not load the brokers.
    """

    def __init__(self, client: Client, topic: str, partitions: list[int], wanted: Wanted) -> None:
        known = client.partitions(topic)
        chosen = [one for one in partitions if one in known] or known
        self._fetcher = Fetcher(client, topic)
        self._fetcher.start(chosen, EARLIEST)
        self._starts = dict(self._fetcher.positions)
        self._ends = {one: self._fetcher.end_of(one, LATEST) for one in chosen}
        self._wanted = wanted
        self._began = time.monotonic()
        self._bytes = 0
        self.read = 0
        self.found = 0
        self.is_done = not self._left()

    def step(self) -> dict[str, Any]:
        """Read a part, and return the records found in it and the progress."""
        ahead = self._bytes / SEARCH_BYTES_PER_SECOND - (time.monotonic() - self._began)
        if ahead > 0:
            time.sleep(min(ahead, 1.0))
        rows = []
        for one in self._fetcher.poll():
            record = one.record
            if record.offset >= self._ends.get(one.partition, 0):
                continue
            self.read += 1
            self._bytes += len(record.key or b"") + len(record.value or b"")
            if self._matches(one) and self.found < self._wanted.limit:
                self.found += 1
                rows.append(row(one))
        for partition in [one for one, end in self._ends.items() if self._is_past(one, end)]:
            self._fetcher.positions.pop(partition, None)
        self.is_done = not self._left() or self.found >= self._wanted.limit
        return {
            "records": rows,
            "progress": self._progress(),
            "read": self.read,
            "done": self.is_done,
        }

    def _is_past(self, partition: int, end: Offset) -> bool:
        return self._fetcher.positions.get(partition, end) >= end

    def _left(self) -> int:
        positions = self._fetcher.positions
        return sum(max(0, self._ends[one] - at) for one, at in positions.items())

    def _progress(self) -> float:
        total = sum(self._ends[one] - start for one, start in self._starts.items())
        return 1.0 if total <= 0 else 1 - self._left() / total

    def _matches(self, one: Fetched) -> bool:
        text = self._wanted.text
        return text in (one.record.value or b"") or text in (one.record.key or b"")
