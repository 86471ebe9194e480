"""The list of topics' tables, from the state file of `tables run` and from the cluster."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tidelog.cli.output.table import table
from tidelog.model.ids import Offset, TopicPartition

RUNNING, WAITING, OFF = "running", "waiting", "off"
HEADS = ("TOPIC", "STATE", "MODE", "ROWS", "QUARANTINED", "LAG", "LAST-BATCH", "ERROR")


class TableRow(NamedTuple):
    topic: str
    state: str
    mode: str
    rows: int
    quarantined: int
    lag: int | None
    """The number of records that are not in the table. None if the log end offsets are unknown."""
    last_batch: str | None
    error: str | None


def table_rows(
    states: Mapping[str, Any],
    modes: Mapping[str, str],
    ends: Mapping[TopicPartition, Offset],
    *,
    is_kept: bool,
) -> Iterator[TableRow]:
    """A row per table. `modes` has the topics that are configured as tables.

    `is_kept` is true if `tables run` is running.
    """
    for topic in sorted({*states, *modes}):
        known = states.get(topic, {})
        state = known.get("state", WAITING)
        if (state == RUNNING and not is_kept) or (state == OFF and topic in modes):
            state = WAITING
        time = known.get("last_batch")
        yield TableRow(
            topic,
            state,
            modes.get(topic, known.get("mode", "")),
            known.get("rows", 0),
            known.get("quarantined", 0),
            _lag(topic, known.get("offsets", {}), ends),
            None if time is None else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%dT%H:%M:%SZ}",
            known.get("error") or None,
        )


def _lag(
    topic: str, offsets: Mapping[str, int], ends: Mapping[TopicPartition, Offset]
) -> int | None:
    behind = [
        max(0, end - offsets.get(str(where.partition), 0))
        for where, end in ends.items()
        if where.topic == topic
    ]
    return sum(behind) if behind else None


def as_text(rows: Iterable[TableRow]) -> Iterator[str]:
    found = [tuple("-" if cell is None else str(cell) for cell in row) for row in rows]
    yield from table(HEADS, found)


def as_json(rows: Iterable[TableRow]) -> str:
    return json.dumps([row._asdict() for row in rows], indent=2)
