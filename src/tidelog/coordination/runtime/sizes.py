"""Splits the records of a decision into batches that the coordinator's partition accepts (F61)."""

from collections.abc import Sequence

from tidelog.coordination.runtime.decision import LogRecord

MAX_RECORDS = 1_000
"""The maximum number of records in one batch of a decision that is split."""

_BATCH_BYTES = 61
"""The size of a batch header."""
_RECORD_BYTES = 24
"""The maximum size of a record without its key and value."""


def parts_of(
    records: Sequence[LogRecord], largest_batch: int, *, is_atomic: bool
) -> list[tuple[int, int]]:
    """The first index of each batch and the index after it; empty if the records do not fit."""
    sizes = [_RECORD_BYTES + len(key) + len(value or b"") for key, value in records]
    room = largest_batch - _BATCH_BYTES
    if is_atomic:
        return [(0, len(records))] if sum(sizes) <= room else []
    if max(sizes) > room:
        return []
    parts, first, used = [], 0, 0
    for number, size in enumerate(sizes):
        if number > first and (used + size > room or number - first == MAX_RECORDS):
            parts.append((first, number))
            first, used = number, 0
        used += size
    parts.append((first, len(records)))
    return parts
