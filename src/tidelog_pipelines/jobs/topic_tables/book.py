"""The states of the tables, in memory and in a small file that other processes read.

Only this file records how far a topic has been read. Each start of the query begins at the offsets
in the file. The file is replaced as a whole after each change. The rows below an offset are written
before the offset. After a crash between these two writes, the job reads the records again, and the
table recognises them.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.sources.checkpoint import Ends

RUNNING, WAITING, ERROR, OFF = "running", "waiting", "error", "off"
NAME = "_tables.json"
VERSION = 1
LONGEST_PAUSE_SECONDS = 600.0


@dataclass(frozen=True)
class TableState:
    state: str = WAITING
    error: str = ""
    id: str = ""
    """The id of the topic whose records the table has."""
    format: str = "json"
    mode: str = "append"
    table_format: str = ""
    """The format that the topic has chosen for its table, or empty."""
    rows: int = 0
    quarantined: int = 0
    offsets: dict[int, int] = field(default_factory=dict)
    """For each partition, the offset of the next record."""
    last_batch: float | None = None
    """When records were last written, in seconds since 1970."""
    failures: int = 0
    """How often the topic has failed since its records were last written."""
    vacuumed: float | None = None
    """When unused files were last removed, in seconds since 1970."""


class Book:
    """The states by topic. Safe for several threads."""

    def __init__(
        self, path: str, pause_seconds: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """After its first failure, a topic pauses for `pause_seconds`.

        Each further pause is longer.
        """
        self._path = path
        self._pause_seconds = pause_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._retry_at: dict[str, float] = {}
        self._checkpoint, self._tables = _read(path)

    @property
    def tables(self) -> dict[str, TableState]:
        with self._lock:
            return dict(self._tables)

    def of(self, topic: str) -> TableState:
        return self._tables.get(topic, TableState())

    def offsets(self) -> Ends:
        return {topic: one.offsets for topic, one in self.tables.items() if one.offsets}

    def next_checkpoint(self) -> int:
        """The number of a checkpoint that no query has used."""
        with self._lock:
            self._checkpoint += 1
            self._save()
            return self._checkpoint

    def note(self, topic: str, **changes: Any) -> None:
        """Change the state of a topic. The file is written only if the state has changed."""
        with self._lock:
            before = self._tables.get(topic)
            after = replace(before or TableState(), **changes)
            if after != before:
                self._tables[topic] = after
                self._save()

    def written(self, topic: str, ends: Mapping[int, int], loss: str = "", **counts: int) -> None:
        """Note that the records before these offsets are in the table or in quarantine.

        `loss` is a sentence about records that were deleted before they were read. It stays visible
        until the topic fails. The error of an earlier failure is cleared.
        """
        now = self.of(topic)
        has_failed = now.state == ERROR
        self.note(
            topic,
            error=loss or ("" if has_failed else now.error),
            state=RUNNING if has_failed else now.state,
            offsets={**now.offsets, **ends},
            last_batch=round(time.time(), 3),
            failures=0,
            **counts,
        )

    def hold(self, topic: str, error: str, starts: Mapping[int, int]) -> None:
        """Note that a topic has failed.

        A later query reads its records again, beginning at `starts`.
        """
        now = self.of(topic)
        failures = now.failures + 1
        pause = min(LONGEST_PAUSE_SECONDS, self._pause_seconds * 2 ** min(failures - 1, 20))
        self._retry_at[topic] = self._clock() + pause
        offsets = {**starts, **now.offsets}
        self.note(topic, state=ERROR, error=error, failures=failures, offsets=offsets)

    def is_pausing(self, topic: str) -> bool:
        """Whether a topic has failed, and its pause is not over yet."""
        return self._clock() < self._retry_at.get(topic, 0.0)

    def end_pause(self, topic: str) -> None:
        self._retry_at.pop(topic, None)

    def rest(self) -> None:
        """Note for every topic that no query runs any more."""
        for topic, one in self.tables.items():
            if one.state == RUNNING:
                self.note(topic, state=WAITING)

    def _save(self) -> None:
        tables = {topic: asdict(one) for topic, one in sorted(self._tables.items())}
        found = {"version": VERSION, "checkpoint": self._checkpoint, "tables": tables}
        draft = f"{self._path}.{os.getpid()}.tmp"
        try:
            with open(draft, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self._path)
        except OSError as error:
            raise JobFailed(f"{self._path} cannot be written: {error.strerror}.") from None


def _read(path: str) -> tuple[int, dict[str, TableState]]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        if found["version"] != VERSION:
            raise JobFailed(
                f"{path} was written by another version of Tidelog; use that one, or another --out."
            )
        tables = {topic: _table(values) for topic, values in found["tables"].items()}
        return int(found["checkpoint"]), tables
    except FileNotFoundError:
        return 0, {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise JobFailed(
            f"{path} is damaged. If you remove it, all topics are read again, and records that the "
            "tables have are left out."
        ) from None


def _table(values: dict[str, Any]) -> TableState:
    offsets = {int(partition): int(offset) for partition, offset in values["offsets"].items()}
    return TableState(**{**values, "offsets": offsets})
